import RTP
import Testing
import WorkerInterface

@testable import Contract
@testable import ControlPlane
@testable import JSON

@Suite struct ControlCallTests {
    @Test func `two people in a call`() throws {
        var driver = ControlDriver()
        try driver.room()
        try driver.join("a")
        try driver.join("b")
        #expect(
            driver.takeEvents() == ["room.created", "participant.joined", "participant.joined"]
        )
        let sent = try driver.offer("a", "0:audio:sendonly", "1:video:sendonly")
        #expect(sent.map(\.direction) == [.recvonly, .recvonly])
        let stream = try #require(sent[0].stream)
        #expect(sent[1].stream == stream)
        #expect(driver.events.map(\.event) == ["stream.created"])
        #expect(driver.events[0].audience == .all)

        try driver.offer("b", "0:audio:recvonly", "1:video:recvonly")
        driver.commands = []
        let subscription = try driver.watch("b", stream)
        #expect(subscription.audioMid == "0" && subscription.videoMid == "1")
        let bindings = driver.takeCommands()
        #expect(bindings.count == 2)
        for case .bind(_, let binding?) in bindings { #expect(binding.open) }

        _ = driver.takeEvents()
        try driver.done("participant.leave", ["room": "r", "participant": "a"])
        #expect(driver.takeEvents() == ["stream.destroyed", "participant.left"])
        #expect(try driver.shown().participants.map(\.participant) == ["b"])
    }

    @Test func `a reply waits for its fence and events for the reply`() throws {
        var driver = ControlDriver()
        try driver.room()
        try driver.join("a")
        driver.holdsFences = true
        driver.trace = []
        let offer = driver.send(
            "transport.offer",
            ["room": "r", "participant": "a", "sdp": .string(TestOffer(["0:audio:sendonly"]).text)]
        )
        #expect(driver.trace == ["commands"])
        // Judged by the room's future state, and reported in the order of the calls.
        let get = driver.send("room.get", ["room": "r"])
        #expect(driver.trace == ["commands"])
        // Another room does not wait.
        let other = driver.send("room.create", ["room": "other"])
        #expect(driver.trace == ["commands", "reply \(other)", "room.created"])
        driver.fence()
        #expect(
            driver.trace.suffix(3) == ["reply \(offer)", "stream.created", "reply \(get)"]
        )
        let room = try #require(try driver.replies[get]?.get()).decode(RoomInfo.self)
        #expect(room.seq == 3)
        #expect(room.streams?.count == 1)
    }

    @Test func `a mute says when the gate closed and what had passed`() throws {
        var driver = ControlDriver()
        try driver.room()
        try driver.join("a")
        let stream = try #require(try driver.offer("a", "0:audio:sendonly")[0].stream)
        driver.holdsFences = true
        driver.commands = []
        let mute: JSON = ["room": "r", "stream": .string(stream.rawValue), "audio": false]
        let first = driver.send("stream.update", mute)
        guard case .gate(_, open: false)? = driver.takeCommands().first else {
            Issue.record("no gate was closed")
            return
        }
        #expect(driver.replies[first] == nil)
        driver.fence(packets: 17)
        let fence = try #require(try driver.replies[first]?.get()).decode(Done.self).fence
        #expect(fence?.packets == 17)
        #expect(abs((fence?.time ?? 0) - ControlDriver.startTime) < 60)

        // A call without any effect is fenced all the same.
        _ = driver.takeEvents()
        let again = driver.send("stream.update", mute)
        let none = try #require(try driver.replies[again]?.get()).decode(Done.self).fence
        #expect(none?.packets == 0)
        #expect(driver.takeEvents() == [])
        #expect(driver.takeCommands() == [])
    }

    @Test func `seq has no gaps and since replays what was missed`() throws {
        var limits = ControlLimits()
        limits.eventsPerRoom = 4
        var driver = ControlDriver(limits: limits)
        try driver.room()
        for index in 0..<5 { try driver.join("p\(index)") }
        #expect(driver.events.map(\.seq) == Array(1...6))

        let rows: [(since: Int64, expected: [String])] = [
            (6, []), (4, ["5", "6"]), (2, ["3", "4", "5", "6"]), (1, ["resync 6"]),
            (7, ["resync 6"]),
        ]
        for row in rows {
            try driver.done("events.subscribe", ["since": ["r": .integer(row.since)]])
            let replay = try #require(driver.subscribed.last).replay.map {
                $0.event == "resync" ? "resync \($0.seq)" : "\($0.seq)"
            }
            #expect(replay == row.expected, "since \(row.since)")
        }
        try driver.done("events.subscribe", ["since": ["gone": 1]])
        #expect(driver.subscribed.last?.replay.map(\.event) == ["resync"])
        #expect(driver.trace.suffix(2) == ["reply 12", "subscribe"])
    }

    @Test func `seq goes on in a room of the same name`() throws {
        var driver = ControlDriver()
        try driver.room()
        try driver.done("room.close", ["room": "r"])
        try driver.room()
        #expect(driver.events.map(\.event) == ["room.created", "room.closed", "room.created"])
        #expect(driver.events.map(\.seq) == [1, 2, 3])
    }

    @Test func `shutdown ends rooms and then exits`() throws {
        var driver = ControlDriver()
        try driver.room()
        try driver.join("a")
        try driver.offer("a", "0:audio:sendonly")
        _ = driver.takeEvents()
        driver.plane.shutdown(at: driver.now)
        driver.drain()
        #expect(!driver.hasExited)
        #expect(driver.plane.deadline != nil)
        #expect(throws: IPCError.draining()) { try driver.room("late") }
        driver.fence()
        #expect(driver.hasExited)
        #expect(driver.plane.deadline == nil)
        #expect(driver.takeEvents() == ["stream.destroyed", "participant.left", "room.closed"])
    }

    @Test func `many rooms end in turns, each of them short`() throws {
        var driver = ControlDriver()
        for room in 0..<4 {
            try driver.room("r\(room)")
            for id in 0..<200 {
                let join: JSON = [
                    "room": .string("r\(room)"), "participant": .string("p\(id)"),
                    "snapshot": false,
                ]
                try driver.done("participant.join", join)
            }
        }
        driver.plane.shutdown(at: driver.now)
        driver.drain()
        driver.fence()
        #expect(driver.plane.roomCount == 1 && !driver.hasExited)
        let deadline = try #require(driver.plane.deadline)
        #expect(deadline <= driver.now, "the last one waits for nothing")
        driver.plane.expire(at: driver.now)
        driver.drain()
        driver.fence()
        #expect(driver.plane.roomCount == 0 && driver.hasExited)
    }

    @Test func `shutdown waits for no worker for ever`() throws {
        var driver = ControlDriver()
        try driver.room()
        try driver.join("a")
        try driver.offer("a", "0:audio:sendonly")
        driver.plane.shutdown(at: driver.now)
        let deadline = try #require(driver.plane.deadline)
        #expect(deadline.milliseconds(since: driver.now) < 2_000)
        driver.plane.expire(at: deadline)
        driver.drain()
        #expect(driver.hasExited)
    }
}
