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
    /// Brokers that keep each record, if this node is the first one: 1 to 5.
    package var replicas = 1

    package init(urls: String) { self.urls = urls }
}

/// Client of the registry: one bucket of NATS JetStream.
///
/// Threads of its own wait for the broker: one carries requests to the bucket out, one watches it,
/// and some write the rooms' journals, each room always the same one. All only post into the
/// mailbox.
package final class RegistryClient: Sendable {
    /// News for the control thread.
    package let updates: Mailbox<RegistryUpdate>
    private let queue = RequestQueue()
    private let journals = (0..<journalThreads).map { _ in RequestQueue() }
    private let session: RegistrySession
    /// Number of times that the bucket must have been read as a whole.
    private let watchCount = Atomic<UInt64>(0)

    /// Starts the threads; `name` is shown to the broker's operator.
    package init(_ settings: RegistrySettings, name: String) throws(SystemError) {
        updates = try Mailbox()
        session = RegistrySession(settings, name: name)
        start("registry") { $0.carryOut($0.queue) }
        start("registry-watch") { $0.watch() }
        for (index, queue) in journals.enumerated() {
            start("registry-log\(index)") { $0.carryOut(queue) }
        }
    }

    private func start(_ name: String, _ body: @escaping @Sendable (RegistryClient) -> Void) {
        let thread = Thread { @Sendable in body(self) }
        thread.name = name
        thread.stackSize = 1 << 20
        thread.start()
    }

    /// Asks for writes and reads; their outcomes come as updates.
    package func post(_ requests: [RegistryRequest]) {
        for request in requests {
            if let room = request.journal {
                // The sum of its bytes, so that the requests of one room stay in order.
                let place = room.utf8.reduce(0) { $0 + Int($1) } % journals.count
                journals[place].append([.request(request)])
            } else {
                queue.append([.request(request)])
            }
        }
    }

    /// Waits until all requests so far are carried out, for at most this time.
    package func finish(milliseconds: Int) {
        let done = DispatchSemaphore(value: 0)
        let queues = journals + [queue]
        for queue in queues { queue.append([.signal(done)]) }
        let end = DispatchTime.now() + .milliseconds(milliseconds)
        for _ in queues { _ = done.wait(timeout: end) }
    }

    /// Carries requests out, one after another, for as long as the process lives.
    private func carryOut(_ queue: RequestQueue) {
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
        if request.journal != nil { return carryOutJournal(request) }
        let outcome: RegistryOutcome
        switch request {
        case .write(_, let key, let value, let condition):
            outcome = session.write(key, value, condition)
        case .read(_, let key): outcome = session.read(key)
        case .watchAgain:
            watchCount.add(1, ordering: .relaxed)
            return
        case .forget(let number, let key, let revision):
            // If it may not do that, the bucket is none the worse.
            return updates.post([.outcome(session.forget(key, revision), of: number)])
        case .append, .last, .journal, .purge, .journals: return
        }
        // The bucket may be gone: it is made again, and read as a whole.
        if outcome == .failed, session.ensureBucket() { watchCount.add(1, ordering: .relaxed) }
        if let number = request.number { updates.post([.outcome(outcome, of: number)]) }
    }

    private func carryOutJournal(_ request: RegistryRequest) {
        var outcome = attempt(request)
        // The stream may be missing: it is made again.
        if outcome == .failed, session.ensureJournal() {
            outcome = attempt(request)
            // The first attempt may have been stored, and then the second meets it.
            if outcome == .conflict { outcome = .failed }
        }
        if let number = request.number { updates.post([.outcome(outcome, of: number)]) }
    }

    private func attempt(_ request: RegistryRequest) -> RegistryOutcome {
        switch request {
        case .append(_, let room, let message, let last):
            session.append(room, message, last: last)
        case .last(_, let room): session.readEnd(of: room)
        case .journal(_, let room): session.readJournal(of: room)
        case .purge(let room, let sequence): session.purge(room, before: sequence)
        case .journals: session.listJournals()
        case .write, .read, .forget, .watchAgain: .failed
        }
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
    /// Threads that write journals; each waits for the broker's answer.
    private static let journalThreads = 4
}

extension RegistryRequest {
    /// Number that comes back with the outcome, if there is one.
    fileprivate var number: UInt64? {
        switch self {
        case .write(let number, _, _, _), .read(let number, _), .append(let number, _, _, _),
            .last(let number, _), .journal(let number, _), .forget(let number, _, _),
            .journals(let number):
            number
        case .purge, .watchAgain: nil
        }
    }

    /// Room whose journal the request is about, none for all; `nil` for one to the bucket.
    fileprivate var journal: String? {
        switch self {
        case .append(_, let room, _, _), .last(_, let room), .journal(_, let room),
            .purge(let room, _):
            room
        case .journals: ""
        case .write, .read, .forget, .watchAgain: nil
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
