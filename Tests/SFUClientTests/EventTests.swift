import JSON
import Synchronization
import Testing

@testable import Contract
@testable import SFUClient

@Suite(.timeLimit(.minutes(10))) struct EventTests {
    /// One step of an event sequence: its input and the expected output.
    struct Step: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var seen: [RoomID: Int64] = [:]
        var expectsEverything = false
        var closedAt: Int64?
        var seq: Int64
        var gives: String?
    }

    static let steps = [
        Step(testDescription: "first of an unknown room", seq: 7, gives: "participant.left"),
        Step(testDescription: "next", seen: ["r": 6], seq: 7, gives: "participant.left"),
        Step(testDescription: "repeated", seen: ["r": 7], seq: 7, gives: nil),
        Step(testDescription: "gap", seen: ["r": 5], seq: 7, gives: "resync"),
        Step(
            testDescription: "new room after a reconnect",
            expectsEverything: true,
            seq: 1,
            gives: "participant.left"
        ),
        Step(
            testDescription: "start of a room missed",
            expectsEverything: true,
            seq: 2,
            gives: "resync"
        ),
    ]

    @Test(arguments: steps)
    func `gives each event once and in order`(_ step: Step) {
        var positions = EventPositions(seen: step.seen)
        if let seq = step.closedAt {
            let closed = IPCEvent(
                event: "room.closed",
                room: "r",
                seq: seq,
                time: 0,
                audience: .all,
                data: [:]
            )
            #expect(positions.take(closed) == closed)
        }
        positions.expectsEverything = step.expectsEverything
        let event = IPCEvent(
            event: "participant.left",
            room: "r",
            seq: step.seq,
            time: 0,
            audience: .all,
            data: [:]
        )
        #expect(positions.take(event)?.event == step.gives)
    }

    @Test func `goes on after the last event when the connection was lost`() async throws {
        let server = FakeServer(accepting: [true, false, false, true])
        let client = SFUClient(dialer: server.dialer, options: server.options)
        let events = client.events(rooms: ["r"], since: ["r": 4])
        let listener = Task {
            var seen: [String] = []
            for try await event in events {
                seen.append("\(event.event) \(event.seq)")
                if seen.count == 5 { break }
            }
            return seen
        }

        let first = try #require(await server.connection())
        let subscribe = try #require(try await first.greeted())
        #expect(subscribe.method == "events.subscribe")
        #expect(subscribe.params == ["rooms": ["r"], "since": ["r": 4]])
        first.event("r", 5)
        first.reply(subscribe, Done())
        first.event("r", 6)
        try await drain(first)

        let second = try #require(await server.connection())
        let again = try #require(try await second.greeted())
        #expect(again.params == ["rooms": ["r"], "since": ["r": 6]])
        second.reply(again, Done())
        second.event("r", 6)
        second.event("r", 7)
        second.send(
            IPCEvent.encoded(
                Resync(reason: "expired"),
                room: "r",
                seq: 90,
                time: 0,
                audience: .participants([])
            )
        )
        second.event("r", 91)
        #expect(
            try await listener.value == [
                "participant.left 5", "participant.left 6", "participant.left 7", "resync 90",
                "participant.left 91",
            ]
        )
        let pauses = server.pauses.withLock { $0 }
        #expect(pauses.count == 3)
        for (pause, most) in zip(pauses, [50, 100, 200]) {
            #expect(pause <= .milliseconds(most) && pause >= .milliseconds(most) * 0.75)
        }
    }

    /// Closes a connection such that all that was sent on it arrives first.
    func drain(_ connection: LineConnection) async throws {
        connection.finish()
        while try await connection.line() != nil {}
    }

    @Test func `requests rooms created meanwhile from their first event`() async throws {
        let server = FakeServer()
        let client = SFUClient(dialer: server.dialer, options: server.options)
        let listener = Task {
            var seen: [String] = []
            for try await event in client.events() {
                seen.append("\(event.room?.rawValue ?? "-") \(event.seq)")
                if seen.count == 4 { break }
            }
            return seen
        }
        let first = try #require(await server.connection())
        let subscribe = try #require(try await first.greeted())
        #expect(subscribe.params == [:])
        first.reply(subscribe, Done())
        first.event("a", 12)
        first.event("b", 3, closes: true)
        try await drain(first)

        let second = try #require(await server.connection())
        let list = try #require(try await second.greeted())
        #expect(list.method == "room.list")
        let rooms = ["a", "c"].map {
            RoomSummary(room: $0, state: .ongoing, created: 0)
        }
        second.reply(list, RoomList.Result(rooms: rooms))
        let again = try #require(try await second.request())
        #expect(again.params == ["since": ["a": 12, "c": 0]])
        second.event("c", 1)
        second.reply(again, Done())
        second.event("d", 1)
        #expect(try await listener.value == ["a 12", "b 3", "c 1", "d 1"])
    }

    /// The daemon that answers with another boot, and what the client asks of it and tells.
    struct OtherBoot: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var registry: RegistryAvailability?
        var since: JSON
        /// Number of the first event after it.
        var next: Int64
        var events: [String]
    }

    static let otherBoots = [
        OtherBoot(
            testDescription: "a daemon that has begun again is told, and gives its first event",
            since: ["r": 0],
            next: 1,
            events: ["participant.left 40", "resync 0", "participant.left 1"]
        ),
        OtherBoot(
            testDescription: "another node of a cluster goes on after the last event",
            registry: .away,
            since: ["r": 40],
            next: 41,
            events: ["participant.left 40", "participant.left 41"]
        ),
    ]

    @Test(arguments: otherBoots)
    func `resumes at another boot`(_ other: OtherBoot) async throws {
        let server = FakeServer()
        let client = SFUClient(dialer: server.dialer, options: server.options)
        let listener = Task {
            var seen: [String] = []
            for try await event in client.events(rooms: ["r"]) {
                seen.append("\(event.event) \(event.seq)")
                if seen.count == other.events.count { break }
            }
            return seen
        }
        let first = try #require(await server.connection())
        let subscribe = try #require(try await first.greeted())
        first.reply(subscribe, Done())
        first.event("r", 40)
        try await drain(first)

        let second = try #require(await server.connection())
        let again = try #require(
            try await second.greeted(boot: "another", registry: other.registry)
        )
        #expect(again.params == ["rooms": ["r"], "since": other.since])
        second.reply(again, Done())
        second.event("r", other.next)
        #expect(try await listener.value == other.events)
    }

    @Test func `rooms that are gone are told, also if the connection ends before the subscription`()
        async throws
    {
        let server = FakeServer()
        let client = SFUClient(dialer: server.dialer, options: server.options)
        let listener = Task {
            var seen: [String] = []
            for try await event in client.events(rooms: ["r"]) {
                seen.append("\(event.event) \(event.seq)")
                if seen.count == 3 { break }
            }
            return seen
        }
        let first = try #require(await server.connection())
        first.reply(try #require(try await first.greeted()), Done())
        first.event("r", 40)
        try await drain(first)
        let second = try #require(await server.connection())
        _ = try await second.greeted(boot: "another")
        try await drain(second)
        let third = try #require(await server.connection())
        third.reply(try #require(try await third.greeted(boot: "another")), Done())
        third.event("r", 1)
        let seen = try await listener.value
        #expect(seen == ["participant.left 40", "resync 0", "participant.left 1"])
    }

    @Test func `subscribe returns once sfud has subscribed, and keeps the events since`()
        async throws
    {
        let server = FakeServer()
        let client = SFUClient(dialer: server.dialer, options: server.options)
        let isSubscribed = Mutex(false)
        let listener = Task {
            var events = client.events().makeAsyncIterator()
            try await events.subscribe()
            isSubscribed.withLock { $0 = true }
            try await events.subscribe()  // it is already
            var seen: [Int64] = []
            while seen.count < 3, let event = try await events.next() { seen.append(event.seq) }
            return seen
        }
        let connection = try #require(await server.connection())
        let request = try #require(try await connection.greeted())
        #expect(request.method == "events.subscribe")
        connection.event("r", 1)  // an event may come before the reply
        for _ in 0..<100 { await Task.yield() }
        #expect(!isSubscribed.withLock { $0 })
        connection.reply(request, Done())
        connection.event("r", 2)
        connection.event("r", 3)
        #expect(try await listener.value == [1, 2, 3])
        #expect(isSubscribed.withLock { $0 })
    }

    @Test func `subscribe throws what keeps it from subscribing`() async throws {
        let absent = FakeServer(accepting: [false])
        var events = SFUClient(dialer: absent.dialer, options: absent.options).events()
            .makeAsyncIterator()
        await #expect(throws: ClientError.unreachable(path: "fake", cause: "refused")) {
            try await events.subscribe()
        }

        let server = FakeServer()
        let client = SFUClient(dialer: server.dialer, options: server.options)
        let listener = Task {
            await settled { () throws(ClientError) in
                var events = client.events().makeAsyncIterator()
                try await events.subscribe()
                return true
            }
        }
        let connection = try #require(await server.connection())
        let request = try #require(try await connection.greeted())
        connection.send(IPCReply.encoded(id: request.id, error: .draining()))
        #expect(await listener.value == .failure(.refused(.draining())))
    }

    @Test func `a refused subscription is thrown`() async throws {
        let server = FakeServer()
        let client = SFUClient(dialer: server.dialer, options: server.options)
        let listener = Task {
            await settled { () throws(ClientError) in
                var iterator = client.events().makeAsyncIterator()
                return try await iterator.next()
            }
        }
        let connection = try #require(await server.connection())
        let subscribe = try #require(try await connection.greeted())
        connection.send(IPCReply.encoded(id: subscribe.id, error: .draining()))
        #expect(await listener.value == .failure(.refused(.draining())))
    }

    @Test func `a first connection that fails is thrown`() async throws {
        let server = FakeServer(accepting: [false])
        let client = SFUClient(dialer: server.dialer, options: server.options)
        var iterator = client.events().makeAsyncIterator()
        await #expect(throws: ClientError.unreachable(path: "fake", cause: "refused")) {
            _ = try await iterator.next()
        }
    }

    @Test func `cancelling ends the sequence and the connection`() async throws {
        let server = FakeServer()
        let client = SFUClient(dialer: server.dialer, options: server.options)
        let listener = Task {
            var count = 0
            for try await _ in client.events() { count += 1 }
            return count
        }
        let connection = try #require(await server.connection())
        let subscribe = try #require(try await connection.greeted())
        connection.reply(subscribe, Done())
        listener.cancel()
        #expect(try await listener.value == 0)
        #expect(try await connection.line() == nil)
    }
}

@Suite struct LineBufferTests {
    @Test func `joins lines wherever they were split`() throws {
        let text = "a\n\nbc\nde".bytes
        for size in 1...text.count {
            var buffer = LineBuffer(limit: 4)
            var lines: [String] = []
            for start in stride(from: 0, to: text.count, by: size) {
                let chunk = text[start..<min(start + size, text.count)]
                buffer.append { $0.append(contentsOf: chunk) }
                while let line = try buffer.next() { lines.append(line.text) }
            }
            #expect(lines == ["a", "", "bc"])
        }
    }

    @Test func `a line of the limit passes, one more byte does not`() throws {
        var exact = LineBuffer(limit: 4)
        exact.append { $0.append(contentsOf: "abcd\n".bytes) }
        #expect(try exact.next() == "abcd".bytes)
        var long = LineBuffer(limit: 4)
        long.append { $0.append(contentsOf: "abcde".bytes) }
        #expect(throws: ClientError.self) { _ = try long.next() }
    }
}
