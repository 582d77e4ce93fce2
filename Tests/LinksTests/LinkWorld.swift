import RTP
import TestSupport
import Testing
import WorkerInterface

@testable import Links
@testable import SFU

/// Two nodes' link threads, each with one worker, joined by a simulated path in virtual time.
///
/// At `origin` the test itself is the worker that has the publisher. At the far node a reader of
/// mirrors stands for the worker with the viewers.
struct LinkWorld: ~Copyable {
    /// Faults of the path, in both directions.
    struct Faults {
        var lossPercent = 0
        var delay: ClosedRange<Int64> = 20...20
        var duplicatePercent = 0
        var isCut = false
        /// Bits a second towards the far node, and the milliseconds that a datagram may wait for
        /// them; `nil`: no limit.
        var rate: Int?
        var queueMilliseconds: Int64 = 150
    }

    private struct Flying {
        var due: Instant
        var toFar: Bool
        var bytes: [UInt8]
    }

    var now = Instant(nanoseconds: 1_000_000_000_000)
    var faults = Faults()
    var origin: LinkMedia
    var far: LinkMedia
    /// Whether the far node stands still.
    var isFarStopped = false
    /// Ends of the far node's lease on the rooms of the origin.
    var leaseEnd = Instant(nanoseconds: 0)
    /// Packets that the far node's worker has got.
    var packets: [TapPacket] = []
    /// Keyframe requests that the publisher's worker has got.
    var requests = 0
    /// Media datagrams that have left the origin.
    var sent = 0
    /// Messages of warm pictures that another worker of the far node has got.
    var pictures: [RelayMessage] = []
    private var worker: RelayPort
    private var viewer: TapPort
    /// The other worker of the far node, which asks for warm pictures.
    private var asker: RelayPort
    private var flying: [Flying] = []
    /// Time when the bottleneck is free again.
    private var free = Instant(nanoseconds: 0)
    private var noise: SeededRandom
    /// Captured datagrams for the far node.
    var captured: [[UInt8]] = []

    static let home = PublicationID(index: 1, generation: 1)
    static let outgoing = PublicationID(index: 2, generation: 7)
    static let incoming = PublicationID(index: 5, generation: 3)
    static let mirror = PublicationID(index: 9, generation: 2)
    static let asking = PublicationID(index: 10, generation: 2)
    /// The same of the publisher's sound.
    static let sound = (
        home: PublicationID(index: 11, generation: 1),
        outgoing: PublicationID(index: 12, generation: 7),
        incoming: PublicationID(index: 15, generation: 3),
        mirror: PublicationID(index: 19, generation: 2)
    )
    static let name = StreamName(
        home: "origin",
        target: RelayTarget(worker: 0, publication: home)
    )

    init(seed: UInt64, kind: MediaKind = .video, rids: [String?] = [nil]) throws {
        let near = try Self.core(1)
        let away = try Self.core(2)
        noise = SeededRandom(seed: seed)
        let (left, right) = (RelayMesh(workers: 2), RelayMesh(workers: 3))
        worker = left.port(of: 0)
        viewer = TapPort(right.port(of: 0))
        asker = right.port(of: 2)
        origin = LinkMedia(core: near, port: left.port(of: 1), at: now)
        far = LinkMedia(core: away, port: right.port(of: 1), at: now)
        connect(keys: 1)
        far.apply(.link(.hold(home: "origin", lease: 0)), at: now)
        var configuration = Self.configuration(kind, rids)
        configuration.id = Self.outgoing
        let target = RelayTarget(worker: 0, publication: Self.home)
        let outgoing = Mirror(configuration: configuration, home: target, open: true)
        origin.apply(.mirror(outgoing), at: now)
        origin.apply(.link(.send(Self.outgoing, as: Self.name, to: ["far"])), at: now)
        configuration.id = Self.incoming
        far.apply(.link(.receive(configuration, Self.name, from: "origin")), at: now)
        let mirror = RelayTarget(worker: 0, publication: Self.mirror)
        far.apply(.relay(Self.incoming, to: [mirror]), at: now)
        far.apply(.gate(Self.incoming, open: true), at: now)
        configuration.id = Self.mirror
        let link = RelayTarget(worker: 1, publication: Self.incoming)
        viewer.mirror(Mirror(configuration: configuration, home: link, open: true), at: now)
        now = now.advanced(milliseconds: 1)
    }

    /// Gives both sides new keys, as after a new connection between them.
    mutating func connect(keys first: UInt8) {
        let (one, two) = (Self.direction(first), Self.direction(first + 1))
        let address = Address(ipv4: 0x7f00_0001, port: 9)
        origin.apply(
            .link(.connect("far", address, LinkKeys(outgoing: one, incoming: two))),
            at: now
        )
        far.apply(
            .link(.connect("origin", address, LinkKeys(outgoing: two, incoming: one))),
            at: now
        )
    }

