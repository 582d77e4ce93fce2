import JSON
import RTP
import Rooms
import Testing

@testable import Contract
@testable import ControlPlane
@testable import WorkerInterface

@Suite struct ControlLivenessTests {
    /// Makes a call in which `b` watches `a`, and the first packet has arrived.
    private func call() throws -> (driver: ControlDriver, stream: StreamID) {
        var driver = ControlDriver()
        try driver.room()
        try driver.join("a", ["role": "moderator", "custom": ["seat": 7], "name": "Ann"])
        try driver.join("b")
        let stream = try #require(try driver.offer("a", "0:audio:sendonly")[0].stream)
        try driver.offer("b", "0:audio:recvonly")
        try driver.watch("b", stream)
        for case .bind(let slot, let binding?) in driver.takeCommands() {
            driver.tell(.started(slot, subscription: binding.subscription))
        }
        for id in ["a", "b"] { driver.tell(.transport(try driver.transport(id), .connected)) }
        _ = driver.takeEvents()
        return (driver, stream)
    }

    @Test func `O-7 a publisher that falls silent comes back or is gone`() throws {
        var (driver, stream) = try call()
        let transport = try driver.transport("a")
        driver.tell(.transport(transport, .reconnecting))
        #expect(
            driver.takeEvents() == ["participant.connection", "subscription.disconnected"]
        )
        #expect(try driver.shown().participants[0].connection == .reconnecting)
        driver.tell(.transport(transport, .reconnected))
        #expect(
            driver.takeEvents() == ["participant.connection", "subscription.reconnected"]
        )
        #expect(try driver.shown().participants[0].connection == .connected)
        #expect(try driver.shown().streams.map(\.stream) == [stream])

        driver.tell(.transport(transport, .reconnecting))
        _ = driver.takeEvents()
        _ = driver.takeCommands()
        driver.tell(.transport(transport, .disconnected(.timeout)))
        driver.fence()
        #expect(driver.events[0].data["reason"] == "timeout")
        #expect(driver.takeEvents() == ["participant.connection", "stream.destroyed"])
        #expect(driver.takeCommands().contains(.close(transport)))
        let participant = try driver.shown().participants[0]
        #expect(participant.participant == "a" && participant.connection == .disconnected)
        // It is still in the room, and may offer again.
        try driver.offer("a", "0:audio:sendonly")
        #expect(driver.takeEvents() == ["stream.created"])
    }

    @Test func `who has changed streams hears of the new publisher`() throws {
        var (driver, _) = try call()
        try driver.join("c")
        let other = try #require(try driver.offer("c", "0:audio:sendonly")[0].stream)
        let number = try #require(driver.plane.rooms["r"]?.room.subscriptions.keys.first)
        try driver.done(
            "subscription.update",
            [
                "room": "r", "subscription": .string("sub-\(number)"),
                "stream": .string(other.rawValue),
            ]
        )
        _ = driver.takeEvents()
        driver.tell(.transport(try driver.transport("a"), .reconnecting))
        #expect(driver.takeEvents() == ["participant.connection"])
        driver.tell(.transport(try driver.transport("c"), .reconnecting))
        #expect(
            driver.takeEvents() == ["participant.connection", "subscription.disconnected"]
        )
    }

    @Test func `O-7 a subscriber hears of its own silence when it is back`() throws {
        var (driver, _) = try call()
        let transport = try driver.transport("b")
        driver.tell(.transport(transport, .reconnecting))
        #expect(driver.takeEvents() == ["participant.connection"])
        driver.tell(.transport(transport, .reconnected))
        let own = driver.events.filter { $0.audience == .participants(["b"]) }.map(\.event)
        #expect(own == ["subscription.disconnected", "subscription.reconnected"])
    }

    @Test func `a second join takes over and keeps what the room knows`() throws {
        var (driver, stream) = try call()
        let old = try driver.transport("a")
        let before = try driver.shown()
        try driver.join("a", ["role": "viewer"])
        #expect(
            driver.events.map(\.event)
                == ["stream.destroyed", "participant.left", "participant.joined"]
        )
        #expect(driver.events[0].data["reason"] == "takeover")
        #expect(driver.events[2].data["rejoined"] == true)
        #expect(driver.events[2].audience == .all)
        #expect(driver.takeCommands().contains(.close(old)))
        let after = try driver.shown()
        #expect(after.participants.map(\.participant) == before.participants.map(\.participant))
        #expect(after.participants[0].role == "moderator")
        #expect(after.participants[0].name == "Ann")
        #expect(after.participants[0].custom == ["seat": 7])
        #expect(after.participants[0].connection == ConnectionState.none)
        // The old transport's last events are ignored.
        _ = driver.takeEvents()
        driver.tell(.transport(old, .disconnected(.timeout)))
        #expect(driver.takeEvents() == [])
        let anew = try #require(try driver.offer("a", "0:audio:sendonly")[0].stream)
        #expect(anew != stream)
    }

    @Test func `a handle is free only after the fence that ended it`() throws {
        var (driver, _) = try call()
        let identifiers = driver.plane.shared.identifiers[0]
        driver.holdsFences = true
        driver.send("transport.close", ["room": "r", "participant": "a"])
        #expect(driver.plane.shared.identifiers[0].transports.used == identifiers.transports.used)
        driver.fence()
        #expect(
            driver.plane.shared.identifiers[0].transports.used == identifiers.transports.used - 1
        )
        #expect(
            driver.plane.shared.identifiers[0].publications.used
                == identifiers.publications.used - 1
        )
    }

    @Test func `a knock waits, and the moderators hear it with the one who knocks`() throws {
        var driver = ControlDriver()
        try driver.room("r", ["knock": true])
        try driver.join("m", ["role": "moderator"])
        _ = driver.takeEvents()
        let reply = try driver.done(
            "participant.join",
            ["room": "r", "participant": "k", "name": "Kim"]
        )
        #expect(try reply.decode(ParticipantJoin.Result.self).state == .awaited)
        #expect(driver.events.map(\.event) == ["participant.awaited"])
        #expect(driver.events[0].audience == .participants(["k", "m"]))
        let room = try driver.shown()
        #expect(room.participants.map(\.participant) == ["m"])
        #expect(room.awaited.map(\.name) == ["Kim"])
        // It may connect meanwhile, and has no stream.
        _ = driver.takeEvents()
        #expect(try driver.offer("k", "0:audio:sendonly")[0].stream == nil)
        #expect(driver.takeEvents() == [])
    }

    @Test func `old mode names are one vocabulary`() throws {
        var driver = ControlDriver()
        try driver.room("r", ["strictModeVocabulary": true])
        try driver.join("a", ["mode": "CONFERENCE"])
        try driver.join("b", ["mode": "VIEWER"])
        #expect(throws: IPCError.self) { try driver.join("c", ["mode": "RECV_ONLY"]) }
        #expect(
            try driver.shown().participants.map(\.mode) == [.sendAndReceive, .signallingOnly]
        )
    }

    @Test func `rooms go to the worker with the least to do`() throws {
        var driver = ControlDriver(workers: 2)
        for room in ["r", "s", "t"] { try driver.room(room) }
        #expect(["r", "s", "t"].map { driver.plane.rooms[$0]?.room.worker } == [0, 1, 0])
        try driver.join("a")
        let answer = try driver.done(
            "transport.offer",
            ["room": "r", "participant": "a", "sdp": .string(TestOffer(["0:audio:sendonly"]).text)]
        )
        let sdp = try answer.decode(TransportOffer.Result.self).sdp
        #expect(sdp.contains("127.0.0.1 5004"))
    }

    @Test func `statistics wait for the workers and name what is theirs`() throws {
        var (driver, stream) = try call()
        let id = driver.send("stats.get", ["room": "r"])
        #expect(driver.replies[id] == nil)
        let token = try #require(driver.tokens.last?.token)
        var statistics = WorkerStatistics()
        let room = try #require(driver.plane.rooms["r"]?.room)
        let track = try #require(room.streams[stream.rawValue]?.audio)
        let layer = LayerDescription(
            rid: nil,
            width: 0,
            height: 0,
            frameRate: .nan,
            bitrate: 32_000,
            active: true
        )
        var encoding = EncodingStatistics(layer: layer, ssrc: SSRC(rawValue: 5))
        encoding.packets = 100
        encoding.jitter = 480
        statistics.publications = [
            PublicationStatistics(id: track, codec: .opus, encodings: [encoding])
        ]
        let viewer = try #require(room.participants["b"]?.transports.first?.slots.first)
        var slot = SlotStatistics(id: viewer.id)
        slot.fractionLost = 64
        statistics.slots = [slot]
        driver.tell(.statistics(token: token, statistics))
        let result = try #require(try driver.replies[id]?.get()).decode(StatsGet.Result.self)
        #expect(result.transports.map(\.participant) == ["a", "b"])
        #expect(result.streams.map(\.stream) == [stream])
        #expect(result.streams.first?.encodings.first?.jitter == 10)
        #expect(result.streams.first?.encodings.first?.packets == 100)
        #expect(result.subscriptions.map(\.fractionLost) == [0.25])

        let server = driver.send("server.stats")
        statistics.rtpIn = 7
        let next = try #require(driver.tokens.last?.token)
        driver.tell(.statistics(token: next, statistics))
        let all = try #require(try driver.replies[server]?.get()).decode(ServerStats.Result.self)
        #expect(all.counters.rtpIn == 7 && all.rooms == 1 && all.participants == 2)
        #expect(all.counters.drops.count == DropReason.allCases.count)
    }

    @Test func `the server says what it is`() throws {
        var driver = ControlDriver()
        let info = try driver.done("server.info").decode(ServerInfo.Result.self)
        #expect(info.version == "1.2.3" && info.contract == 2 && info.workers == 1)
        #expect(info.fingerprint.hasPrefix("sha-256 00:01:02:"))
        #expect(info.udp == ["127.0.0.1:5004"])
    }
}
