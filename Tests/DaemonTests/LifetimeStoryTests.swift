import RTP
import TestSupport
import Testing

@testable import Contract
@testable import ControlPlane
@testable import JSON
@testable import Rooms
@testable import WorkerInterface

/// Rooms that stay empty, participants that stay disconnected, and ends in their order.
@Suite struct LifetimeStoryTests {
    @Test func `E-14 a room that stays empty ends, and one with somebody in it does not`() throws {
        var driver = ControlDriver()
        try driver.room("r")
        try driver.room("long", ["emptySeconds": 3_600])
        try driver.room("standing", ["emptySeconds": .null])
        driver.pass(milliseconds: 30_000)
        try driver.join("a")
        driver.pass(milliseconds: 120_000)
        try driver.done("participant.leave", ["room": "r", "participant": "a"])
        driver.pass(milliseconds: 59_000)
        _ = driver.takeEventSummaries()
        driver.pass(milliseconds: 1_000)
        #expect(driver.events.last?.data == ["reason": "empty"])
        #expect(driver.takeEventSummaries() == ["room.closed all"])
        driver.pass(milliseconds: 3_600_000)
        #expect(driver.plane.rooms.names == ["standing"])
        #expect(driver.takeEvents() == ["room.closed"])
        #expect(driver.plane.deadline == nil)
        // The name is free again.
        try driver.room("r")
    }

    @Test func `E-14 one who knocks is waited for`() throws {
        var driver = ControlDriver()
        try driver.room("r", ["knock": true, "emptySeconds": 5])
        try driver.join("a")
        driver.pass(milliseconds: 60_000)
        #expect(driver.plane.rooms.names == ["r"])
        try driver.done("participant.deny", ["room": "r", "participant": "a"])
        driver.pass(milliseconds: 5_000)
        #expect(driver.plane.rooms.isEmpty)
    }

    @Test func `null is never, and what is left out stays`() throws {
        var driver = ControlDriver()
        try driver.room("r", ["emptySeconds": .null])
        var shown = try driver.done("room.get", ["room": "r"])["settings"]
        #expect(shown?["emptySeconds"] == .null && shown?["disconnectedSeconds"] == 120)
        try driver.done("room.update", ["room": "r", "settings": ["disconnectedSeconds": 7]])
        shown = try driver.done("room.get", ["room": "r"])["settings"]
        #expect(shown?["emptySeconds"] == .null && shown?["disconnectedSeconds"] == 7)
        #expect(try driver.shown().settings.emptySeconds == nil)
        let bad: [JSON] = [.integer(0), .integer(86_401), .string("60"), .number(1.5)]
        for seconds in bad {
            let params: JSON = ["room": "r", "settings": ["emptySeconds": seconds]]
            guard case .failure(let error) = driver.call("room.update", params) else {
                Issue.record("\(seconds) was taken")
                continue
            }
            #expect(error.details["parameter"] == "settings.emptySeconds")
        }
        // A shorter time counts from the moment at which the room became empty.
        driver.pass(milliseconds: 10_000)
        try driver.done("room.update", ["room": "r", "settings": ["emptySeconds": 5]])
        driver.pass(milliseconds: 1)
        #expect(driver.plane.rooms.isEmpty)
    }

    /// Makes a room in which `a`, `b` and `c` are connected and `d` has never been.
    private func connected(_ settings: JSON = [:]) throws -> ControlDriver {
        var driver = ControlDriver()
        try driver.room("r", settings)
        for id in ["a", "b", "c", "d"] { try driver.join(id, ["custom": ["of": .string(id)]]) }
        for id in ["a", "b", "c"] {
            try driver.offer(id, "0:audio:sendonly")
            driver.tell(.transport(try driver.transport(id), .connected))
        }
        driver.fence()
        _ = driver.takeEvents()
        return driver
    }

    private func lose(_ participant: String, _ driver: inout ControlDriver) throws {
        driver.tell(.transport(try driver.transport(participant), .disconnected(.timeout)))
        driver.fence()
    }

