import Testing
import WorkerInterface

@testable import Contract
@testable import ControlPlane
@testable import JSON
@testable import Rooms
@testable import SFU

/// Sendbird's live events (A3): types, states, hosts; names begin with the rows that they prove.
@Suite struct LiveEventTests {
    private static let states = ["created", "ready", "ongoing", "ended"]

    private func event(_ mode: JSON = "single_host", in state: String) throws -> ControlDriver {
        var driver = ControlDriver()
        try driver.room("r", ["mode": mode])
        try driver.join("host", ["role": "moderator"])
        let way: [String] =
            switch state {
            case "created": []
            case "ready": ["ready"]
            case "ongoing": ["ready", "ongoing"]
            default: ["ended"]
            }
        for step in way { try set(step, &driver) }
        _ = driver.takeEvents()
        _ = driver.takeCommands()
        return driver
    }

    private func set(_ state: String, _ driver: inout ControlDriver) throws {
        let params: JSON = ["room": "r", "state": .string(state), "by": "host"]
        try driver.done("room.setState", params)
    }

    @Test func `L-5 only the declared steps are possible`() throws {
        let allowed: Set = [
            "created ready", "ready ongoing", "created ended", "ready ended", "ongoing ended",
        ]
        for from in Self.states {
            for to in Self.states {
                var driver = try event(in: from)
                let before = try driver.shown()
                let params: JSON = ["room": "r", "state": .string(to), "by": "host"]
                switch driver.call("room.setState", params) {
                case .success:
                    #expect(allowed.contains("\(from) \(to)"))
                    #expect(try driver.shown().state.rawValue == to)
                case .failure(let error):
                    #expect(!allowed.contains("\(from) \(to)"))
                    #expect(error.code == 4091)
                    #expect(try driver.shown() == before)
                    #expect(driver.takeEvents() == [])
                }
            }
        }
    }

    @Test func `L-5 other rooms have no states, and participants change none`() throws {
        var driver = ControlDriver()
        try driver.room()
        guard
            case .failure(let error) = driver.call(
                "room.setState",
                ["room": "r", "state": "ended"]
            )
        else {
            Issue.record("a group room has ended")
            return
        }
        #expect(error.code == 4091)
        driver = try event(in: "ready")
        try driver.join("p")
        let params: JSON = ["room": "r", "state": "ongoing", "by": "p"]
        guard case .failure(let error) = driver.call("room.setState", params) else {
            Issue.record("a participant changed the state")
            return
        }
        #expect(error.code == 4010)
    }

    @Test func `L-1 the type never changes`() throws {
        var driver = try event(in: "created")
        let params: JSON = ["room": "r", "settings": ["mode": "single_host_audio_only"]]
        guard case .failure(let error) = driver.call("room.update", params) else {
            Issue.record("the type has changed")
            return
        }
        #expect(error.code == 4091 && error.reason == "mode-is-fixed")
    }

    @Test func `L-6 L-11 who may enter in which state`() throws {
        let rows: [(state: String, role: JSON, enters: Bool)] = [
            ("created", "participant", false), ("created", "moderator", true),
            ("ready", "participant", true), ("ongoing", "participant", true),
            ("ended", "participant", false), ("ended", "moderator", false),
        ]
        for row in rows {
            var driver = try event(in: row.state)
            let join: JSON = ["room": "r", "participant": "new", "role": row.role]
            let result = driver.call("participant.join", join)
            switch result {
            case .success: #expect(row.enters, "\(row)")
            case .failure(let error): #expect(!row.enters && error.code == 4091, "\(row)")
            }
        }
    }

    @Test func `L-2 video is refused where there is audio only`() throws {
        var driver = try event("single_host_audio_only", in: "ongoing")
        let mids = try driver.offer("host", "0:audio:sendonly", "1:video:sendonly")
        #expect(mids[0].refused == nil)
        #expect(mids[1].refused == "event-type")
        #expect(mids[1].direction == .inactive)
    }

