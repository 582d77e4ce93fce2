import CCounting
import LoadPeer
import RTP
import SFU
import WorkerInterface

/// Cost of invalid datagrams in the core, with ten thousand transports present.
struct HostileCost: ~Copyable {
    private static let transports = 10_000
    private static let runs = 200

    private var core: Core
    private let identity: DTLSIdentity
    private let context: SRTPContext
    private var output = Batch(capacity: 256)
    private var now = Instant(nanoseconds: 1_000_000_000)
    /// A connected client that sends a video and receives it back.
    private var peer: LoadPeer
    private var packet = BenchMedia.keyframePacket()
    private var sequence: UInt64 = 0
    private var newest = 0

    /// Prints a line for each kind.
    static func report(_ options: Options) throws {
        var cost = try Self(options)
        print(
            """
            \(Self.transports) transports, \(options.profile.name) by \(options.engine.rawValue); \
            ns of CPU a datagram: the median of \(Self.runs) runs, and the dearest
            """
        )
        for kind in HostileKind.allCases {
            let (median, most) = cost.measure(kind)
            print("\(kind.rawValue): \(median), at most \(most)")
        }
        print("heap bytes of a handshake that does not go on: \(cost.pendingBytes())")
    }

    private init(_ options: Options) throws {
        identity = try DTLSIdentity(profiles: [options.profile])
        context = SRTPContext(engine: options.engine)
        core = Core(limits: .default, seed: 1, identity: identity, engine: options.engine)
        peer = LoadPeer(
            identity: identity,
            context: context,
            path: BenchMedia.path(0),
            seed: 1
        )
        let video = BenchMedia.publication(0)
        let slot = BenchMedia.slot(0)
        Bench.connect(&peer, 0, identity, [video], [slot], &core, now)
        let binding = Binding(publication: video.id, subscription: 1, open: true)
        core.apply(.bind(slot.id, binding), at: now, into: &output)
        output.removeAll()
        while newest < Self.transports { configureNext() }
        var queue = Batch(capacity: 64)
        for _ in 0..<100 { sendVideo(&queue) }
    }

    /// Adds a transport that nobody has connected to; later one for each handshake.
    private mutating func configureNext() {
        newest += 1
        let id = TransportID(index: UInt32(newest), generation: 1)
        let configuration = Bench.configuration(newest, identity, [], [])
        core.apply(.configure(id, configuration), at: now, into: &output)
        output.removeAll()
        while core.takeEvent() != nil {}
    }

    /// Forwards sixteen packets of the video, so that feedback has packets to report on.
    private mutating func sendVideo(_ queue: inout Batch) {
        queue.removeAll()
        for _ in 0..<16 { send(into: &queue) }
        deliver(queue)
        now = now.advanced(milliseconds: 20)
    }

    private mutating func send(into queue: inout Batch) {
        sequence += 1
        var bytes = packet
        bytes[2] = UInt8(truncatingIfNeeded: sequence >> 8)
        bytes[3] = UInt8(truncatingIfNeeded: sequence)
        if sequence > 1 { bytes[26] |= 1 }
        peer.sendRTP(bytes.span, index: sequence, into: &queue)
    }

    /// Returns the median and the maximum of the runs.
    private mutating func measure(_ kind: HostileKind) -> (median: Int64, most: Int64) {
        var each: [Int64] = []
        var queue = Batch(capacity: 256)
        for run in 0..<Self.runs {
            sendVideo(&queue)
            prepare(kind, run, into: &queue)
            let start = threadNanoseconds()
            deliver(queue)
            each.append((threadNanoseconds() - start) / Int64(max(1, queue.count)))
            now = now.advanced(milliseconds: 100)
        }
        each.sort()
        return (each[each.count / 2], each[each.count - 1])
    }

    private mutating func deliver(_ queue: borrowing Batch) {
        for position in 0..<queue.count {
            let path = queue.path(at: position)
            core.receive(queue[position], on: path, at: now, into: &output)
            // Outgoing datagrams are never answered.
            if output.free < 64 { output.removeAll() }
        }
        while core.flush(into: &output, at: now) { output.removeAll() }
        output.removeAll()
    }

