import Foundation
import JSON
import Synchronization

/// A client of the Janus API over a Unix socket, with any number of concurrent requests.
///
/// Janus answers a request with `success`, `error` or, for slow plugins, an `ack` and later an
/// `event` of the same transaction. Of the unsolicited events only `webrtcup` is kept.
final class JanusConnection: Sendable {
    private struct State {
        var waiting: [String: CheckedContinuation<JSON, any Error>] = [:]
        /// Handles whose transport Janus and its plugin consider connected.
        var connected: Set<Int64> = []
        var lastTransaction = 0
        var isClosed = false
    }

    private let socket: PacketSocket
    private let state = Mutex(State())

    /// Buffer size of Janus 1.1, in bytes; it drops longer requests.
    private static let maximumRequest = 8_191
    private static let patience = Duration.seconds(20)

    /// Connects to `path`; returns `nil` if Janus does not listen there yet.
    init?(path: String) {
        guard let socket = PacketSocket.connect(to: path) else { return nil }
        self.socket = socket
        let reader = Thread { @Sendable [self] in readReplies() }
        reader.name = "janus replies"
        reader.start()
    }

    /// Ends the connection; pending calls throw.
    func close() { socket.shutdown() }

    /// Sends a request of the Janus API and returns its final reply.
    ///
    /// - Throws: `AdapterError` with the error of Janus or its plugin.
    func call(_ kind: String, _ members: [String: JSON] = [:]) async throws -> JSON {
        let transaction = state.withLock { state in
            state.lastTransaction += 1
            return String(state.lastTransaction)
        }
        let words: [String: JSON] = ["janus": .string(kind), "transaction": .string(transaction)]
        let request = JSON.encoded(JSON.object(members.merging(words) { $1 }))
        guard request.count <= Self.maximumRequest else {
            throw AdapterError("\(request.count) bytes are too many for a request to Janus")
        }
        let timer = Task { [self] in
            try await Task.sleep(for: Self.patience)
            fail(transaction, "no answer to \(kind) in \(Self.patience)")
        }
        defer { timer.cancel() }
        let reply = try await withCheckedThrowingContinuation { waiter in
            let isClosed = state.withLock { state in
                if !state.isClosed { state.waiting[transaction] = waiter }
                return state.isClosed
            }
            if isClosed {
                waiter.resume(throwing: AdapterError("Janus has ended"))
            } else if !socket.send(request) {
                fail(transaction, "Janus takes no requests")
            }
        }
        if let refusal = Self.refusal(reply) { throw AdapterError("Janus: \(refusal)") }
        return reply
    }

    /// Waits until the plugin considers a handle's transport connected.
    ///
    /// The plugin learns of the connection a little later than its peer.
    ///
    /// - Throws: `AdapterError` after a timeout.
    func awaitConnected(_ handle: Int64) async throws {
        let deadline = ContinuousClock.now + Self.patience
        while !state.withLock({ $0.connected.contains(handle) }) {
            guard ContinuousClock.now < deadline else {
                throw AdapterError("Janus: a transport did not connect in \(Self.patience)")
            }
            try await Task.sleep(for: .milliseconds(5))
        }
    }

    private func fail(_ transaction: String, _ cause: String) {
        let waiter = state.withLock { $0.waiting.removeValue(forKey: transaction) }
        waiter?.resume(throwing: AdapterError("Janus: \(cause)"))
    }

    private func readReplies() {
        while let message = socket.receive() {
            guard let reply = try? JSON(parsing: message), let kind = reply["janus"]?.string
            else { continue }
            if kind == "webrtcup", let handle = reply["sender"]?.integer {
                state.withLock { _ = $0.connected.insert(handle) }
            }
            guard kind != "ack", let transaction = reply["transaction"]?.string else { continue }
            let waiter = state.withLock { $0.waiting.removeValue(forKey: transaction) }
            waiter?.resume(returning: reply)
        }
        let waiting = state.withLock { state in
            state.isClosed = true
            defer { state.waiting = [:] }
            return state.waiting.values
        }
        for waiter in waiting { waiter.resume(throwing: AdapterError("Janus has ended")) }
    }

    /// Returns the error in a reply, from Janus or from the plugin.
    private static func refusal(_ reply: JSON) -> String? {
        if case .string(let reason) = reply["error"]?["reason"] { return reason }
        if case .string(let reason) = reply["plugindata"]?["data"]?["error"] { return reason }
        return nil
    }
}

extension JSON {
    var integer: Int64? { if case .integer(let value) = self { value } else { nil } }
    var string: String? { if case .string(let value) = self { value } else { nil } }
    var elements: [JSON] { if case .array(let values) = self { values } else { [] } }
}