    @Test func `who stays disconnected leaves, and who returns or never connected stays`() throws {
        var driver = try connected()
        try lose("a", &driver)
        driver.pass(milliseconds: 60_000)
        try lose("b", &driver)
        try lose("c", &driver)
        try driver.join("b")
        driver.pass(milliseconds: 59_000)
        _ = driver.takeEvents()
        driver.pass(milliseconds: 1_000)
        let left = try #require(try driver.events.last?.data(as: ParticipantLeft.self))
        #expect(left.participant == "a" && left.reason == "disconnected")
        #expect(try #require(left.session).duration >= 120)
        #expect(driver.takeEventSummaries() == ["participant.left all"])
        #expect(driver.plane.rooms["r"]?.customs.keys.sorted() == ["b", "c", "d"])
        try driver.offer("c", "0:audio:sendonly")
        driver.pass(milliseconds: 600_000)
        #expect(try driver.shown().participants.map(\.participant) == ["b", "c", "d"])
        // A second loss counts from anew.
        try lose("c", &driver)
        driver.pass(milliseconds: 119_000)
        #expect(try driver.shown().participants.count == 3)
        driver.pass(milliseconds: 1_000)
        #expect(try driver.shown().participants.count == 2)
    }

    @Test func `a room empties by itself when all have lost their connections`() throws {
        var driver = try connected(["disconnectedSeconds": 10, "emptySeconds": 5])
        try driver.done("participant.leave", ["room": "r", "participant": "d"])
        for id in ["a", "b", "c"] { try lose(id, &driver) }
        _ = driver.takeEvents()
        driver.pass(milliseconds: 10_000)
        #expect(driver.takeEvents().filter { $0 == "participant.left" }.count == 3)
        driver.pass(milliseconds: 5_000)
        #expect(driver.takeEvents() == ["room.closed"])
        #expect(driver.plane.leakedObjects.isEmpty)
    }

    @Test func `without a limit the disconnected stay`() throws {
        var driver = try connected(["disconnectedSeconds": .null])
        try lose("a", &driver)
        driver.pass(milliseconds: 86_400_000)
        #expect(try driver.shown().participants.count == 4)
        try driver.done("room.update", ["room": "r", "settings": ["disconnectedSeconds": 60]])
        driver.pass(milliseconds: 1)
        #expect(try driver.shown().participants.count == 3)
    }

    @Test func `who comes and goes leaves nothing behind one who stays away`() throws {
        var driver = try connected(["disconnectedSeconds": .null])
        try lose("b", &driver)
        for _ in 0..<200 {
            try lose("a", &driver)
            try driver.offer("a", "0:audio:sendonly")
        }
        let noted = try #require(driver.plane.rooms["r"]).room.absences.count
        #expect(noted <= 40)
        // Each counts from its own loss, the last one of "a" from now.
        try lose("a", &driver)
        try driver.done("room.update", ["room": "r", "settings": ["disconnectedSeconds": 60]])
        driver.pass(milliseconds: 59_900)
        #expect(try driver.shown().participants.map(\.participant) == ["a", "c", "d"])
        driver.pass(milliseconds: 200)
        #expect(try driver.shown().participants.map(\.participant) == ["c", "d"])
    }

    @Test func `a takeover tells the server alone that the former one is out`() throws {
        var driver = try connected()
        try driver.join("a")
        #expect(driver.events.map(\.event).last == "participant.joined")
        let left = try #require(driver.events.first { $0.event == "participant.left" })
        #expect(left.data["participant"] == "a" && left.data["reason"] == "replaced")
        #expect(left.audience == .participants([]))
        #expect(try driver.shown().participants.count == 4)
    }

    @Test func `E-16 who is denied leaves`() throws {
        var driver = try ControlDriver.moderated(["knock": true], people: ["k"])
        try driver.done("participant.deny", ["room": "r", "participant": "k", "by": "m"])
        #expect(driver.events.last?.data["reason"] == "denied")
        #expect(driver.takeEventSummaries().last == "participant.left k,m")
    }

