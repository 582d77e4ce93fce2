import Foundation
import SFU
import Synchronization
import WorkerInterface

/// A running SFU with the bench's clients.
final class Session: Sendable {
    let adapter: any Adapter
    let engine: Engine
    let running: RunningSFU
    private let transports = Mutex<[String: LocalTransport]>([:])
    private let expected = Mutex(0)
    /// Targets of the connected clients' checks, for wouldSaturate.
    private let targets = Mutex<[FloodTarget]>([])

    var floodTargets: [FloodTarget] { targets.withLock { $0 } }

    /// Most concurrent calls.
    private static let concurrency = 32
    private static let connectSeconds = 20.0

    init(_ adapter: any Adapter, _ engine: Engine, _ running: RunningSFU) {
        self.adapter = adapter
        self.engine = engine
        self.running = running
    }

    /// Starts an SFU, calls `body`, and stops the SFU in any case.
    static func with<Value: Sendable>(
        _ adapter: any Adapter,
        _ launch: Launch,
        _ settings: EngineSettings,
        _ library: Library,
        _ body: (Session) async throws -> Value
    ) async throws -> Value {
        let engine = try Engine(settings, library: library)
        do {
            let session = Session(adapter, engine, try await adapter.start(launch))
            let value = try await body(session)
            await engine.stop()
            await adapter.stop()
            return value
        } catch {
            await engine.stop()
            await adapter.stop()
            throw error
        }
    }

    /// Calls `body` with further clients at the same SFU.
    ///
    /// They have a separate engine, so that their counts are separate.
    func withCrowd<Value: Sendable>(
        _ library: Library,
        _ body: (Session) async throws -> Value
    ) async throws -> Value {
        var settings = engine.settings
        settings.firstClient = 20_000
        let own = try Engine(settings, library: library)
        do {
            let value = try await body(Session(adapter, own, running))
            await own.stop()
            return value
        } catch {
            await own.stop()
            throw error
        }
    }

    /// Creates the rooms and connects all participants, publishers before pure viewers.
    ///
    /// `places` is the size of each room if more participants will join later.
    func populate(_ rooms: [RoomPlan], places: Int = 0) async throws {
        for room in rooms {
            let participants = max(room.participants.count, places)
            try await adapter.makeRoom(room.name, participants: participants)
        }
        let people = rooms.flatMap { room in room.participants.map { (room.name, $0) } }
        try await Self.concurrently(people.filter { $0.1.media != nil }) { room, participant in
            try await self.join(room, participant)
        }
        try await awaitConnected()
        try await Self.concurrently(people) { room, participant in
            if participant.media == nil { try await self.join(room, participant) }
            if !participant.streamRequests.isEmpty {
                let keeps = participant.name == rooms[0].participants.last?.name
                try await self.watch(room, participant, keepsFrames: keeps && room == rooms[0].name)
            }
        }
        try await awaitConnected()
    }

    /// Joins one participant and starts connecting it.
    ///
    /// `fingerprint` replaces the true fingerprint of its certificate, if given.
    func join(
        _ room: String,
        _ participant: RoomPlan.Participant,
        fingerprint: Fingerprint? = nil
    ) async throws {
        var made = engine.local()
        if let fingerprint { made.fingerprint = fingerprint }
        let local = made
        let publication = participant.media.map { published($0, local) }
        let request = JoinRequest(
            room: room,
            participant: participant.name,
            local: local,
            publication: publication,
            audioSlots: max(participant.slots, participant.streamRequests.count),
            videoSlots: participant.streamRequests.contains { $0.video }
                || participant.streamRequests.isEmpty
                ? max(participant.slots, participant.streamRequests.count) : 0
        )
        let reply = try await adapter.join(request)
        if let remote = reply.remote { await connect(room, participant.name, local, remote) }
        guard let publication, let format = reply.sending, let media = participant.media else {
            return
        }
        let overhead = engine.settings.profile.srtp.rtpOverhead
        let library = engine.library
        let name = "\(room)/\(participant.name)"
        await engine.perform { loop in
            let publisher = Publisher(
                publication,
                format,
                audio: library.audio,
                videos: media.videos.compactMap(library.video),
                frameRate: media.videos.first?.frameRate ?? 30,
                overhead: overhead
            )
            loop.client(local)?.publisher = publisher
            loop.publishers[name] = publisher
        }
    }

    /// Subscribes a joined participant to the streams in its plan.
    func watch(
        _ room: String,
        _ participant: RoomPlan.Participant,
        keepsFrames: Bool
    ) async throws {
        let spare = engine.local()
        let request = WatchRequest(
            room: room,
            participant: participant.name,
            streamRequests: participant.streamRequests,
            local: spare
        )
        let reply = try await adapter.watch(request)
        var local = transports.withLock { $0["\(room)/\(participant.name)"] }
        if let remote = reply.remote {
            local = spare
            await connect(room, participant.name, spare, remote)
        }
        guard let local else { throw AdapterError("\(participant.name) has no transport") }
        await check(reply.streams, of: room, at: local, keepsFrames: keepsFrames)
    }

    /// Lets a client check what it receives from now on.
    private func check(
        _ streams: [ReceivedStream],
        of room: String,
        at local: LocalTransport,
        keepsFrames: Bool
    ) async {
        await engine.perform { loop in
            let slots = streams.compactMap { stream in
                loop.publishers["\(room)/\(stream.publisher)"].map {
                    SlotCheck(stream, tracks: $0.tracks(stream.medium))
                }
            }
            loop.client(local)?.watch(slots, keepsFrames: keepsFrames)
        }
    }

