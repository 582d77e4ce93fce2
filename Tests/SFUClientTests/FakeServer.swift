import Synchronization

@testable import Contract
@testable import SFUClient

/// A fake server: the other ends of a client's connections, in the order of connecting.
final class FakeServer: Sendable {
    /// Whether to accept each connection, in order.
    private let plan: Mutex<[Bool]>
    private let made: AsyncStream<LineConnection>
    private let making: AsyncStream<LineConnection>.Continuation
    let pauses = Mutex<[Duration]>([])

    init(accepting plan: [Bool] = []) {
        self.plan = Mutex(plan)
        (made, making) = AsyncStream.makeStream()
    }

    var dialer: Dialer {
        Dialer { () throws(ClientError) -> UnixSocket in
            let accepts = self.plan.withLock { $0.isEmpty ? true : $0.removeFirst() }
            guard accepts else { throw .unreachable(path: "fake", cause: "refused") }
            let (client, server) = try UnixSocket.pair()
            self.making.yield(LineConnection(server))
            return client
        }
    }

    /// Options under which waiting takes no time and pauses are recorded.
    var options: ClientOptions {
        var options = ClientOptions()
        options.sleep = { duration in
            self.pauses.withLock { $0.append(duration) }
            await Task.yield()
        }
        return options
    }

    func connection() async -> LineConnection? {
        var iterator = made.makeAsyncIterator()
        return await iterator.next()
    }
}

extension LineConnection {
    /// Returns the next request.
    func request() async throws -> IPCRequest? {
        guard let line = try await line() else { return nil }
        return try IPCRequest(line: line)
    }

    /// Answers `server.info`, and `node.list` if that is asked next; returns the request that
    /// follows.
    func greeted(
        boot: String = "one",
        registry: RegistryAvailability? = nil
    ) async throws -> IPCRequest? {
        guard let request = try await request(), request.method == ServerInfo.name else {
            return nil
        }
        let limits = ServerLimits(["rooms": 1])
        reply(
            request,
            ServerInfo.Result(
                version: "1",
                workers: 1,
                udp: [],
                fingerprint: "",
                limits: limits,
                boot: boot,
                started: 0
            )
        )
        let next = try await self.request()
        guard let list = next, list.method == NodeList.name else { return next }
        reply(list, NodeList.Result(registry: registry))
        return try await self.request()
    }

    func reply(_ request: IPCRequest, _ result: some Encodable) {
        send(IPCReply.encoded(id: request.id, result: result))
    }

    func event(_ room: RoomID, _ seq: Int64, closes: Bool = false) {
        send(
            closes
                ? IPCEvent.encoded(
                    RoomClosed(reason: "closed"),
                    room: room,
                    seq: seq,
                    time: 0,
                    audience: .all
                )
                : IPCEvent.encoded(
                    ParticipantLeft(participant: "p", reason: "left"),
                    room: room,
                    seq: seq,
                    time: 0,
                    audience: .all
                )
        )
    }
}
