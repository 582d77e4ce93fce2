import Contract
import Foundation
import JSON
import SFU
import SFUClient
import Synchronization

/// Adapter for sfud over its IPC: our side offers, and subscriptions choose the slots.
final class SfudAdapter: Adapter {
    let name = "sfud"
    /// Environment variables for sfud in addition to the bench's own.
    private let environment: [String: String]
    private let state = Mutex(State())

    private struct State {
        var child: Child?
        var client: SFUClient?
        /// Other nodes of the cluster, where viewers join by turns; none: at `client`.
        var viewersNodes: [SFUClient] = []
        var viewersJoined = 0
        /// Path of the IPC socket.
        var path: String?
        /// Port of `/metrics`.
        var http: UInt16?
        var participants: [String: Joined] = [:]
    }

    /// State of a joined participant.
    private struct Joined: Sendable {
        var stream: StreamID?
        var layers: [Publication.Layer] = []
        var firstAudio = 0
        var firstVideo = 0
        var sources: [String: [UInt32]] = [:]
    }

    /// Whether a keeper starts sfud again when it ends.
    private let hasKeeper: Bool

    init(environment: [String: String] = [:], hasKeeper: Bool = false) {
        self.environment = environment
        self.hasKeeper = hasKeeper
    }

    /// Uses a running sfud, whose process belongs to the caller.
    ///
    /// `viewersIPC` are sockets of nodes of its cluster where those who publish nothing join by
    /// turns; none: where all join.
    init(ipc: String, viewersIPC: [String] = []) {
        environment = [:]
        hasKeeper = false
        state.withLock {
            $0.client = SFUClient(path: ipc)
            $0.viewersNodes = viewersIPC.map { SFUClient(path: $0) }
        }
    }

    func start(_ launch: Launch) async throws -> RunningSFU {
        let ipc = "\(launch.directory)/sfud.sock"
        let configuration = "\(launch.directory)/sfud.json5"
        // The load is a crowd that connects at once, so nobody may be refused.
        let limits =
            "limits: {participantsPerRoom: 20000, transportsPerWorker: 20000, "
            + "packetPool: 131072, workerLoadPercent: 100}"
        try Data("{\(limits)}\n".utf8).write(to: URL(filePath: configuration))
        let executable = launch.executable ?? Self.executable
        let child = try Child(
            executable,
            (hasKeeper ? ["--keeper"] : []) + [
                "--config", configuration, "--ipc", ipc, "--udp", "127.0.0.1:0",
                "--http", "127.0.0.1:0", "--workers", "\(launch.workers)",
            ],
            log: "\(launch.directory)/sfud.log",
            environment: environment
        )
        let client = SFUClient(path: ipc)
        state.withLock {
            $0.child = child
            $0.client = client
            $0.path = ipc
        }
        let isReady = try await child.awaitLine { $0.hasPrefix("ready ") ? true : nil }
        guard isReady else { throw AdapterError("sfud is not ready") }
        let http = Self.port(after: "http=127.0.0.1:", in: child.output)
        state.withLock { $0.http = http }
        let version = try await client.serverInfo().version
        return RunningSFU(processes: [child.pid], version: "sfud \(version)")
    }

    func stop() async {
        let (child, client) = state.withLock { state in
            defer { state = State() }
            return (state.child, state.client)
        }
        await client?.close()
        await child?.stop()
    }

    func makeRoom(_ room: String, participants: Int) async throws {
        _ = try await client().createRoom(RoomID(room))
    }

    func closeRoom(_ room: String) async throws { try await client().closeRoom(RoomID(room)) }

    func join(_ request: JoinRequest) async throws -> JoinReply {
        let (room, participant) = (RoomID(request.room), ParticipantID(request.participant))
        let client = try request.publication == nil ? viewersClient() : client()
        _ = try await client.join(.init(room: room, participant: participant, snapshot: false))

        var offer = SfudOffer(request.local)
        let format = request.publication.map { offer.publish($0) }
        var joined = Joined(layers: request.publication?.layers ?? [])
        joined.firstAudio = offer.receive(.audio, count: request.audioSlots)
        joined.firstVideo = offer.receive(.video, count: request.videoSlots)
        var params = TransportOffer.Params(room: room, participant: participant, sdp: offer.text)
        if request.publication?.isScreen == true, let mid = format?.video?.mid {
            params.sources = [Mid(mid): .screen]
        }
        let reply = try await client.offer(params)
        let answer = try SfudAnswer(reply.sdp)
        joined.stream = reply.mids.compactMap(\.stream).first
        joined.sources = answer.sources
        state.withLock { $0.participants[Self.key(request.room, request.participant)] = joined }
        return JoinReply(remote: answer.remote, sending: format)
    }