    /// Makes a second connection for a viewer that is to move, with the same streams; returns the
    /// first one and the second.
    func move(
        _ room: String,
        _ participant: RoomPlan.Participant
    ) async throws -> (old: LocalTransport, new: LocalTransport) {
        guard let adapter = adapter as? SfudAdapter,
            let old = transports.withLock({ $0["\(room)/\(participant.name)"] })
        else { throw AdapterError("\(participant.name) has no transport that can move") }
        let new = engine.local()
        let request = WatchRequest(
            room: room,
            participant: participant.name,
            streamRequests: participant.streamRequests,
            local: new
        )
        let reply = try await adapter.move(request)
        guard let remote = reply.remote else { throw AdapterError("sfud gives no address") }
        await connect(room, participant.name, new, remote)
        await check(reply.streams, of: room, at: new, keepsFrames: false)
        return (old, new)
    }

    /// Removes a participant from its room and from the engine.
    func leave(_ room: String, _ participant: String) async throws {
        try await adapter.leave(room: room, participant: participant)
        await forget(room, participant)
    }

    /// Closes a room and removes its participants from the engine.
    func close(_ room: RoomPlan) async throws {
        try await adapter.closeRoom(room.name)
        await forget(room)
    }

    /// Removes the participants of a closed room from the engine.
    func forget(_ room: RoomPlan) async {
        for participant in room.participants { await forget(room.name, participant.name) }
    }

    private func forget(_ room: String, _ participant: String) async {
        let key = "\(room)/\(participant)"
        guard let local = transports.withLock({ $0.removeValue(forKey: key) }) else { return }
        targets.withLock { $0.removeAll { $0.username.hasSuffix(":\(local.fragment)") } }
        await engine.perform { loop in
            loop.publishers[key] = nil
            loop.remove(local)
        }
        expected.withLock { $0 -= 1 }
    }

    private func connect(
        _ room: String,
        _ participant: String,
        _ local: LocalTransport,
        _ remote: RemoteTransport
    ) async {
        transports.withLock { $0["\(room)/\(participant)"] = local }
        expected.withLock { $0 += 1 }
        if case .full(let credentials) = remote.security {
            let username = "\(credentials.fragment):\(local.fragment)"
            let target = FloodTarget(address: remote.address, username: username)
            targets.withLock { $0.append(target) }
        }
        let overhead = engine.settings.profile.srtp.rtpOverhead
        await engine.perform { $0.connect(local, to: remote, overhead: overhead) }
    }

    /// Waits until all transports have completed ICE and DTLS.
    func awaitConnected() async throws {
        let deadline = Date.now.addingTimeInterval(Self.connectSeconds)
        while true {
            let wanted = expected.withLock { $0 }
            let (connected, failure) = await engine.perform { ($0.connected, $0.failure) }
            if let failure { throw BenchError(failure) }
            if connected >= wanted { return }
            guard Date.now < deadline else {
                throw BenchError("\(connected) of \(wanted) transports connected in 20 s")
            }
            try await Task.sleep(for: .milliseconds(5))
        }
    }

    /// Starts the media of all publishers in these rooms.
    func beginMedia(of rooms: [String]) async {
        let names = Set(rooms)
        let locals = transports.withLock { transports in
            transports.filter { key, _ in names.contains(String(key.prefix { $0 != "/" })) }
        }
        .map(\.value)
        await engine.perform { loop in
            for (index, local) in locals.enumerated() {
                guard let client = loop.client(local), client.publisher != nil else { continue }
                loop.begin(client, after: Int64(index) * 33_000_000 / Int64(locals.count))
            }
        }
    }

    /// Starts the media of all publishers, spread evenly over the frame interval.
    func beginMedia(lossPercent percent: Int = 0) async {
        await engine.perform { loop in
            let clients = loop.clients.compactMap { $0 }.filter { $0.publisher != nil }
            for (index, client) in clients.enumerated() {
                client.publisher?.lossPercent = percent
                loop.begin(client, after: Int64(index) * 33_000_000 / Int64(clients.count))
            }
        }
    }

    private func published(_ media: RoomPlan.Media, _ local: LocalTransport) -> Publication {
        let first = engine.ssrcs(local)
        let rids = ["l", "m", "h"]
        let videos = media.videos
        let layers = videos.enumerated().map { index, settings in
            Publication.Layer(
                rid: videos.count > 1 ? rids[index] : nil,
                ssrc: first + 1 + 2 * UInt32(index),
                rtxSSRC: first + 2 + 2 * UInt32(index),
                width: settings.width,
                height: settings.height,
                bitrate: settings.bitrate
            )
        }
        return Publication(
            audio: media.hasAudio ? first : nil,
            layers: layers,
            isScreen: videos.first?.isScreen ?? false
        )
    }

    /// Runs `body` for all items, at most `limit` at a time.
    static func concurrently<Item: Sendable>(
        _ items: [Item],
        limit: Int = concurrency,
        _ body: @escaping @Sendable (Item) async throws -> Void
    ) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (index, item) in items.enumerated() {
                if index >= limit { try await group.next() }
                group.addTask { try await body(item) }
            }
            try await group.waitForAll()
        }
    }
}