    @Test func `L-9 an ended event tells its people, then goes, and is answered last`() throws {
        var driver = ControlDriver()
        try driver.room("r", ["mode": "single_host"])
        try driver.join("h", ["role": "moderator"])
        try driver.offer("h", "0:audio:sendonly")
        let transport = try driver.transport("h")
        _ = driver.takeEvents()
        _ = driver.takeCommands()
        driver.trace = []
        driver.holdsFences = true
        let end = driver.send("room.setState", ["room": "r", "state": "ended"])
        let other = driver.send("room.get", ["room": "r"])
        #expect(driver.takeGates() == [false], "the first part only closes the gates")
        #expect(driver.events.isEmpty && driver.replies.isEmpty == false)
        let (worker, epoch) = driver.fences.removeFirst()
        driver.now = driver.now.advanced(milliseconds: 500)
        driver.tell(.fenced(epoch: epoch, at: driver.now, packets: 3), from: worker)
        #expect(driver.takeEvents() == ["room.stateChanged", "stream.destroyed"])
        #expect(driver.takeCommands() == [.close(transport)])
        #expect(driver.replies[end] == nil && driver.replies[other] == nil)
        #expect(driver.plane.shared.identifiers[0].transports.used == 1)
        driver.now = driver.now.advanced(milliseconds: 500)
        driver.fence()
        let order = [
            "room.stateChanged", "stream.destroyed", "commands", "reply \(end)", "reply \(other)",
        ]
        #expect(driver.trace.suffix(5) == order[...])
        let fence = try #require(try driver.replies[end]?.get().decode(Done.self).fence)
        #expect(fence.packets == 3)
        let closed = ControlDriver.startTime + Double(driver.now.nanoseconds) / 1e9 - 1.5
        #expect(abs(fence.time - closed) < 0.01, "the time at which the gates were closed")
        #expect(driver.plane.shared.identifiers[0].transports.used == 0)
    }

    @Test func `L-9 an ended event tells those who still wait, too`() throws {
        var driver = ControlDriver()
        try driver.room("r", ["mode": "single_host", "knock": true])
        try driver.join("h", ["role": "moderator"])
        try driver.done("room.setState", ["room": "r", "state": "ready"])
        try driver.join("k")
        try driver.offer("k", "0:audio:recvonly")
        let transport = try driver.transport("k")
        driver.events = []
        driver.commands = []
        try driver.done("room.setState", ["room": "r", "state": "ended", "by": "h"])
        #expect(driver.events.allSatisfy { $0.data["by"] == "h" && $0.data["current"] == "ended" })
        #expect(driver.takeEventSummaries() == ["room.stateChanged all", "room.stateChanged k"])
        #expect(driver.takeCommands().contains(.close(transport)))
    }

    @Test func `L-9 a room that is closed meanwhile loses nothing`() throws {
        var driver = ControlDriver()
        try driver.room("r", ["mode": "single_host"])
        try driver.join("h", ["role": "moderator"])
        try driver.offer("h", "0:audio:sendonly")
        driver.holdsFences = true
        let end = driver.send("room.setState", ["room": "r", "state": "ended"])
        let close = driver.send("room.close", ["room": "r"])
        driver.fence()
        #expect(driver.replies[end] != nil && driver.replies[close] != nil)
        #expect(driver.events.last?.event == "room.closed")
        #expect(driver.plane.leakedObjects.isEmpty)
    }

    @Test func `L-10 a host goes and comes, and the others keep their connections`() throws {
        var driver = ControlDriver()
        try driver.room("r", ["mode": "single_host"])
        try driver.join("h", ["role": "moderator"])
        for state: JSON in ["ready", "ongoing"] {
            try driver.done("room.setState", ["room": "r", "state": state, "by": "h"])
        }
        try driver.join("p")
        try driver.offer("p", "0:audio:recvonly")
        for stay in ["participant.leave", "lost"] {
            let stream = try #require(try driver.offer("h", "0:audio:sendonly")[0].stream)
            for id in ["h", "p"]
            where try driver.shown().participants.contains(where: {
                $0.participant.rawValue == id && $0.connection == .connecting
            }) {
                driver.tell(.transport(try driver.transport(id), .connected))
            }
            try driver.watch("p", stream)
            let kept = try driver.transport("p")
            _ = driver.takeEvents()
            _ = driver.takeCommands()
            if stay == "lost" {
                try lose("h", &driver)
            } else {
                try driver.done(stay, ["room": "r", "participant": "h"])
            }
            #expect(driver.takeEvents().contains("stream.destroyed"))
            #expect(!driver.takeCommands().contains(.close(kept)))
            #expect(try driver.transport("p") == kept)
            let shown = try driver.shown()
            #expect(shown.state == .ongoing && shown.streams.isEmpty)
            try driver.join("h", ["role": "moderator"])
            _ = driver.takeEvents()
        }
        let stream = try #require(try driver.offer("h", "0:audio:sendonly")[0].stream)
        #expect(driver.takeEventSummaries() == ["stream.created all"])
        try driver.watch("p", stream)
        let bound = driver.takeCommands().contains { command in
            if case .bind(_, let binding?) = command { binding.open } else { false }
        }
        #expect(bound, "it is forwarded at once")
    }

