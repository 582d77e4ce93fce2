import JSON
import RTP
import Rooms
import Testing

@testable import Contract
@testable import ControlPlane
@testable import WorkerInterface

/// `stats.subscribe`: lines in, lines out.
@Suite struct StatisticsFeedTests {
    /// Lets time pass, and answers what workers are asked for with figures of their transports.
    private func wait(_ milliseconds: Int64, _ driver: inout ControlDriver) {
        let end = driver.now.advanced(milliseconds: milliseconds)
        while driver.now < end {
            driver.now = min(end, driver.now.advanced(milliseconds: 10))
            driver.plane.expire(at: driver.now)
            driver.drain()
            answer(&driver)
        }
    }

    private func answer(_ driver: inout ControlDriver) {
        for (worker, ids, token) in driver.takeReports() {
            var statistics = WorkerStatistics()
            statistics.time = driver.now
            for id in ids {
                var one = TransportStatistics(id: id)
                one.isTCP = worker == 1
                one.estimate = 2_000_000
                one.roundTripNanoseconds = 30_000_000
                statistics.transports.append(one)
            }
            driver.tell(.statistics(token: token, statistics), from: worker)
        }
    }

    private func rooms(_ driver: inout ControlDriver) -> [String?] {
        driver.takeStatistics().map { $0.event.room?.rawValue }
    }

    @Test func `each room comes once in each interval, to the subscriber alone`() throws {
        var driver = ControlDriver(workers: 2)
        try driver.room("r")
        try driver.room("empty")
        try driver.join("a")
        try driver.offer("a", "0:audio:sendonly")
        _ = driver.takeEvents()
        wait(3_000, &driver)
        #expect(driver.tokens.isEmpty, "what nobody subscribes to costs nothing")

        try driver.done("stats.subscribe", ["seconds": 2])
        wait(1_900, &driver)
        let first = try #require(driver.takeStatistics().first)
        #expect(first.connection == driver.connection)
        #expect(first.event.event == "stats" && first.event.seq == 0)
        #expect(first.event.audience == .participants([]))
        let stats = try #require(try first.event.data(as: RoomStats.self))
        let transport = try #require(stats.transports.first)
        #expect(transport.participant == "a" && transport.protocol == .udp)
        #expect(transport.estimate == 2_000_000 && transport.roundTripTime == 30)
        let seconds = Double(driver.now.nanoseconds) / 1e9
        let time = try #require(transport.time)
        #expect(abs(time - (ControlDriver.startTime - 1 + seconds)) < 2)
        #expect(stats.part == 1 && stats.next == nil)
        #expect(driver.takeEvents() == [])

        wait(200, &driver)
        #expect(rooms(&driver) == ["r"])
        wait(6_000, &driver)
        #expect(rooms(&driver) == ["r", "r", "r"])
        #expect(driver.tokens.count == 5, "one report a round, although there are two rooms")
    }

    @Test func `a second subscription replaces the first, and both kinds of end end it`() throws {
        var driver = ControlDriver()
        for room in ["r", "s"] {
            try driver.room(room)
            try driver.done("participant.join", ["room": .string(room), "participant": "a"])
        }
        try driver.done("stats.subscribe", ["seconds": 60])
        wait(100, &driver)
        #expect(rooms(&driver) == ["r", "s"])
        try driver.done("stats.subscribe", ["seconds": 1, "rooms": ["s", "later", "s"]])
        wait(2_100, &driver)
        #expect(rooms(&driver) == ["s", "s", "s"])
        try driver.room("later")
        try driver.done("participant.join", ["room": "later", "participant": "a"])
        wait(1_000, &driver)
        #expect(rooms(&driver) == ["later", "s"])

        try driver.done("stats.unsubscribe")
        wait(3_000, &driver)
        #expect(rooms(&driver) == [] && driver.plane.deadline == nil)
        try driver.done("stats.unsubscribe")
        try driver.done("stats.subscribe", ["seconds": 1])
        driver.plane.connectionClosed(driver.connection)
        wait(3_000, &driver)
        #expect(rooms(&driver) == [] && driver.plane.deadline == nil)
        #expect(driver.plane.workerRequests.feeds.count == 0)
    }

    @Test func `who waits to be let in has statistics, too`() throws {
        var driver = ControlDriver()
        try driver.room("r", ["knock": true])
        try driver.join("k")
        try driver.offer("k", "0:audio:sendonly")
        for params in [["room": "r"], ["room": "r", "participant": "k"]] as [JSON] {
            let id = driver.send("stats.get", params)
            answer(&driver)
            let reply = try #require(try driver.replies[id]?.get())
            let transports = try reply.decode(StatsGet.Result.self).transports
            #expect(transports.map(\.participant) == ["k"])
            #expect(transports.first?.estimate == 2_000_000)
        }
        try driver.done("stats.subscribe", ["seconds": 1])
        wait(100, &driver)
        let event = try #require(driver.takeStatistics().first?.event)
        let stats = try #require(try event.data(as: RoomStats.self))
        #expect(stats.transports.map(\.participant) == ["k"])
    }

