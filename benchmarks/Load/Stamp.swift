import RTP

/// What every payload says of itself, so that a viewer can tell whether it came as it was sent.
struct Stamp: Equatable {
    /// Nanoseconds of the monotonic clock; both ends are in one process.
    var sent: Int64
    /// Packets of this medium before this one.
    var index: UInt32
    /// Frames before this one.
    var frame: UInt32
    var timestamp: UInt32
    /// Bytes of the whole payload, the codec's descriptor included.
    var length: UInt16
    var endsFrame: Bool

    /// Bytes of the stamp.
    static let size = 24

    init(
        sent: Int64,
        index: UInt32,
        frame: UInt32,
        timestamp: UInt32,
        length: Int,
        endsFrame: Bool
    ) {
        self.sent = sent
        self.index = index
        self.frame = frame
        self.timestamp = timestamp
        self.length = UInt16(clamping: length)
        self.endsFrame = endsFrame
    }

    /// Reads the stamp at `offset`; `nil` where there is no room for one.
    init?(_ payload: Span<UInt8>, at offset: Int) {
        guard payload.count >= offset + Self.size else { return nil }
        sent = Int64(bitPattern: payload.u64(at: offset))
        index = payload.u32(at: offset + 8)
        frame = payload.u32(at: offset + 12)
        timestamp = payload.u32(at: offset + 16)
        length = payload.u16(at: offset + 20)
        endsFrame = payload.u16(at: offset + 22) != 0
    }

    func append(to packet: inout [UInt8]) {
        packet.append(UInt64(bitPattern: sent), bytes: 8)
        packet.append(UInt64(index), bytes: 4)
        packet.append(UInt64(frame), bytes: 4)
        packet.append(UInt64(timestamp), bytes: 4)
        packet.append(UInt64(length), bytes: 2)
        packet.append(endsFrame ? 1 : 0, bytes: 2)
    }
}

/// The bytes after a stamp: other ones for each packet, and known to who knows its number.
struct Filler {
    private let table: [UInt8]
    private static let mask = 4_095

    init() {
        var state: UInt64 = 0x2545_f491_4f6c_dd1d
        table = (0...Self.mask).map { _ in
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            return UInt8(truncatingIfNeeded: state >> 32)
        }
    }

    func append(_ count: Int, index: UInt32, to packet: inout [UInt8]) {
        let start = Self.start(index)
        for position in 0..<count { packet.append(table[(start + position) & Self.mask]) }
    }

    /// Whether all of `payload` from `offset` on is what `append` wrote.
    func matches(_ payload: Span<UInt8>, from offset: Int, index: UInt32) -> Bool {
        let start = Self.start(index)
        var difference: UInt8 = 0
        for position in offset..<max(offset, payload.count) {
            difference |= payload[position] ^ table[(start + position - offset) & Self.mask]
        }
        return difference == 0
    }

    private static func start(_ index: UInt32) -> Int { Int(index) &* 61 & mask }
}

extension [UInt8] {
    /// Appends the low `bytes` bytes of `value`, the highest first.
    mutating func append(_ value: UInt64, bytes: Int) {
        for position in stride(from: bytes - 1, through: 0, by: -1) {
            append(UInt8(truncatingIfNeeded: value >> (8 * UInt64(position))))
        }
    }
}
