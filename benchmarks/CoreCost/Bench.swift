import CCounting
import LoadPeer
import RTP
import SFU
import WorkerInterface

/// A core with one publisher of some videos and many viewers of all of them, all connected.
struct Bench: ~Copyable {
    private var core: Core
    private var relays: RelayPort
    /// Worker of the viewers, if they are on another worker.
    private var viewerCore: Core
    private var viewerRelays: RelayPort
    private let isRelayed: Bool
    private var output = Batch(capacity: 256)
    private var now = Instant(nanoseconds: 1_000_000_000)
    private var publisher: LoadPeer
    private var clear: [UInt8]
    private var sequence: UInt64 = 100
    private let identity: DTLSIdentity
    private let publications: Int
    private let burst: Int
    private(set) var copies = 0
    /// Send calls for the copies: runs of equal sizes to one address, the last may be shorter.
    private(set) var runs = 0
    private(set) var profile = "?"
    /// CPU time of the core, in nanoseconds.
    private(set) var nanoseconds: Int64 = 0
    /// Nanoseconds a copy in the fastest batch, which is the least affected by cache disturbances.
    private(set) var least = Int64.max

    init(_ options: Options) throws {
        identity = try DTLSIdentity(profiles: [options.profile])
        let context = SRTPContext(engine: options.engine)
        core = Core(limits: .default, seed: 1, identity: identity, engine: options.engine)
        viewerCore = Core(limits: .default, seed: 2, identity: identity, engine: options.engine)
        isRelayed = options.relays
        let mesh = RelayMesh(workers: 2)
        relays = mesh.port(of: 0)
        viewerRelays = mesh.port(of: 1)
        publications = options.publications
        burst = options.burst
        publisher = LoadPeer(
            identity: identity,
            context: context,
            path: BenchMedia.path(0),
            seed: 1
        )
        clear = BenchMedia.keyframePacket()
        let videos = (0..<publications).map(BenchMedia.publication)
        Self.connect(&publisher, 0, identity, videos, [], &core, now)
        profile = publisher.profile?.name ?? "?"
        if isRelayed { for video in videos { mirror(video) } }
        for index in 1...options.viewers {
            var viewer = LoadPeer(
                identity: identity,
                context: context,
                path: BenchMedia.path(index),
                seed: UInt64(index + 1)
            )
            let slots = videos.indices.map { BenchMedia.slot(index * publications + $0) }
            if isRelayed {
                Self.connect(&viewer, index, identity, [], slots, &viewerCore, now)
            } else {
                Self.connect(&viewer, index, identity, [], slots, &core, now)
            }
            for (slot, video) in zip(slots, videos) { bind(slot.id, to: video.id) }
        }
        // Connecting is a hundred times the work of forwarding, and none of what is counted.
        counting_instructions_start()
        // The first keyframe opens all keyframe gates; the events are for the control plane.
        var sent = Batch(capacity: Core.batchCapacity)
        forwardBatch(of: 1, through: &sent)
        clear[26] |= 1
        while core.takeEvent() != nil {}
        while viewerCore.takeEvent() != nil {}
    }

    /// Creates a mirror of the publication in the other worker.
    private mutating func mirror(_ video: PublicationConfiguration) {
        let home = RelayTarget(worker: 0, publication: video.id)
        let mirror = Mirror(configuration: video, home: home, open: true)
        viewerCore.apply(.mirror(mirror), at: now, into: &output)
        let target = RelayTarget(worker: 1, publication: video.id)
        core.apply(.relay(video.id, to: [target]), at: now, into: &output)
    }

    private mutating func bind(_ slot: SlotID, to publication: PublicationID) {
        let binding = Binding(publication: publication, subscription: 1, open: true)
        if isRelayed {
            viewerCore.apply(.bind(slot, binding), at: now, into: &output)
        } else {
            core.apply(.bind(slot, binding), at: now, into: &output)
        }
        output.removeAll()
    }

    /// Gives the last viewer `count` more subscriptions.
    mutating func subscribe(_ count: Int, viewer: Int) {
        let first = (viewer + 1) * publications
        let slots = (first..<first + count).map(BenchMedia.slot)
        let id = TransportID(index: UInt32(viewer), generation: 1)
        let configuration = Self.configuration(viewer, identity, [], slots)
        core.apply(.configure(id, configuration), at: now, into: &output)
        for slot in slots { bind(slot.id, to: BenchMedia.publication(0).id) }
        while core.takeEvent() != nil {}
    }