    /// Queues a run of that kind.
    private mutating func prepare(_ kind: HostileKind, _ run: Int, into queue: inout Batch) {
        queue.removeAll()
        let first = run * HostileKind.burst
        switch kind {
        case .unknownName: checks(to: "nobody", first, into: &queue)
        case .guessedPassword: checks(to: "core7", first, into: &queue)
        case .garbage64:
            Self.sendFromUnknownSources(Array(repeating: 0x80, count: 64), first, into: &queue)
        case .garbage1200:
            Self.sendFromUnknownSources(Array(repeating: 0x80, count: 1_200), first, into: &queue)
        case .hello: Self.sendFromUnknownSources(hello(), first, into: &queue)
        case .badTag: badTags(into: &queue)
        case .feedbackOfNothing: feedback(of: .max, deltas: 0, into: &queue)
        case .feedbackOfAll: feedback(of: 1_300, deltas: 1_300, into: &queue)
        case .helloOfOneFragment, .fragmentOfOneByte, .emptyFragment, .contradiction:
            fragments(kind, into: &queue)
        }
    }
}

// Contents of the datagrams.
extension HostileCost {
    private static func unknownSource(_ number: Int) -> Path { BenchMedia.path(1_000_000 + number) }

    private func checks(to fragment: String, _ first: Int, into queue: inout Batch) {
        var made = Batch(capacity: 4)
        for number in 0..<HostileKind.burst {
            var guesser = LoadPeer(
                identity: identity,
                context: context,
                path: Self.unknownSource(first + number),
                seed: UInt64(8)
            )
            made.removeAll()
            guesser.connect(
                fragment: fragment,
                password: "guessed-0123456789012345",
                fingerprint: identity.fingerprint,
                at: now,
                into: &made
            )
            Self.add(made[0], from: guesser.path, to: &queue)
        }
    }

    private static func sendFromUnknownSources(
        _ bytes: [UInt8],
        _ first: Int,
        into queue: inout Batch
    ) {
        for number in 0..<HostileKind.burst {
            add(bytes.span, from: unknownSource(first + number), to: &queue)
        }
    }

    private mutating func badTags(into queue: inout Batch) {
        var made = Batch(capacity: HostileKind.burst)
        for _ in 0..<HostileKind.burst { send(into: &made) }
        for position in 0..<made.count {
            Self.add(made[position], from: peer.path, to: &queue, spoilingTheLast: true)
        }
    }

    /// Queues transport-wide feedback on `count` packets.
    ///
    /// Its format is that of draft-holmer-rmcat-transport-wide-cc-extensions-01 §3.1.
    private mutating func feedback(of count: UInt16, deltas: Int, into queue: inout Batch) {
        let symbol: UInt16 = deltas > 0 ? 1 : 0
        for number in 0..<4 as Range<UInt8> {
            peer.sendRTCP(into: &queue) { output in
                var chunks: [UInt16] = []
                var left = count
                while left > 0 {
                    let length = min(left, 8_191)
                    chunks.append(symbol << 13 | length)
                    left -= length
                }
                var bytes = 20 + 2 * chunks.count + deltas
                while bytes % 4 != 0 { bytes += 1 }
                bytes = min(bytes, 1_400)
                output.append(0x8f)
                output.append(205)
                output.append(bigEndian: UInt16(bytes / 4 - 1))
                output.append(bigEndian: UInt32(1))
                output.append(bigEndian: UInt32(0x10_0000))
                output.append(bigEndian: UInt16(0))
                output.append(bigEndian: count)
                output.append(bigEndian: UInt32(1) << 8 | UInt32(number))
                for chunk in chunks { output.append(bigEndian: chunk) }
                while output.count < bytes { output.append(4) }
            }
        }
    }