    /// Joins somebody without media, who hears what is said about a topic.
    func enter(_ room: String, _ participant: String, topic: String) async throws {
        let client = try client()
        let (room, participant) = (RoomID(room), ParticipantID(participant))
        _ = try await client.join(.init(room: room, participant: participant, snapshot: false))
        let params: JSON = [
            "room": .string(room.rawValue), "participant": .string(participant.rawValue),
            "topic": .string(topic),
        ]
        _ = try await client.call("message.subscribe", params)
    }

    func watch(_ request: WatchRequest) async throws -> WatchReply {
        let client = try client()
        let viewer = try joined(request.room, request.participant)
        var streams: [ReceivedStream] = []
        for (index, streamRequest) in request.streamRequests.enumerated() {
            let publisher = try joined(request.room, streamRequest.publisher)
            guard let stream = publisher.stream else {
                throw AdapterError("\(streamRequest.publisher) has no stream")
            }
            let audioMid = "\(viewer.firstAudio + index)"
            let videoMid = "\(viewer.firstVideo + index)"
            var params = SubscriptionAdd.Params(
                room: RoomID(request.room),
                participant: ParticipantID(request.participant),
                stream: stream,
                audioMid: streamRequest.audio ? Mid(audioMid) : nil,
                videoMid: streamRequest.video ? Mid(videoMid) : nil
            )
            if streamRequest.video, publisher.layers.indices.contains(streamRequest.layer) {
                let layer = publisher.layers[streamRequest.layer]
                params.preferredResolution = .init(width: layer.width, height: layer.height)
            }
            _ = try await client.subscribe(params)
            if streamRequest.audio, let ssrc = viewer.sources[audioMid]?.first {
                streams.append(Self.stream(streamRequest.publisher, .audio, [ssrc]))
            }
            if streamRequest.video, let ssrcs = viewer.sources[videoMid], !ssrcs.isEmpty {
                streams.append(Self.stream(streamRequest.publisher, .video, ssrcs))
            }
        }
        return WatchReply(remote: nil, streams: streams)
    }

    /// Events of a room whose names match.
    func events(of room: String, _ pattern: EventPattern) throws(AdapterError) -> EventSequence {
        try client().events(rooms: [RoomID(room)], events: [pattern])
    }

    /// Offers a second connection of a viewer, whose subscriptions go on in its slots.
    func move(_ request: WatchRequest) async throws -> WatchReply {
        let viewer = try joined(request.room, request.participant)
        let count = request.streamRequests.count
        var offer = SfudOffer(request.local)
        _ = offer.receive(.audio, count: count)
        let hasVideo = request.streamRequests.contains { $0.video }
        _ = offer.receive(.video, count: hasVideo ? count : 0)
        let reply = try await client().offer(
            .init(
                room: RoomID(request.room),
                participant: ParticipantID(request.participant),
                sdp: offer.text
            )
        )
        let answer = try SfudAnswer(reply.sdp)
        var streams: [ReceivedStream] = []
        for (index, wanted) in request.streamRequests.enumerated() {
            if let ssrc = answer.sources["\(viewer.firstAudio + index)"]?.first, wanted.audio {
                streams.append(Self.stream(wanted.publisher, .audio, [ssrc]))
            }
            if let ssrcs = answer.sources["\(viewer.firstVideo + index)"], wanted.video {
                streams.append(Self.stream(wanted.publisher, .video, ssrcs))
            }
        }
        return WatchReply(remote: answer.remote, streams: streams)
    }

    func leave(room: String, participant: String) async throws {
        _ = state.withLock { $0.participants.removeValue(forKey: Self.key(room, participant)) }
        _ = try await client().leave(
            room: RoomID(room),
            participant: ParticipantID(participant)
        )
    }