    @Test func `an end of a subscription says why, and whether it is one`() throws {
        let settings: JSON = [
            "roles": [
                ["name": "participant", "publish": ["audio": true, "video": true]],
                ["name": "deaf", "publish": ["audio": true], "subscribe": ["roles": []]],
            ]
        ]
        var driver = ControlDriver()
        try driver.room("r", settings)
        for id in ["a", "b"] { try driver.join(id) }
        let stream = try #require(try driver.offer("a", "0:audio:sendonly")[0].stream)
        try driver.offer("b", "0:audio:recvonly")
        try driver.watch("b", stream)
        for case .bind(let slot, let binding?) in driver.takeCommands() {
            driver.tell(.started(slot, subscription: binding.subscription))
        }
        func ends(_ driver: inout ControlDriver) -> [String] {
            defer { driver.events = [] }
            return driver.events.filter { $0.event == "subscription.disconnected" }.map { event in
                let isFinal = event.data["final"] == true ? "final" : "for now"
                guard case .string(let reason)? = event.data["reason"] else { return isFinal }
                return "\(isFinal): \(reason)"
            }
        }
        for id in ["a", "b"] {
            driver.tell(.transport(try driver.transport(id), .connected))
            driver.tell(.transport(try driver.transport(id), .reconnecting))
            driver.tell(.transport(try driver.transport(id), .reconnected))
        }
        #expect(
            ends(&driver)
                == ["for now: publisher-reconnecting", "for now: transport-reconnecting"]
        )
        try driver.offer("b", "0:audio:inactive")
        #expect(ends(&driver) == ["final: slots-ended"])
        try driver.offer("b", "0:audio:recvonly")
        try driver.watch("b", stream)
        try driver.done(
            "role.change",
            ["room": "r", "participant": "b", "role": "deaf", "force": true]
        )
        #expect(ends(&driver) == ["final: role"])
        // The end of a stream is told once, to all.
        try driver.done(
            "role.change",
            ["room": "r", "participant": "b", "role": "participant", "force": true]
        )
        try driver.watch("b", stream)
        try driver.done("stream.unpublish", ["room": "r", "stream": .string(stream.rawValue)])
        #expect(driver.events.contains { $0.event == "stream.destroyed" && $0.audience == .all })
        #expect(ends(&driver).isEmpty)
    }

    @Test func `deadlines come out as a plain list has them`() {
        var random = SeededRandom(seed: 5)
        var queue = DeadlineQueue()
        var list: [String: Instant] = [:]
        for step in 0..<20_000 {
            let name = "r\(Int.random(in: 0..<200, using: &random))"
            let isSet = Int.random(in: 0..<3, using: &random) > 0
            let ahead = Int64.random(in: 0..<1_000, using: &random)
            let deadline = isSet ? Instant(nanoseconds: Int64(step) + ahead) : nil
            queue.set(deadline, of: name)
            list[name] = deadline
            #expect(queue.first == list.values.min())
            guard step % 50 == 0 else { continue }
            let now = Instant(nanoseconds: Int64(step))
            let due = list.filter { $0.value <= now }.keys.sorted()
            #expect(queue.due(at: now) == due)
            #expect(queue.due(at: now) == due, "they keep their deadlines")
            for name in due {
                queue.set(nil, of: name)
                list[name] = nil
            }
        }
        #expect(queue.count == list.count)
    }
}
