import Foundation
package import Kernel
package import Nodes
import Synchronization

/// Addresses of the brokers, and credentials.
package struct RegistrySettings: Hashable, Sendable {
    /// URLs of the brokers, with commas between them; they may hold a password.
    package var urls: String
    /// File with a JWT and a seed.
    package var credentials: String?
    /// PEM file of the certificates that brokers' are signed with; turns TLS on.
    package var authority: String?
    /// PEM files of the client certificate and its key, both or none; turn TLS on.
    package var certificate: String?
    package var key: String?

    package init(urls: String) { self.urls = urls }
}

/// Client of the registry: one bucket of NATS JetStream.
///
/// Two threads of its own wait for the broker: one carries requests out, the other watches the
/// bucket. Both only post into the mailbox.
package final class RegistryClient: Sendable {
    /// News for the control thread.
    package let updates: Mailbox<RegistryUpdate>
    private let queue = RequestQueue()
    private let session: RegistrySession
    /// Number of times that the bucket must have been read as a whole.
    private let watchCount = Atomic<UInt64>(0)

    /// Starts the threads; `name` is shown to the broker's operator.
    package init(_ settings: RegistrySettings, name: String) throws(SystemError) {
        updates = try Mailbox()
        session = RegistrySession(settings, name: name)
        start("registry") { $0.carryOut() }
        start("registry-watch") { $0.watch() }
    }

    private func start(_ name: String, _ body: @escaping @Sendable (RegistryClient) -> Void) {
        let thread = Thread { @Sendable in body(self) }
        thread.name = name
        thread.stackSize = 1 << 20
        thread.start()
    }

    /// Asks for writes and reads; their outcomes come as updates.
    package func post(_ requests: [RegistryRequest]) { queue.append(requests.map(Job.request)) }

    /// Waits until all requests so far are carried out, for at most this time.
    package func finish(milliseconds: Int) {
        let done = DispatchSemaphore(value: 0)
        queue.append([.signal(done)])
        _ = done.wait(timeout: .now() + .milliseconds(milliseconds))
    }

    /// Carries requests out, one after another, for as long as the process lives.
    private func carryOut() {
        while true {
            for job in queue.take() {
                switch job {
                case .signal(let done): done.signal()
                case .request(let request): carryOut(request)
                }
            }
        }
    }

    private func carryOut(_ request: RegistryRequest) {
        guard session.isOpen || session.open() else {
            if let number = request.number { updates.post([.outcome(.failed, of: number)]) }
            return
        }
        let outcome: RegistryOutcome
        switch request {
        case .write(_, let key, let value, let condition):
            outcome = session.write(key, value, condition)
        case .read(_, let key): outcome = session.read(key)
        case .watchAgain:
            watchCount.add(1, ordering: .relaxed)
            return
        }
        // The bucket may be gone: it is made again, and read as a whole.
        if outcome == .failed, session.ensureBucket() { watchCount.add(1, ordering: .relaxed) }
        if let number = request.number { updates.post([.outcome(outcome, of: number)]) }
    }

    /// Watches the bucket, again and again, for as long as the process lives.
    private func watch() {
        while true {
            let round = watchCount.load(ordering: .relaxed)
            let end = session.watch { update in
                updates.post([update])
                return watchCount.load(ordering: .relaxed) == round
            }
            if let end { updates.post([.away(end)]) }
            Thread.sleep(forTimeInterval: Self.pauseSeconds)
        }
    }

    /// Pause before the bucket is watched again, in seconds.
    private static let pauseSeconds = 0.1
}

extension RegistryRequest {
    /// Number that comes back with the outcome, if there is one.
    fileprivate var number: UInt64? {
        switch self {
        case .write(let number, _, _, _), .read(let number, _): number
        case .watchAgain: nil
        }
    }
}

/// Work for the thread that carries requests out.
private enum Job: Sendable {
    case request(RegistryRequest)
    case signal(DispatchSemaphore)
}

/// Work that waits for its thread; its amount is bounded by what a node has under way.
private final class RequestQueue: Sendable {
    private let jobs = Locked<[Job]>([])
    private let signal = DispatchSemaphore(value: 0)

    func append(_ more: [Job]) {
        jobs.withLock { $0 += more }
        signal.signal()
    }

    /// Waits for work; returns all that there is.
    func take() -> [Job] {
        signal.wait()
        return jobs.withLock { waiting in
            defer { waiting = [] }
            return waiting
        }
    }
}