    /// Lets the origin's process begin again: its link thread knows nothing of what was wanted.
    mutating func restartOrigin(keys: UInt8) throws {
        let mesh = RelayMesh(workers: 2)
        worker = mesh.port(of: 0)
        origin = LinkMedia(core: try Self.core(3), port: mesh.port(of: 1), at: now)
        flying = []
        connect(keys: keys)
        var configuration = Self.configuration(.video, [nil])
        configuration.id = Self.outgoing
        let target = RelayTarget(worker: 0, publication: Self.home)
        let outgoing = Mirror(configuration: configuration, home: target, open: true)
        origin.apply(.mirror(outgoing), at: now)
        origin.apply(.link(.send(Self.outgoing, as: Self.name, to: ["far"])), at: now)
    }

    /// Adds the publisher's sound, which the far node wants.
    mutating func addSound(wanted: UInt8 = 1) {
        var configuration = Self.configuration(.audio, [nil])
        configuration.id = Self.sound.outgoing
        let home = RelayTarget(worker: 0, publication: Self.sound.home)
        let name = StreamName(home: "origin", target: home)
        let outgoing = Mirror(configuration: configuration, home: home, open: true)
        origin.apply(.mirror(outgoing), at: now)
        origin.apply(.link(.send(Self.sound.outgoing, as: name, to: ["far"])), at: now)
        configuration.id = Self.sound.incoming
        far.apply(.link(.receive(configuration, name, from: "origin")), at: now)
        let mirror = RelayTarget(worker: 0, publication: Self.sound.mirror)
        far.apply(.relay(Self.sound.incoming, to: [mirror]), at: now)
        far.apply(.gate(Self.sound.incoming, open: true), at: now)
        configuration.id = Self.sound.mirror
        let link = RelayTarget(worker: 1, publication: Self.sound.incoming)
        viewer.mirror(Mirror(configuration: configuration, home: link, open: true), at: now)
        far.apply(.link(.want(Self.sound.incoming, wanted)), at: now)
    }

    static func core(_ seed: UInt64) throws -> Core {
        Core(
            limits: .default,
            seed: seed,
            identity: try DTLSIdentity(),
            engine: .best
        )
    }

    static func direction(_ number: UInt8) -> LinkKeys.Direction {
        LinkKeys.Direction(
            association: UInt64(number),
            key: [UInt8](repeating: number, count: 32),
            vector: [UInt8](repeating: number &+ 7, count: 12)
        )
    }

    static func configuration(_ kind: MediaKind, _ rids: [String?]) -> PublicationConfiguration {
        let codec: Codec = kind == .audio ? .opus : .vp8
        return PublicationConfiguration(
            id: home,
            mid: "0",
            kind: kind,
            formats: [FormatMapping(format: MediaFormat(codec: codec), payloadType: 96)],
            extensions: ExtensionMap(),
            encodings: rids.map { EncodingConfiguration(rid: $0) }
        )
    }

    mutating func want(_ encodings: UInt8) {
        far.apply(.link(.want(Self.incoming, encodings)), at: now)
    }

    /// Lets the far node's other worker have a mirror too, and ask for the warm picture.
    mutating func askForPicture() {
        let targets = [
            RelayTarget(worker: 0, publication: Self.mirror),
            RelayTarget(worker: 2, publication: Self.asking),
        ]
        far.apply(.relay(Self.incoming, to: targets), at: now)
        let request = RelayMessage(
            .pictureRequest,
            to: Self.incoming,
            from: Self.asking,
            position: 0
        )
        _ = asker.write(request, Span(), to: 1)
        _ = asker.publish(to: 1)
    }

    private mutating func takePictures() {
        while !asker[reader: 1].isEmpty() {
            let message = asker[reader: 1].message
            if case .picture = message.kind { pictures.append(message) }
            asker[reader: 1].advance()
        }
        asker[reader: 1].release()
    }

    /// Opens or closes the gates as a home does: at the origin first.
    mutating func gate(open: Bool) {
        origin.apply(.gate(Self.outgoing, open: open), at: now)
        far.apply(.gate(Self.incoming, open: open), at: now)
        viewer.gate(Self.mirror, open: open, at: now)
    }

    /// Lets the publisher's worker relay a packet that has just arrived.
    mutating func publish(
        _ number: Int64,
        position: Int = 0,
        isKeyframe: Bool = false,
        temporal: UInt8 = 0,
        size: Int = 60
    ) {
        var message = RelayMessage(
            .packet,
            to: Self.outgoing,
            from: Self.home,
            position: position
        )
        if temporal > 0 { message.info.points = LayerPoints(temporal: temporal) }
        let rest = [UInt8](repeating: UInt8(position), count: size)
        write(message, number, Self.frame(isKeyframe: isKeyframe) + rest, isKeyframe: isKeyframe)
    }

    /// The begin of a frame of VP8.
    static func frame(isKeyframe: Bool) -> [UInt8] {
        [isKeyframe ? 0x10 : 0x00, isKeyframe ? 0 : 1, 0, 0, 0x9d, 1, 0x2a]
    }

