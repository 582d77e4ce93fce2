import Contract
import JSON
import SFU
import Testing
import WorkerInterface

@testable import Simulator

/// Media of publishers that have never had the right to send it, from real clients.
@Suite struct HeldBackTests {
    private typealias Flow = SimulatedDaemon.Flow

    private static func daemon(_ settings: JSON, people: [(String, JSON)]) throws -> SimulatedDaemon
    {
        let daemon = try SimulatedDaemon(seed: 1, identity: DTLSIdentity())
        try daemon.done("room.create", ["room": "r", "settings": settings])
        for (participant, role) in people { try join(participant, role, daemon) }
        return daemon
    }

    private static func join(_ participant: String, _ role: JSON, _ daemon: SimulatedDaemon) throws
    {
        let params: [String: JSON] = [
            "room": "r", "participant": .string(participant), "role": role,
        ]
        try daemon.done("participant.join", params)
    }

    private static func connect(
        _ participant: String,
        tracks: [MediaKind] = [],
        slots: Int = 0,
        _ daemon: SimulatedDaemon
    ) throws -> (client: SimulatedClient, mids: [MidInfo]) {
        try daemon.connect(participant, in: "r", number: 1, tracks: tracks, slots: slots)
    }

    private static func watch(_ stream: JSON, _ daemon: SimulatedDaemon) throws {
        let params: [String: JSON] = ["room": "r", "participant": "v", "stream": stream]
        try daemon.done("subscription.add", params)
    }

    private static func streams(_ daemon: SimulatedDaemon) throws -> [JSON] {
        let list = try daemon.done("stream.list", ["room": "r"])
        guard case .array(let streams)? = list["streams"] else { return [] }
        return streams.map { $0["stream"] ?? .null }
    }

    private static func awaitFlow(_ flow: Flow, _ daemon: SimulatedDaemon) {
        for _ in 0..<8_000 where (daemon.flows[flow]?.left ?? 0) < 3 { daemon.step() }
        #expect((daemon.flows[flow]?.left ?? 0) >= 3, "\(flow.kind) does not flow")
    }

    @Test func `A0-1 L-2 video that is sent in an audio-only event reaches nobody`() throws {
        let daemon = try Self.daemon(
            ["mode": "single_host_audio_only"],
            people: [("p", "moderator"), ("v", "moderator")]
        )
        for state in ["ready", "ongoing"] as [JSON] {
            try daemon.done("room.setState", ["room": "r", "state": state])
        }
        let (publisher, mids) = try Self.connect("p", tracks: [.audio, .video], daemon)
        #expect(mids.map(\.refused) == [nil, "event-type"])
        let viewer = try Self.connect("v", slots: 1, daemon).client
        try daemon.awaitConnected([publisher, viewer])
        try Self.watch(try #require(try Self.streams(daemon).first), daemon)
        // The client sends both all the same, one packet after the other.
        daemon.senders = [publisher]
        let audio = Flow(publisher: publisher.index, viewer: viewer.index, kind: .audio)
        Self.awaitFlow(audio, daemon)
        daemon.run(milliseconds: 200)
        #expect(daemon.flows.keys.map(\.kind) == [.audio])
    }

    @Test func `A0-1 E-15 E-18 media of one who waits reaches nobody before the reply`() throws {
        let daemon = try Self.daemon(
            ["knock": true],
            people: [("v", "moderator"), ("p", "participant")]
        )
        let (publisher, mids) = try Self.connect("p", tracks: [.audio], daemon)
        #expect(mids.map(\.stream) == [nil])
        let viewer = try Self.connect("v", slots: 1, daemon).client
        try daemon.awaitConnected([publisher, viewer])
        daemon.senders = [publisher]
        daemon.run(milliseconds: 200)
        #expect(daemon.flows.isEmpty)
        #expect(try Self.streams(daemon).isEmpty)
        let id = daemon.send("participant.approve", ["room": "r", "participant": "p"])
        _ = try daemon.reply(to: id)
        #expect(daemon.flowsAtReply[id]?.isEmpty == true)
        try Self.watch(try #require(try Self.streams(daemon).first), daemon)
        Self.awaitFlow(
            Flow(publisher: publisher.index, viewer: viewer.index, kind: .audio),
            daemon
        )
    }

    @Test func `A0-1 L-7 L-8 an event that is ready is seen by nobody but its hosts`() throws {
        let daemon = try Self.daemon(["mode": "single_host"], people: [("p", "moderator")])
        try daemon.done("room.setState", ["room": "r", "state": "ready"])
        try Self.join("v", "participant", daemon)
        let publisher = try Self.connect("p", tracks: [.audio], daemon).client
        let viewer = try Self.connect("v", slots: 1, daemon).client
        try daemon.awaitConnected([publisher, viewer])
        try Self.watch(try #require(try Self.streams(daemon).first), daemon)
        daemon.senders = [publisher]
        daemon.run(milliseconds: 200)
        #expect(daemon.flows.isEmpty)
        try daemon.done("room.setState", ["room": "r", "state": "ongoing"])
        Self.awaitFlow(
            Flow(publisher: publisher.index, viewer: viewer.index, kind: .audio),
            daemon
        )
    }
}