    /// Forwards packets of each publication in bursts; `sent` holds the publisher's datagrams.
    mutating func forward(packets: Int, through sent: inout Batch) {
        var left = packets
        while left > 0 {
            forwardBatch(of: min(left, burst), through: &sent)
            left -= burst
        }
    }

    private mutating func forwardBatch(of count: Int, through sent: inout Batch) {
        prepare(count, into: &sent)
        let start = threadNanoseconds()
        let before = copies
        deliver(sent)
        let passed = threadNanoseconds() - start
        nanoseconds += passed
        if copies > before { least = min(least, passed / Int64(copies - before)) }
        now = now.advanced(nanoseconds: 8_000_000)
    }

    /// Does all the measured work; `Scripts/gate` identifies it by its name.
    @inline(never)
    private mutating func deliver(_ sent: borrowing Batch) {
        for index in 0..<sent.count {
            core.receive(sent[index], on: BenchMedia.path(0), at: now, into: &output)
        }
        core.relay(into: &relays, at: now)
        flush(isViewerCore: false)
        if relays.publish(to: 1) {
            _ = viewerCore.receive(from: &viewerRelays, at: now)
            viewerCore.relay(into: &viewerRelays, at: now)
            flush(isViewerCore: true)
        }
    }

    private mutating func flush(isViewerCore: Bool) {
        var more = true
        while more {
            more =
                isViewerCore
                ? viewerCore.flush(into: &output, at: now) : core.flush(into: &output, at: now)
            copies += output.count
            runs += countRuns()
            output.removeAll()
        }
    }

    /// Counts GSO runs; never inlined, so that `Scripts/gate` can exclude it.
    @inline(never)
    private func countRuns() -> Int {
        var runs = 0
        var isOver = true
        for index in 0..<output.count {
            if index > 0, !isOver, output.path(at: index) == output.path(at: index - 1),
                output.length(at: index) <= output.length(at: index - 1)
            {
                isOver = output.length(at: index) < output.length(at: index - 1)
            } else {
                runs += 1
                isOver = false
            }
        }
        return runs
    }

    /// Queues `count` packets of each publication.
    ///
    /// They form a frame whose later packets are one byte longer, as libwebrtc splits it.
    private mutating func prepare(_ count: Int, into sent: inout Batch) {
        // Only the core is counted.
        counting_pause()
        defer { counting_resume() }
        sent.removeAll()
        for position in 0..<count {
            sequence += 1
            clear[2] = UInt8(truncatingIfNeeded: sequence >> 8)
            clear[3] = UInt8(truncatingIfNeeded: sequence)
            for publication in 0..<publications {
                var packet = clear
                if 2 * position < count { packet.removeLast() }
                packet[11] = UInt8(truncatingIfNeeded: publication)
                publisher.sendRTP(packet.span, index: sequence, into: &sent)
            }
        }
    }

    static func connect(
        _ peer: inout LoadPeer,
        _ index: Int,
        _ identity: DTLSIdentity,
        _ publications: [PublicationConfiguration],
        _ slots: [SlotConfiguration],
        _ core: inout Core,
        _ now: Instant
    ) {
        let id = TransportID(index: UInt32(index), generation: 1)
        let configuration = configuration(index, identity, publications, slots)
        var output = Batch(capacity: 64)
        core.apply(.configure(id, configuration), at: now, into: &output)
        var queue = Batch(capacity: 64)
        // Allocations of the peer are not the core's.
        counting_pause()
        peer.connect(
            fragment: configuration.ice.localFragment,
            password: configuration.ice.localPassword,
            fingerprint: identity.fingerprint,
            at: now,
            into: &queue
        )
        counting_resume()
        while queue.count > 0 {
            for position in 0..<queue.count {
                core.receive(queue[position], on: peer.path, at: now, into: &output)
            }
            queue.removeAll()
            counting_pause()
            for position in 0..<output.count {
                _ = peer.receive(output[position], at: now, into: &queue)
            }
            counting_resume()
            output.removeAll()
        }
    }

    static func configuration(
        _ index: Int,
        _ identity: DTLSIdentity,
        _ publications: [PublicationConfiguration],
        _ slots: [SlotConfiguration]
    ) -> TransportConfiguration {
        let seed = UInt64(index + 1)
        return TransportConfiguration(
            ice: ICECredentials(
                localFragment: "core\(index)",
                localPassword: "corepassword0123456789-\(index)",
                remoteFragment: LoadPeer.fragment(seed: seed),
                remotePassword: LoadPeer.password(seed: seed)
            ),
            dtlsRole: .server,
            fingerprints: [identity.fingerprint],
            reducedSizeRTCP: true,
            cname: "sfud",
            publications: publications,
            slots: slots
        )
    }
}