    /// Lets it relay a packet of sound.
    mutating func speak(_ number: Int64) {
        let message = RelayMessage(
            .packet,
            to: Self.sound.outgoing,
            from: Self.sound.home,
            position: 0
        )
        write(message, number, [UInt8](repeating: 7, count: 100), isKeyframe: false)
    }

    private mutating func write(
        _ template: RelayMessage,
        _ number: Int64,
        _ payload: [UInt8],
        isKeyframe: Bool
    ) {
        let (message, bytes) = Self.packet(template, number, payload, isKeyframe, at: now)
        _ = worker.write(message, bytes.span, to: 1)
        _ = worker.publish(to: 1)
    }

    /// Makes a packet of one frame, whose timestamp is its number.
    static func packet(
        _ template: RelayMessage,
        _ number: Int64,
        _ payload: [UInt8],
        _ isKeyframe: Bool,
        at now: Instant
    ) -> (RelayMessage, [UInt8]) {
        var message = template
        let low = UInt16(truncatingIfNeeded: number)
        var bytes: [UInt8] = [0x80, 0xe0, UInt8(low >> 8), UInt8(low & 0xff)]
        for shift in [24, 16, 8, 0] { bytes.append(UInt8(truncatingIfNeeded: number >> shift)) }
        bytes += [0, 0, UInt8(message.target.index), 1 + message.position]
        bytes += payload
        message.length = UInt16(bytes.count)
        message.info.arrival = now
        message.info.number = number
        message.info.sequence = SequenceNumber(rawValue: low)
        message.info.timestamp = UInt32(truncatingIfNeeded: number)
        message.info.payloadType = 96
        message.info.payloadOffset = 12
        message.info.payloadLength = UInt16(bytes.count - 12)
        message.info.flags = isKeyframe ? [.marker, .keyframeStart] : [.marker]
        message.info.epoch = 1
        return (message, bytes)
    }

    mutating func requestKeyframe() {
        _ = viewer.requestKeyframe(of: Self.mirror, position: 0)
    }

    /// Runs for some milliseconds; `body` is called at each.
    mutating func run(_ milliseconds: Int, _ body: (inout Self, Int) -> Void = { _, _ in }) {
        for step in 0..<milliseconds {
            body(&self, step)
            deliver()
            _ = origin.run(at: now)
            launch(origin.takeTransmits(), toFar: true)
            if !isFarStopped {
                _ = far.run(at: now)
                launch(far.takeTransmits(), toFar: false)
                for (_, end) in far.takeLeaseEnds() { leaseEnd = end }
                var came: [TapPacket] = []
                viewer.receive { came.append($0) }
                packets += came
                takePictures()
            }
            drainRequests()
            now = now.advanced(milliseconds: 1)
        }
    }

    private mutating func drainRequests() {
        while !worker[reader: 1].isEmpty() {
            if case .keyframeRequested = worker[reader: 1].message.kind { requests += 1 }
            worker[reader: 1].advance()
        }
        worker[reader: 1].release()
    }

    private mutating func launch(_ transmits: [LinkTransmit], toFar: Bool) {
        for transmit in transmits {
            if toFar, transmit.bytes.count > 110 { sent += 1 }
            if toFar { captured.append(transmit.bytes) }
            guard !faults.isCut else { continue }
            let copies = Int.random(in: 0..<100, using: &noise) < faults.duplicatePercent ? 2 : 1
            for _ in 0..<copies where Int.random(in: 0..<100, using: &noise) >= faults.lossPercent {
                guard let left = departure(of: transmit.bytes.count, toFar: toFar) else { continue }
                let delay = Int64.random(in: faults.delay, using: &noise)
                let due = left.advanced(milliseconds: delay)
                flying.append(Flying(due: due, toFar: toFar, bytes: transmit.bytes))
            }
        }
    }

    /// Returns the time at which a datagram has passed the bottleneck; `nil` if its queue is full.
    private mutating func departure(of bytes: Int, toFar: Bool) -> Instant? {
        guard toFar, let rate = faults.rate else { return now }
        let begin = max(now, free)
        guard begin.milliseconds(since: now) < faults.queueMilliseconds else { return nil }
        free = begin.advanced(nanoseconds: Int64(bytes + 28) * 8_000_000_000 / Int64(rate))
        return free
    }

    /// Delivers what has come, in order; for a node that stands still it waits in the socket.
    private mutating func deliver() {
        let due = flying.filter { $0.due <= now && !(isFarStopped && $0.toFar) }
            .sorted { $0.due < $1.due }
        flying.removeAll { $0.due <= now && !(isFarStopped && $0.toFar) }
        for datagram in due {
            if datagram.toFar {
                far.receive(datagram.bytes, at: now)
            } else {
                origin.receive(datagram.bytes, at: now)
            }
        }
    }
}