    @Test func `L-7 L-8 L-12 the host sees itself before the others do`() throws {
        var driver = try event(in: "ready")
        try driver.join("p")
        let stream = try #require(
            try driver.offer("host", "0:audio:sendonly", "1:audio:recvonly")[0].stream
        )
        try driver.offer("p", "0:audio:recvonly")
        _ = driver.takeCommands()
        try driver.watch("host", stream)
        try driver.watch("p", stream)
        #expect(open(&driver) == [true, false])
        try set("ongoing", &driver)
        #expect(open(&driver) == [true])
        let reply = try driver.done("room.setState", ["room": "r", "state": "ended"])
        #expect(try reply.decode(Done.self).fence != nil)
        let events = driver.takeEvents()
        #expect(events.filter { $0 == "stream.destroyed" }.count == 1)
        #expect(try driver.shown().streams.isEmpty)
    }

    private func open(_ driver: inout ControlDriver) -> [Bool] {
        driver.takeCommands().compactMap { command in
            guard case .bind(_, let binding?) = command else { return nil }
            return binding.open
        }
    }

    @Test func `L-6 a host who goes from camera to screen keeps the place`() throws {
        var driver = try event(in: "ongoing")
        try driver.join("other", ["role": "moderator"])
        try driver.offer("host", "0:video:sendonly")
        // The second host waits.
        try driver.offer("other", "0:video:sendonly")
        #expect(try streams(driver) == ["host camera"])
        _ = driver.takeGates()
        try driver.offer(
            "host",
            "0:video:inactive",
            "1:video:sendonly",
            sources: ["1": "screen"]
        )
        #expect(driver.takeGates() == [true])
        #expect(try streams(driver) == ["host screen"])
        // A host who stops frees the place for the next.
        try driver.offer("host", "0:video:inactive", "1:video:inactive")
        #expect(try streams(driver) == ["other camera"])
    }

    @Test func `L-6 R-7 a role change that ends all streams is reported alone`() throws {
        var driver = try event(in: "ongoing")
        for id in ["other", "viewer"] { try driver.join(id, ["role": "moderator"]) }
        // The first in the room waits for the place of the second.
        let stream = try #require(try driver.offer("other", "0:video:sendonly")[0].stream)
        try driver.offer("host", "0:video:sendonly")
        try driver.offer("viewer", "0:video:recvonly")
        try driver.watch("viewer", stream)
        _ = driver.takeEventSummaries()
        try driver.done("role.changeAll", ["room": "r", "role": "viewer"])
        let told = driver.takeEventSummaries()
        #expect(told.filter { $0.hasPrefix("stream.") } == ["stream.destroyed all"])
        #expect(!told.contains { $0.hasPrefix("subscription.video") }, "\(told)")
    }

    private func streams(_ driver: ControlDriver) throws -> [String] {
        let room = try #require(driver.plane.rooms["r"]?.room)
        return room.streams.listed.map { stream in
            let kind = stream.video == nil ? "microphone" : stream.isScreen ? "screen" : "camera"
            return "\(stream.participant) \(kind)"
        }
    }

    @Test func `E-28 L-6 a transfer by the caller of a mute ends the stream, and changes none`()
        throws
    {
        var driver = try event(in: "ongoing")
        try driver.join("p")
        try driver.offer("host", "0:audio:sendonly")
        try driver.done("room.hardMute", ["room": "r", "by": "host"])
        driver.events = []
        try driver.done("moderator.transfer", ["room": "r", "participant": "p", "by": "host"])
        #expect(
            driver.takeEvents() == [
                "moderator.transferred", "participant.roleChanged", "participant.roleChanged",
                "stream.destroyed",
            ]
        )
    }

    /// Next step of a host that has lost its connection and is expected back.
    enum Return: CaseIterable {
        case offers, offersNothing, changesRole, changesMode, leaves, staysAway
    }

    /// Makes a live event whose host was lost or taken over, while another host waits.
    private func deserted(
        _ isTakenOver: Bool,
        _ settings: JSON = [:]
    ) throws -> ControlDriver {
        var driver = try event(in: "ongoing")
        try driver.done("room.update", ["room": "r", "settings": settings])
        try driver.join("other", ["role": "moderator"])
        for id in ["host", "other"] { try driver.offer(id, "0:audio:sendonly") }
        driver.tell(.transport(try driver.transport("host"), .connected))
        driver.fence()
        if isTakenOver {
            try driver.join("host")
        } else {
            driver.tell(.transport(try driver.transport("host"), .disconnected(.timeout)))
            driver.fence()
        }
        #expect(try streams(driver) == [])
        _ = driver.takeEvents()
        _ = driver.takeGates()
        return driver
    }

    @Test(arguments: [true, false], Return.allCases)
    func `L-3 L-10 a host who is expected back keeps the place`(
        _ isTakenOver: Bool,
        _ end: Return
    ) throws {
        var driver = try deserted(isTakenOver)
        let person: JSON = ["room": "r", "participant": "host"]
        switch end {
        case .offers: try driver.offer("host", "0:audio:sendonly")
        case .offersNothing: try driver.offer("host", "0:audio:recvonly")
        case .changesRole:
            let role = person.members.merging(["role": "viewer", "force": true]) { $1 }
            try driver.done("role.change", .object(role))
        case .changesMode:
            let mode = person.members.merging(["mode": "RECV_ONLY"]) { $1 }
            try driver.done("participant.setMode", .object(mode))
        case .leaves: try driver.done("participant.leave", person)
        case .staysAway: driver.pass(milliseconds: 120_000)
        }
        let seen = end == .offers ? ["host microphone"] : ["other microphone"]
        #expect(try streams(driver) == seen)
    }

    /// Settings of `disconnectedSeconds`, and how long a place is kept with each.
    private static let absences: [(setting: JSON, seconds: Int64)] = [
        (120, 120), (7, 7), (.null, 120),
    ]

    @Test(arguments: [true, false], absences)
    func `L-3 L-10 a place is kept for disconnectedSeconds, then the next host has it`(
        _ isTakenOver: Bool,
        _ absence: (setting: JSON, seconds: Int64)
    ) throws {
        var driver = try deserted(isTakenOver, ["disconnectedSeconds": absence.setting])
        driver.pass(milliseconds: 1_000 * absence.seconds - 100)
        #expect(driver.takeEvents() == [] && driver.takeGates() == [])
        driver.pass(milliseconds: 100)
        let hasLeft = !isTakenOver && absence.setting != .null
        let told = hasLeft ? ["stream.created", "participant.left"] : ["stream.created"]
        #expect(driver.takeEvents() == told && driver.takeGates() == [true])
        #expect(try streams(driver) == ["other microphone"])
        // A host that comes back later waits like anybody.
        if hasLeft { try driver.join("host", ["role": "moderator"]) }
        try driver.offer("host", "0:audio:sendonly")
        #expect(try streams(driver) == ["other microphone"])
    }

    @Test func `L-10 a host who joins again is expected from then on`() throws {
        var driver = try deserted(true, ["disconnectedSeconds": 7])
        driver.pass(milliseconds: 5_000)
        try driver.join("host")
        driver.pass(milliseconds: 5_000)
        try driver.offer("host", "0:audio:sendonly")
        #expect(try streams(driver) == ["host microphone"])
    }

    @Test func `L-7 chat is open while the event is ready or ongoing`() throws {
        let rows = [
            "created": "event-not-open", "ready": nil, "ongoing": nil, "ended": "event-ended",
        ]
        for (state, reason) in rows {
            var driver = try event(in: state)
            let calls: [(String, JSON)] = [
                ("message.subscribe", ["room": "r", "participant": "host", "topic": "chat"]),
                (
                    "message.publish",
                    ["room": "r", "topic": "chat", "message": "x", "from": "host"]
                ),
                ("message.publish", ["room": "r", "topic": "chat", "message": "x"]),
            ]
            for (method, params) in calls {
                switch driver.call(method, params) {
                case .success: #expect(reason == nil, "\(method) in \(state)")
                case .failure(let error):
                    #expect(error.code == 4091 && error.reason == reason, "\(method) in \(state)")
                }
            }
            #expect(driver.takeEvents().count == (reason == nil ? 2 : 0))
            // Ending a subscription is always possible.
            let topic: JSON = ["room": "r", "participant": "host", "topic": "chat"]
            try driver.done("message.unsubscribe", topic)
        }
    }

    @Test func `L-13 L-15 custom items are told to everybody`() throws {
        var driver = try event(in: "ongoing")
        let result = try driver.done(
            "room.update",
            ["room": "r", "custom": ["title": "Today"], "by": "host"]
        ).decode(RoomInfo.self)
        #expect(result.custom == ["title": "Today"])
        #expect(driver.events.last?.data["custom"] == ["title": "Today"])
        #expect(driver.events.last?.audience == .all)
    }

    @Test func `L-10 a host who leaves for a while finds the event as it was`() throws {
        var driver = try event(in: "ongoing")
        try driver.join("p")
        try driver.offer("host", "0:audio:sendonly")
        try driver.done("participant.leave", ["room": "r", "participant": "host"])
        #expect(try driver.shown().state == .ongoing)
        try driver.join("host", ["role": "moderator"])
        #expect(try driver.offer("host", "0:audio:sendonly")[0].stream != nil)
    }
}
