import RTP
import Rooms
import Testing

@testable import Contract
@testable import ControlPlane
@testable import JSON
@testable import WorkerInterface

/// Slots that follow the list of active talkers (`talkers.subscribe`).
@Suite struct TalkerSlotTests {
    /// Makes four publishers, and `v` with two slots of each kind, spread over workers.
    private func driver(workers: Int = 1, following: Bool = true) throws -> ControlDriver {
        var limits = ControlLimits()
        limits.workerSpread = 0
        var driver = ControlDriver(workers: workers, limits: limits)
        try driver.room("r", ["maxActiveTalkers": 3])
        for id in ["a", "b", "c", "d"] {
            try driver.join(id)
            try driver.offer(id, "0:audio:sendonly", "1:video:sendonly")
        }
        try driver.join("v")
        try driver.offer(
            "v",
            "0:audio:recvonly",
            "1:video:recvonly",
            "2:audio:recvonly",
            "3:video:recvonly"
        )
        if following { try driver.follow("v", audio: ["0", "2"], video: ["1", "3"]) }
        _ = driver.takeEvents()
        _ = driver.takeCommands()
        return driver
    }

    @Test func `a newcomer takes the slot whose talker left, and nobody else moves`() throws {
        var driver = try driver()
        try driver.begin("a", "b")
        #expect(try driver.seats("v") == ["0": "a", "1": "a", "2": "b", "3": "b"])
        _ = driver.takeCommands()
        try driver.end("a")
        // Silence frees no slot.
        #expect(try driver.seats("v") == ["0": "a", "1": "a", "2": "b", "3": "b"])
        #expect(driver.takeCommands().isEmpty)
        try driver.begin("c")
        #expect(try driver.seats("v") == ["0": "c", "1": "c", "2": "b", "3": "b"])
        let bound = driver.takeBindings()
        // Each slot switches in one step: it is never without a source.
        #expect(bound.count == 2 && !bound.contains(-1))
        #expect(driver.events.filter { $0.event == "subscription.disconnected" }.isEmpty)
    }

    @Test func `a participant who left is not heard, and empty slots are reported`() throws {
        var driver = try driver()
        try driver.begin("a", "b")
        _ = driver.takeEventSummaries()
        try driver.done(
            "participant.hardMute",
            ["room": "r", "participant": "a", "media": ["audio"]]
        )
        #expect(try driver.seats("v") == ["2": "b", "3": "b"])
        #expect(driver.takeBindings().suffix(2) == [-1, -1])
        #expect(driver.takeEventSummaries().contains("subscription.disconnected v"))
    }