    @Test func `an answer that comes after the end is ignored`() throws {
        var driver = ControlDriver()
        try driver.room()
        try driver.join("a")
        try driver.offer("a", "0:audio:sendonly")
        try driver.done("stats.subscribe", ["seconds": 1])
        driver.plane.expire(at: driver.now)
        driver.drain()
        #expect(driver.tokens.count == 1)
        #expect(driver.plane.deadline == nil, "no second question before the first is answered")
        try driver.done("stats.unsubscribe")
        answer(&driver)
        #expect(rooms(&driver) == [])
    }

    @Test func `a room that closes meanwhile has no statistics`() throws {
        var driver = ControlDriver()
        try driver.room()
        try driver.join("a")
        try driver.offer("a", "0:audio:sendonly")
        try driver.done("stats.subscribe", ["seconds": 1])
        driver.plane.expire(at: driver.now)
        driver.drain()
        try driver.done("room.close", ["room": "r"])
        answer(&driver)
        wait(1_000, &driver)
        #expect(rooms(&driver) == [])
        driver.plane.connectionClosed(driver.connection)
        #expect(driver.plane.leakedObjects == [])
    }

    @Test func `a large room comes in parts, and others come between`() throws {
        var driver = ControlDriver(workers: 2)
        try driver.room()
        let lines = (0..<40).map { "\($0):audio:recvonly" }
        for number in 0..<30 {
            try driver.join("p\(number)")
            try driver.done(
                "transport.offer",
                [
                    "room": "r", "participant": .string("p\(number)"),
                    "sdp": .string(TestOffer(lines).text),
                ]
            )
        }
        try driver.room("z")
        try driver.done("participant.join", ["room": "z", "participant": "a"])
        try driver.done("stats.subscribe", ["seconds": 1])
        driver.plane.expire(at: driver.now)
        driver.drain()
        answer(&driver)
        #expect(driver.takeStatistics().count == 1, "one turn at a time")
        wait(900, &driver)
        try driver.done("stats.subscribe", ["seconds": 60])
        wait(900, &driver)
        let told = driver.takeStatistics().map(\.event).suffix(5)
        #expect(told.map(\.room) == ["r", "r", "r", "r", "z"])
        let parts = try told.prefix(4).map { try #require(try $0.data(as: RoomStats.self)) }
        #expect(parts.map(\.part) == [1, 2, 3, 4])
        #expect(parts.map(\.next) == [2, 3, 4, nil])
        #expect(
            parts.flatMap(\.transports).map(\.participant.rawValue) == (0..<30).map { "p\($0)" }
        )
        #expect(Set(parts.flatMap(\.transports).map(\.protocol)) == [.udp, .tcp])
    }

    @Test func `ten thousand rooms are asked for in turns, each once a round`() throws {
        var driver = ControlDriver()
        let names = (0..<1_000).map { "r\(1_000 + $0)" }
        for name in names {
            try driver.room(name)
            try driver.done("participant.join", ["room": .string(name), "participant": "a"])
        }
        driver.events = []
        try driver.done("stats.subscribe", ["seconds": 10])
        driver.plane.expire(at: driver.now)
        driver.drain()
        let first = rooms(&driver).count
        #expect(first > 0 && first <= StatisticsFeeds.entriesPerTurn)
        wait(9_000, &driver)
        #expect(first + rooms(&driver).count == names.count)
    }

    @Test(
        arguments: [
            ["seconds": 0], ["seconds": 61], ["seconds": .number(1.5)], [:],
            ["seconds": 1, "rooms": ["ö"]],
            ["seconds": 1, "room": "r"],
        ] as [JSON]
    )
    func `wrong params are refused, and the subscription stays`(_ params: JSON) throws {
        var driver = ControlDriver()
        try driver.room()
        try driver.join("a")
        try driver.done("stats.subscribe", ["seconds": 1])
        guard case .failure(let refusal) = driver.call("stats.subscribe", params) else {
            Issue.record("it was done")
            return
        }
        #expect(refusal.reason == "invalid-params")
        wait(500, &driver)
        #expect(rooms(&driver) == ["r"])
    }

    @Test func `the largest statistics of one participant fit into a line`() {
        let id = String(repeating: "x", count: 128)
        let mid = Mid(rawValue: String(repeating: "m", count: 48)) ?? "m"
        var stream = StreamStats(
            stream: StreamID(id),
            participant: ParticipantID(id),
            mid: mid,
            kind: .video,
            codec: .h264,
            time: 1_795_237_878.088,
            encodings: []
        )
        for _ in 0..<CoreLimits.encodingsPerPublication {
            var encoding = EncodingStats(
                rid: String(repeating: "r", count: 16),
                ssrc: .max,
                active: true
            )
            encoding.packets = .max
            encoding.bytes = .max
            encoding.jitter = 123_456.789_012_345
            stream.encodings.append(encoding)
        }
        let data = RoomStats(streams: Array(repeating: stream, count: 200))
        let line = IPCEvent.encoded(
            data,
            room: RoomID(id),
            seq: 0,
            time: 0,
            audience: .participants([])
        )
        #expect(line.count < 1 << 20)
    }
}