    func forwardingDelay() async throws -> DelayBuckets? {
        guard let port = state.withLock({ $0.http }) else { return nil }
        let page = try Web.get("/metrics", port: port)
        return Prometheus.histogram("sfud_forwarding_seconds", in: page)
    }

    /// Returns the bytes that the daemon has allocated.
    func heapBytes() throws -> Double {
        guard let port = state.withLock({ $0.http }),
            let bytes = Prometheus.value(
                "sfud_heap_bytes",
                in: try Web.get("/metrics", port: port)
            )
        else { throw AdapterError("sfud does not tell of its heap") }
        return bytes
    }

    /// Returns the path of the daemon's IPC socket.
    func path() throws(AdapterError) -> String {
        guard let path = state.withLock({ $0.path }) else {
            throw AdapterError("sfud does not run")
        }
        return path
    }

    /// Returns the stream that a participant publishes.
    func stream(_ room: String, _ participant: String) throws(AdapterError) -> String {
        guard let stream = try joined(room, participant).stream else {
            throw AdapterError("\(participant) has no stream")
        }
        return stream.rawValue
    }

    /// Ends the daemon's process, so that the next one goes on; returns when that answers.
    func replace(by end: Bench.LifeEnd) async throws {
        let client = try client()
        let before = try await client.serverInfo()
        switch end {
        case .upgrade: try await client.upgrade(binary: nil)
        case .kill:
            guard let keeper = state.withLock({ $0.child?.pid }),
                let child = ProcessUsage.children(of: keeper).first
            else { throw AdapterError("the keeper has no child") }
            kill(child, SIGKILL)
        }
        for _ in 0..<200 {
            if let info = try? await client.serverInfo(), info.started != before.started { return }
            try await Task.sleep(for: .milliseconds(20))
        }
        throw AdapterError("sfud does not come back")
    }

    /// Returns the daemon's own counters.
    func counters() async throws -> PacketCounters { try await client().serverStats().counters }

    /// Returns the numbers of rooms, participants and transports.
    func tenants() async throws -> [Int] {
        let stats = try await client().serverStats()
        return [stats.rooms, stats.participants, stats.transports]
    }

    /// Returns the load-shedding state of each worker.
    func pressures() async throws -> [OverloadInfo] {
        try await client().serverStats().workers.map(\.pressure)
    }

    /// Returns the number of workers.
    func workers() async throws -> Int { try await client().serverInfo().workers }

    private func client() throws(AdapterError) -> SFUClient {
        guard let client = state.withLock({ $0.client }) else {
            throw AdapterError("sfud does not run")
        }
        return client
    }

    /// Returns the connection for the next one who publishes nothing.
    private func viewersClient() throws(AdapterError) -> SFUClient {
        let next = state.withLock { state -> SFUClient? in
            guard !state.viewersNodes.isEmpty else { return nil }
            defer { state.viewersJoined += 1 }
            return state.viewersNodes[state.viewersJoined % state.viewersNodes.count]
        }
        if let next { return next }
        return try client()
    }

    private func joined(_ room: String, _ participant: String) throws(AdapterError) -> Joined {
        let known = state.withLock { $0.participants[Self.key(room, participant)] }
        guard let known else { throw AdapterError("\(participant) is not in \(room)") }
        return known
    }

    private static func key(_ room: String, _ participant: String) -> String {
        "\(room)/\(participant)"
    }

    private static func stream(
        _ publisher: String,
        _ medium: Medium,
        _ ssrcs: [UInt32]
    ) -> ReceivedStream {
        ReceivedStream(
            publisher: publisher,
            medium: medium,
            ssrc: ssrcs[0],
            rtxSSRC: ssrcs.count > 1 ? ssrcs[1] : nil,
            payloadType: medium == .audio
                ? OfferParameters.audioPayloadType : OfferParameters.videoPayloadType
        )
    }

    private static func port(after mark: String, in text: String) -> UInt16? {
        guard let range = text.range(of: mark) else { return nil }
        return UInt16(text[range.upperBound...].prefix { $0.isNumber })
    }

    /// Path of the sfud beside the bench.
    private static var executable: String {
        let own = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
        return own.deletingLastPathComponent().appending(path: "sfud").path
    }
}