    @Test func `a client is told the publisher in each slot`() throws {
        var driver = try driver()
        try driver.begin("a")
        let bound = driver.commands.compactMap { _, command -> (SlotID, UInt64)? in
            guard case .bind(let slot, let binding?) = command else { return nil }
            return (slot, binding.subscription)
        }
        let (slot, subscription) = try #require(bound.first)
        driver.tell(.started(slot, subscription: subscription))
        driver.fence()
        let event = try #require(driver.events.last { $0.event == "subscription.connected" })
        let connected = try event.data.decode(SubscriptionConnected.self)
        #expect(
            connected.audioMid == Mid(rawValue: "0") && connected.videoMid == Mid(rawValue: "1")
        )
        #expect(connected.subscription.rawValue == "sub-\(subscription)")
    }

    @Test func `only a new start of speech replays the first words`() throws {
        var driver = try driver()
        try driver.begin("a")
        let bindings = driver.takeCommands().compactMap { command -> Binding? in
            guard case .bind(_, let binding) = command else { return nil }
            return binding
        }
        #expect(bindings.count == 2)
        #expect(bindings.filter { $0.from != nil }.count == 1)
        driver.pass(milliseconds: 5_000)
        _ = driver.takeCommands()
        try driver.join("w")
        try driver.offer("w", "0:audio:recvonly")
        try driver.follow("w", audio: ["0"])
        #expect(try driver.seats("w") == ["0": "a"])
        let late = driver.takeCommands().compactMap { command -> Binding? in
            guard case .bind(_, let binding) = command else { return nil }
            return binding
        }
        #expect(late.count == 1 && late[0].from == nil)
    }

    @Test func `explicit subscriptions and followed talkers live side by side`() throws {
        var driver = try driver(following: false)
        let streams = try #require(driver.plane.rooms["r"]?.room.streamsInOrder)
        let a = StreamID(streams[0].id)
        let mine = try driver.watch("v", a, ["audioMid": "0", "videoMid": "1"])
        let taken = driver.call("talkers.subscribe", driver.follows("v", ["0", "2"]))
        #expect(taken.refusal?.code == 4030)
        try driver.follow("v", audio: ["2"], video: ["3"])
        try driver.begin("a", "b")
        // `a` is already subscribed to, so the slots are for others.
        #expect(try driver.seats("v") == ["0": "a", "1": "a", "2": "b", "3": "b"])
        let watch: [String: JSON] = [
            "room": "r", "participant": "v", "stream": .string(streams[2].id),
        ]
        let named = JSON.object(watch.merging(["audioMid": "2"]) { $1 })
        #expect(driver.call("subscription.add", named).refusal?.code == 4030)
        #expect(driver.call("subscription.add", .object(watch)).refusal?.code == 4030)

        let numbers = try #require(driver.plane.rooms["r"]?.room.subscriptions)
        let followed = try #require(numbers.values.first { $0.follows })
        for (method, more) in [
            ("subscription.remove", [:] as [String: JSON]),
            ("subscription.update", ["stream": .string(streams[3].id)]),
        ] {
            let params: [String: JSON] = ["room": "r", "subscription": .string(followed.id)]
            let refusal = driver.call(method, .object(params.merging(more) { $1 })).refusal
            #expect(refusal?.code == 4091 && refusal?.reason == "follows-talkers")
        }
        try driver.done(
            "subscription.remove",
            ["room": "r", "subscription": .string(mine.subscription.rawValue)]
        )
        // No following slot is free for `a`, as `b` keeps its own.
        #expect(try driver.seats("v") == ["2": "b", "3": "b"])
        #expect(try driver.watch("v", StreamID(streams[1].id)).audioMid == Mid(rawValue: "0"))
        #expect(try driver.seats("v") == ["0": "b", "1": "b", "2": "a", "3": "a"])
    }

    @Test func `empty lists end it behind a fence, fewer slots end some`() throws {
        var driver = try driver()
        try driver.begin("a", "b")
        driver.holdsFences = true
        let id = driver.send("talkers.subscribe", driver.follows("v", ["2"], ["3"]))
        #expect(driver.replies[id] == nil)
        driver.fence(packets: 7)
        let reply = try #require(try driver.replies[id]?.get()).decode(Done.self)
        #expect(reply.fence?.packets == 7)
        #expect(try driver.seats("v") == ["2": "b", "3": "b"])
        driver.holdsFences = false
        try driver.follow("v", audio: [])
        #expect(try driver.seats("v") == [:])
        try driver.begin("c")
        #expect(try driver.seats("v") == [:])
        let stream = try #require(driver.plane.rooms["r"]?.room.streamsInOrder.first)
        #expect(try driver.watch("v", StreamID(stream.id)).audioMid == Mid(rawValue: "0"))
    }

    @Test func `streams that a role may not watch are in no slot`() throws {
        var driver = try driver(following: false)
        let roles: JSON = [
            ["name": "participant", "publish": ["audio": true, "video": true]],
            ["name": "guest", "publish": ["audio": true, "video": true]],
            ["name": "listener", "subscribe": ["roles": ["guest"]]],
        ]
        try driver.done("room.update", ["room": "r", "settings": ["roles": roles]])
        for (id, role) in [("b", "guest"), ("v", "listener")] {
            try driver.done(
                "role.change",
                ["room": "r", "participant": .string(id), "role": .string(role), "force": true]
            )
        }
        try driver.follow("v", audio: ["0", "2"])
        try driver.begin("a", "b")
        #expect(try driver.seats("v") == ["0": "b"])
        try driver.done(
            "role.change",
            ["room": "r", "participant": "a", "role": "guest", "force": true]
        )
        #expect(try driver.seats("v").values.sorted() == ["a", "b"])
        try driver.done(
            "role.change",
            ["room": "r", "participant": "b", "role": "participant", "force": true]
        )
        #expect(try Array(driver.seats("v").values) == ["a"])
    }

    @Test func `renegotiation keeps it, what the offer drops leaves it`() throws {
        var driver = try driver()
        try driver.begin("a", "b")
        _ = driver.takeBindings()
        try driver.offer(
            "v",
            "0:audio:recvonly",
            "1:video:recvonly",
            "2:audio:recvonly",
            "3:video:recvonly",
            "4:audio:recvonly"
        )
        #expect(driver.takeBindings().isEmpty)
        #expect(try driver.seats("v") == ["0": "a", "1": "a", "2": "b", "3": "b"])
        try driver.offer(
            "v",
            "0:audio:recvonly",
            "1:video:recvonly",
            "2:audio:inactive",
            "3:video:recvonly",
            "4:audio:recvonly"
        )
        let seats = try driver.seats("v")
        // One audio slot is left: it is for the newest talker.
        #expect(seats == ["0": "b", "1": "a", "3": "b"])
        try driver.done("transport.close", ["room": "r", "participant": "v"])
        #expect(driver.plane.rooms["r"]?.room.subscriptions.isEmpty == true)
        try driver.begin("c")
        #expect(driver.plane.rooms["r"]?.room.subscriptions.isEmpty == true)
    }

    @Test func `on two workers slots follow through mirrors`() throws {
        var driver = try driver(workers: 2)
        try driver.begin("a", "b", "c", "d")
        #expect(try Set(driver.seats("v").values) == ["c", "d"])
        let used = driver.plane.shared.identifiers.map(\.publications.used)
        // One or both of the followed are on another worker: each is mirrored, and no other.
        #expect(used.reduce(0, +) > 8)
        try driver.follow("v", audio: [])
        #expect(driver.plane.shared.identifiers.map(\.publications.used).reduce(0, +) == 8)
    }

    @Test func `a thousand followers are turned only where their slots change`() throws {
        var driver = try driver(following: false)
        for index in 0..<200 {
            try driver.join("f\(index)")
            try driver.offer(
                "f\(index)",
                "0:audio:recvonly",
                "1:audio:recvonly",
                "2:audio:recvonly"
            )
            try driver.follow("f\(index)", audio: ["0", "1", "2"])
        }
        try driver.begin("a", "b", "c")
        _ = driver.takeBindings()
        for id in ["a", "b", "c"] { try driver.end(id) }
        for id in ["a", "b", "c"] { try driver.begin(id) }
        #expect(driver.takeBindings().isEmpty)
        try driver.begin("d")
        #expect(driver.takeBindings().count == 200)
    }

    @Test func `slots that are not there, or not of that kind, are refused`() throws {
        var driver = try driver(following: false)
        #expect(driver.call("talkers.subscribe", driver.follows("v", ["1"])).refusal?.code == 4011)
        #expect(driver.call("talkers.subscribe", driver.follows("v", ["9"])).refusal?.code == 4011)
        #expect(driver.call("talkers.subscribe", driver.follows("x", ["0"])).refusal?.code == 4005)
        let twice = driver.call("talkers.subscribe", driver.follows("v", ["0", "0"]))
        #expect(twice.refusal?.code == -32602)
        try driver.done(
            "participant.setMode",
            ["room": "r", "participant": "v", "mode": "SIGNALLING_ONLY"]
        )
        #expect(driver.call("talkers.subscribe", driver.follows("v", ["0"])).refusal?.code == 4091)
    }
}

extension Result where Failure == IPCError {
    fileprivate var refusal: IPCError? {
        if case .failure(let error) = self { error } else { nil }
    }
}
