import CCounting
import LoadPeer
import RTP
import SFU

/// A core with publishers and viewers, all connected.
struct Bench: ~Copyable {
    private var core: Core
    private var output = Batch(capacity: 256)
    private var now = Instant(nanoseconds: 1_000_000_000)
    private var publishers: [BenchPublisher] = []
    private let shape: Shape
    private(set) var copies = 0
    private(set) var profile = "?"
    /// Nanoseconds spent on the publishers' side, which are not the core's.
    private(set) var preparation: Int64 = 0

    init(_ options: Options) throws {
        let identity = try DTLSIdentity(profiles: options.profiles)
        let context = SRTPContext(engine: options.engine)
        shape = options.shape
        core = Core(limits: .default, seed: 1, identity: identity, engine: options.engine)
        let senders = shape.publishers(viewers: options.viewers)
        let members = shape == .livestream ? options.viewers + 1 : options.viewers
        var bindings: [(SlotID, Int)] = []
        for index in 0..<members {
            var peer = LoadPeer(
                identity: identity,
                context: context,
                path: Self.path(index),
                seed: UInt64(index + 1)
            )
            let first = bindings.count
            for sender in 0..<senders where sender != index {
                bindings.append((SlotID(index: UInt32(bindings.count), generation: 1), sender))
            }
            let slots = bindings[first...].map { Self.slot($0.0) }
            let publications = index < senders ? [Self.publication(index)] : []
            Self.connect(&peer, index, identity, publications, slots, &core, now)
            guard index < senders else { continue }
            profile = peer.profile?.name ?? "?"
            publishers.append(
                BenchPublisher(
                    peer: peer,
                    ssrc: Self.ssrc(index),
                    framePackets: shape.packetsPerBatch
                )
            )
        }
        for (number, (slot, sender)) in bindings.enumerated() {
            let binding = Binding(
                publication: Self.publication(sender).id,
                subscription: UInt64(number + 1),
                open: true
            )
            core.apply(.bind(slot, binding), at: now, into: &output)
            output.removeAll()
        }
        // The first keyframes open all gates; the events are the control plane's.
        var sent = Batch(capacity: 64)
        forward(batches: 1, through: &sent)
        for publisher in publishers { publisher.endKeyframe() }
        while core.takeEvent() != nil {}
    }

    /// Packets that one batch brings.
    var batchSize: Int { publishers.count * shape.packetsPerBatch }

    /// Sends batches through; `sent` is the publishers' side of the wire.
    mutating func forward(batches: Int, through sent: inout Batch) {
        for _ in 0..<batches {
            prepare(into: &sent)
            deliver(sent)
            now = now.advanced(milliseconds: 33)
        }
    }

    /// All that is measured; `Scripts/gate` knows it by its name.
    @inline(never)
    private mutating func deliver(_ sent: borrowing Batch) {
        let senders = publishers.count
        for index in 0..<sent.count {
            core.receive(sent[index], on: Self.path(index % senders), at: now, into: &output)
        }
        var more = true
        while more {
            more = core.flush(into: &output, at: now)
            copies += output.count
            output.removeAll()
        }
    }

    private mutating func prepare(into sent: inout Batch) {
        // Only the core is looked at.
        counting_pause()
        defer { counting_resume() }
        let start = ContinuousClock.now
        sent.removeAll()
        for _ in 0..<shape.packetsPerBatch {
            for publisher in publishers { publisher.send(into: &sent) }
        }
        let passed = start.duration(to: .now).components
        preparation += passed.seconds * 1_000_000_000 + passed.attoseconds / 1_000_000_000
    }

    private static func connect(
        _ peer: inout LoadPeer,
        _ index: Int,
        _ identity: DTLSIdentity,
        _ publications: [PublicationConfiguration],
        _ slots: [SlotConfiguration],
        _ core: inout Core,
        _ now: Instant
    ) {
        let ice = ICECredentials(
            localFragment: "core\(index)",
            localPassword: "corepassword0123456789-\(index)",
            remoteFragment: peer.localFragment,
            remotePassword: peer.localPassword
        )
        let configuration = TransportConfiguration(
            ice: ice,
            dtlsRole: .server,
            fingerprints: [identity.fingerprint],
            reducedSizeRTCP: true,
            cname: "sfud",
            publications: publications,
            slots: slots
        )
        let id = TransportID(index: UInt32(index), generation: 1)
        var output = Batch(capacity: 64)
        core.apply(.configure(id, configuration), at: now, into: &output)
        var queue = Batch(capacity: 64)
        peer.connect(
            fragment: ice.localFragment,
            password: ice.localPassword,
            fingerprint: identity.fingerprint,
            at: now,
            into: &queue
        )
        while queue.count > 0 {
            for position in 0..<queue.count {
                core.receive(queue[position], on: peer.path, at: now, into: &output)
            }
            queue.removeAll()
            for position in 0..<output.count {
                _ = peer.receive(output[position], at: now, into: &queue)
            }
            output.removeAll()
        }
    }

    private static func path(_ index: Int) -> Path {
        Path(remote: Address(ipv4: 0x0a00_0000 + UInt32(index), port: 4_000), local: 0)
    }

    private static let vp8 = FormatMapping(
        format: MediaFormat(codec: .vp8),
        payloadType: 96,
        rtxPayloadType: 97,
        feedback: [.nack, .pictureLoss, .transportWide]
    )

    private static func ssrc(_ publisher: Int) -> UInt32 { 0x2222 + UInt32(publisher) }

    private static func publication(_ index: Int) -> PublicationConfiguration {
        var extensions = ExtensionMap()
        extensions[.transportSequenceNumber] = 3
        return PublicationConfiguration(
            id: PublicationID(index: UInt32(index), generation: 1),
            mid: "0",
            kind: .video,
            formats: [vp8],
            extensions: extensions,
            encodings: [EncodingConfiguration(ssrc: SSRC(rawValue: ssrc(index)))]
        )
    }

    private static func slot(_ id: SlotID) -> SlotConfiguration {
        var extensions = ExtensionMap()
        extensions[.mid] = 4
        extensions[.absoluteSendTime] = 2
        extensions[.transportSequenceNumber] = 3
        return SlotConfiguration(
            id: id,
            mid: "\(id.index % 100 + 1)",
            kind: .video,
            ssrc: SSRC(rawValue: 0x10_0000 + id.index),
            rtxSSRC: SSRC(rawValue: 0x20_0000 + id.index),
            formats: [vp8],
            extensions: extensions
        )
    }
}
