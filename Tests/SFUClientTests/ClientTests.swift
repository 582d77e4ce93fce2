import Testing

@testable import Contract
@testable import JSON
@testable import SFUClient

/// Options under which nothing ever times out.
private var patient: ClientOptions {
    var options = ClientOptions()
    options.sleep = { _ in
        let (never, _) = AsyncStream<Void>.makeStream()
        for await _ in never {}
        try Task.checkCancellation()
    }
    return options
}

@Suite(.timeLimit(.minutes(10))) struct ClientTests {
    @Test func `replies find their calls in any order`() async throws {
        let server = FakeServer()
        let client = SFUClient(dialer: server.dialer, options: patient)
        async let streams = (0..<100).asyncMap { index in
            try await client.call("echo", ["index": .integer(Int64(index))])
        }
        let connection = try #require(await server.connection())
        var requests: [IPCRequest] = []
        while requests.count < 100, let request = try await connection.request() {
            requests.append(request)
        }
        for request in requests.reversed() { connection.reply(request, request.params) }
        let expected: [JSON] = (0..<100).map { ["index": .integer(Int64($0))] }
        #expect(try await streams == expected)
        await client.close()
    }

    @Test func `typed methods call by their names`() async throws {
        let server = FakeServer()
        let client = SFUClient(dialer: server.dialer, options: patient)
        async let closed = client.closeRoom("r1", by: "m1", detail: "over")
        let connection = try #require(await server.connection())
        let request = try #require(try await connection.request())
        #expect(request.method == "room.close")
        #expect(request.params == ["room": "r1", "by": "m1", "detail": "over"])
        let done = Done(fence: Fence(time: 1.5, packets: 2))
        connection.reply(request, done)
        #expect(try await closed == done)
        await client.close()
    }

    @Test(arguments: [0, 1])
    func `a line of any length that the contract allows is read`(surplus: Int) async throws {
        let server = FakeServer()
        let client = SFUClient(dialer: server.dialer, options: patient)
        async let outcome = settled { () throws(ClientError) in
            try await client.call("room.list", [:])
        }
        let connection = try #require(await server.connection())
        let request = try #require(try await connection.request())
        let frame = IPCReply.encoded(id: request.id, result: JSON.string(""))
        let length = IPCRequest.lineLimit - frame.count + surplus
        let text = String(repeating: "x", count: length)
        let long = JSON.string(text)
        connection.send(frame.dropLast(2) + Array(text.utf8) + frame.suffix(2))
        let tooLong = ClientError.protocolViolation("a line of more than 1048576 bytes")
        #expect(await outcome == (surplus == 0 ? .success(long) : .failure(tooLong)))
        await client.close()
    }

    @Test func `a list is read page by page`() async throws {
        let server = FakeServer()
        let client = SFUClient(dialer: server.dialer, options: patient)
        async let rooms = client.rooms(state: .ongoing)
        let connection = try #require(await server.connection())
        var asked: [JSON] = []
        for (room, next): (RoomID, PageCursor?) in [("a", "a"), ("b", nil)] {
            let request = try #require(try await connection.request())
            asked.append(request.params)
            let page = [RoomSummary(room: room, state: .ongoing, created: 1)]
            connection.reply(request, RoomList.Result(rooms: page, next: next))
        }
        #expect(try await rooms.map(\.room) == ["a", "b"])
        #expect(asked == [["state": "ongoing"], ["state": "ongoing", "after": "a"]])
        await client.close()
    }

    @Test func `a refusal is thrown as sfud wrote it`() async throws {
        let server = FakeServer()
        let client = SFUClient(dialer: server.dialer, options: patient)
        async let outcome = settled { () throws(ClientError) in try await client.room("r1") }
        let connection = try #require(await server.connection())
        let request = try #require(try await connection.request())
        connection.send(IPCReply.encoded(id: request.id, error: .noSuchRoom("r1")))
        #expect(await outcome == .failure(.refused(.noSuchRoom("r1"))))
        await client.close()
    }

    @Test func `calls under way fail when the connection ends, and the next one reconnects`()
        async throws
    {
        let server = FakeServer()
        let client = SFUClient(dialer: server.dialer, options: patient)
        async let lost = settled { () throws(ClientError) in try await client.rooms() }
        let first = try #require(await server.connection())
        _ = try await first.request()
        first.close()
        #expect(await lost == .failure(.connectionLost))

        async let again = client.rooms()
        let second = try #require(await server.connection())
        let request = try #require(try await second.request())
        second.reply(request, RoomList.Result(rooms: []))
        #expect(try await again == [])
        await client.close()
    }

    @Test func `a silent server is a timeout`() async {
        let server = FakeServer()
        let client = SFUClient(dialer: server.dialer, options: server.options)
        let outcome = await settled { () throws(ClientError) in try await client.rooms() }
        #expect(outcome == .failure(.timeout))
        await client.close()
    }

    @Test func `a cancelled call comes back`() async throws {
        let server = FakeServer()
        let client = SFUClient(dialer: server.dialer, options: patient)
        let call = Task { await settled { () throws(ClientError) in try await client.rooms() } }
        let connection = try #require(await server.connection())
        _ = try await connection.request()
        call.cancel()
        #expect(await call.value == .failure(.cancelled))
        await client.close()
    }

    @Test func `more calls than the limit are refused here`() async throws {
        let server = FakeServer()
        var options = patient
        options.callLimit = 0
        let client = SFUClient(dialer: server.dialer, options: options)
        let outcome = await settled { () throws(ClientError) in try await client.rooms() }
        #expect(outcome == .failure(.limit("0 calls are under way")))
        let long = JSON.string(String(repeating: "x", count: IPCRequest.lineLimit))
        let wide = SFUClient(dialer: server.dialer, options: patient)
        let outcome2 = await settled { () throws(ClientError) in try await wide.call("m", long) }
        #expect(outcome2 == .failure(.limit("the params are too long")))
    }

    /// The line has two levels above a payload: its own object, and the params.
    @Test(arguments: [63, 64, 65, 100])
    func `params that sfud could not read are refused here`(levels: Int) async {
        let client = SFUClient(dialer: FakeServer().dialer, options: patient)
        let params = MessagePublish.Params(
            room: "r",
            topic: "t",
            message: "m",
            payload: .nested(levels)
        )
        let tooDeep = ClientError.limit("the params are nested too deep")
        let typed = await settled { () throws(ClientError) in
            _ = try await client.call(MessagePublish.self, params)
        }
        guard case .failure(tooDeep) = typed else {
            Issue.record("typed: \(typed)")
            return
        }
        let byName = await settled { () throws(ClientError) in
            try await client.call("message.publish", ["payload": .nested(levels)])
        }
        #expect(byName == .failure(tooDeep))
    }

    @Test func `params of as many levels as sfud reads are sent`() async throws {
        let server = FakeServer()
        let client = SFUClient(dialer: server.dialer, options: patient)
        let params: JSON = ["payload": .nested(62)]
        async let answer = client.call("message.publish", params)
        let connection = try #require(await server.connection())
        let request = try #require(try await connection.request())
        #expect(request.params == params)
        connection.reply(request, Done())
        #expect(try await answer == [:])
        await client.close()
    }

    static let nonsense: [Row<String, Void>] = [
        Row("not JSON", "hello", ()),
        Row("no reply", "{}", ()),
        Row("a reply to nothing", #"{"jsonrpc":"2.0","id":null,"result":{}}"#, ()),
        Row("too long", String(repeating: " ", count: IPCRequest.lineLimit + 1), ()),
    ]

    @Test(arguments: nonsense)
    func `nonsense ends the connection`(_ row: Row<String, Void>) async throws {
        let server = FakeServer()
        let client = SFUClient(dialer: server.dialer, options: patient)
        async let outcome = settled { () throws(ClientError) in try await client.rooms() }
        let connection = try #require(await server.connection())
        _ = try await connection.request()
        connection.send(row.input.bytes)
        guard case .failure(.protocolViolation) = await outcome else {
            Issue.record("\(await outcome)")
            return
        }
        #expect(try await connection.request() == nil)
    }

    @Test func `no daemon, no connection`() async {
        for path in ["", "/nowhere/sfud.sock", String(repeating: "x", count: 200), "a\0b"] {
            let client = SFUClient(path: path)
            let outcome = await settled { () throws(ClientError) in try await client.connect() }
            guard case .failure(.unreachable(path, _)) = outcome else {
                Issue.record("\(path)")
                continue
            }
        }
    }
}

extension JSON {
    /// Returns arrays in arrays, so many levels of them.
    static func nested(_ levels: Int) -> JSON {
        var value = JSON.array([])
        for _ in 1..<levels { value = .array([value]) }
        return value
    }
}

/// Returns the outcome of an asynchronous operation.
func settled<Success: Sendable>(
    _ body: @Sendable () async throws(ClientError) -> Success
) async -> Result<Success, ClientError> {
    do throws(ClientError) {
        return .success(try await body())
    } catch {
        return .failure(error)
    }
}

extension Range<Int> {
    /// Runs all concurrently; returns results in order of the elements.
    func asyncMap(
        _ body: @Sendable @escaping (Int) async throws -> JSON
    ) async throws -> [JSON] {
        try await withThrowingTaskGroup(of: (Int, JSON).self) { group in
            for element in self { group.addTask { (element, try await body(element)) } }
            var results: [Int: JSON] = [:]
            for try await (element, json) in group { results[element] = json }
            return compactMap { results[$0] }
        }
    }
}