    private static func add(
        _ bytes: Span<UInt8>,
        from path: Path,
        to queue: inout Batch,
        spoilingTheLast isSpoiled: Bool = false
    ) {
        var target = queue.next
        for index in bytes.indices { target[index] = bytes[index] }
        if isSpoiled { target[bytes.count - 1] ^= 1 }
        queue.commit(length: bytes.count, to: path)
    }
}

// Handshakes.
extension HostileCost {
    private func hello() -> [UInt8] {
        guard
            var association = try? DTLSAssociation(
                identity: identity,
                role: .client,
                fingerprints: [identity.fingerprint],
                at: now
            )
        else { preconditionFailure("there is memory for one more association") }
        return [UInt8](capacity: Batch.maximumLength) { output in
            _ = association.nextDatagram(into: &output)
        }
    }

    /// Validates the address of the newest transport's peer; returns its path.
    private mutating func validateNext(_ queue: inout Batch) -> Path {
        let path = BenchMedia.path(newest)
        let seed = UInt64(newest + 1)
        var unknownSource = LoadPeer(identity: identity, context: context, path: path, seed: seed)
        let ice = Bench.configuration(newest, identity, [], []).ice
        queue.removeAll()
        unknownSource.connect(
            fragment: ice.localFragment,
            password: ice.localPassword,
            fingerprint: identity.fingerprint,
            at: now,
            into: &queue
        )
        deliver(queue)
        queue.removeAll()
        return path
    }

    /// Queues a ClientHello from a validated address, fragmented according to `kind`.
    private mutating func fragments(_ kind: HostileKind, into queue: inout Batch) {
        configureNext()
        let path = validateNext(&queue)
        let whole = hello()
        let length = whole.count - 25
        for number in 0..<HostileKind.burst {
            let (from, count) =
                switch kind {
                case .helloOfOneFragment: (0, length)
                case .emptyFragment: (number % length, 0)
                case .contradiction: (number % 8, length - 8)
                default: (number % length, 1)
                }
            var bytes: [UInt8] = [22, 0xfe, 0xff, 0, 0, 0, 0, 0, 0, 0, UInt8(number)]
            bytes += Self.two(12 + count) + whole[13..<19]
            bytes += [0] + Self.two(from) + [0] + Self.two(count)
            bytes += whole[25 + from..<25 + from + count].map {
                kind == .contradiction ? $0 ^ UInt8(truncatingIfNeeded: number) : $0
            }
            Self.add(bytes.span, from: path, to: &queue)
            if kind == .helloOfOneFragment { break }
        }
    }

    private static func two(_ number: Int) -> [UInt8] {
        [UInt8(truncatingIfNeeded: number >> 8), UInt8(truncatingIfNeeded: number)]
    }

    /// Returns the heap bytes of a handshake that a validated peer abandons after its ClientHello.
    fileprivate mutating func pendingBytes() -> Int64 {
        let count = 100
        var queue = Batch(capacity: 4)
        counting_start()
        for _ in 0..<count {
            configureNext()
            counting_pause()
            let path = validateNext(&queue)
            let bytes = hello()
            Self.add(bytes.span, from: path, to: &queue)
            counting_resume()
            deliver(queue)
        }
        return counting_stop().bytes / Int64(count)
    }
}

/// Kinds of invalid datagrams, by their names in `core-cost --hostile`.
enum HostileKind: String, CaseIterable {
    /// Datagrams of a kind in one run.
    static let burst = 64

    case unknownName = "a check with nobody's name"
    case guessedPassword = "a check with a guessed password"
    case garbage64 = "64 bytes from nobody"
    case garbage1200 = "1,200 bytes from nobody"
    case hello = "a hello from nobody"
    case badTag = "1,200 bytes of a sender, the tag wrong"
    case feedbackOfNothing = "feedback on 65,535 packets that were not there"
    case feedbackOfAll = "feedback on 1,300 packets"
    case helloOfOneFragment = "a hello, answered"
    case fragmentOfOneByte = "a hello's fragment of one byte"
    case emptyFragment = "a hello's empty fragment"
    case contradiction = "a hello's fragment that contradicts the one before"
}
