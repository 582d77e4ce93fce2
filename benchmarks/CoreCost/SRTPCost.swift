import RTP
import SFU
import WorkerInterface

/// Cost of the encryption and decryption of one RTP packet, by profile, size and batch.
struct SRTPCost: ~Copyable {
    private let context: SRTPContext
    private var sender: SRTPSession
    private var receiver: SRTPSession
    private var index: UInt64 = 0

    private init(
        _ context: SRTPContext,
        _ sender: consuming SRTPSession,
        _ receiver: consuming SRTPSession
    ) {
        self.context = context
        self.sender = sender
        self.receiver = receiver
    }

    /// Prints a line for each profile, size and batch, with the minimum of many repeats.
    static func report(_ engine: SRTPEngine) throws {
        print("ns a packet by \(engine.rawValue): profile, bytes, packets a batch, out, in")
        for profile in SRTPProfile.allCases {
            for size in [1_200, 100] {
                for count in [1, 4, 16, largestBatch] {
                    var cost = try make(profile, engine)
                    let (out, back) = cost.measure(size: size, count: count)
                    print("\(profile.name) \(size) \(count) \(out) \(back)")
                }
            }
        }
    }

    private static func make(
        _ profile: SRTPProfile,
        _ engine: SRTPEngine
    ) throws(SRTPError) -> Self {
        let context = SRTPContext(engine: engine)
        let material = (0..<2 * (profile.keyLength + profile.saltLength)).map {
            UInt8(truncatingIfNeeded: 37 &* $0 &+ 11)
        }
        let local = SRTPKeys(profile: profile, exported: material.span, role: .client)
        let remote = SRTPKeys(profile: profile, exported: material.span, role: .server)
        let sender = try SRTPSession(profile: profile, keys: local, context: context)
        let receiver = try SRTPSession(profile: profile, keys: remote, context: context)
        return Self(context, sender, receiver)
    }

    private mutating func measure(size: Int, count: Int) -> (out: Int64, back: Int64) {
        let payload = Array(repeating: 0x5a as UInt8, count: size - 12)
        var wire = Batch(capacity: Self.largestBatch)
        var clear = Array(repeating: 0 as UInt8, count: Batch.stride)
        var best = (out: Int64.max, back: Int64.max)
        let rounds = max(1, 512 / count)
        for _ in 0..<Self.repeats {
            var total = (out: 0 as Int64, back: 0 as Int64)
            for _ in 0..<rounds {
                wire.removeAll()
                let start = ContinuousClock.now
                for _ in 0..<count { protect(payload.span, into: &wire) }
                context.finish()
                let middle = ContinuousClock.now
                for position in 0..<count {
                    var output = clear.mutableSpan
                    unprotect(wire[position], into: &output)
                }
                total.out += Self.nanoseconds(start, middle)
                total.back += Self.nanoseconds(middle, .now)
            }
            let packets = Int64(rounds * count)
            best.out = min(best.out, total.out / packets)
            best.back = min(best.back, total.back / packets)
        }
        return best
    }

    private mutating func protect(_ payload: Span<UInt8>, into wire: inout Batch) {
        index += 1
        var target = wire.next
        target[0] = 0x80
        target[2] = UInt8(truncatingIfNeeded: index >> 8)
        target[3] = UInt8(truncatingIfNeeded: index)
        let length = try? sender.protectRTP(
            &target,
            headerLength: 12,
            prefixLength: 0,
            rest: payload,
            index: index
        )
        guard let length else { preconditionFailure("the keys last for 2^48 packets") }
        wire.commit(length: length, to: Self.path)
    }

    @_lifetime(output: copy output)
    private mutating func unprotect(_ packet: Span<UInt8>, into output: inout MutableSpan<UInt8>) {
        let length = try? receiver.unprotectRTP(packet, into: &output)
        precondition(length != nil, "what was protected can be unprotected")
    }

    private static func nanoseconds(
        _ start: ContinuousClock.Instant,
        _ end: ContinuousClock.Instant
    ) -> Int64 {
        start.duration(to: end).components.attoseconds / 1_000_000_000
    }

    private static let path = Path(remote: Address(ipv4: 0x0a00_0001, port: 4_000), local: 0)
    /// Most packets in a batch.
    private static let largestBatch = 128
    private static let repeats = 100
}
