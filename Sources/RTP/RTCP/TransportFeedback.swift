/// Transport-wide feedback: arrival times of a transport's packets at their receiver.
///
/// The format is draft-holmer-rmcat-transport-wide-cc-extensions-01 §3.1. The initializer checks
/// that every status has its delta, so iteration cannot fail. `next` makes one pass over at most
/// 65,535 statuses.
public struct TransportFeedback: ~Escapable {
    private let bytes: Span<UInt8>
    public let sender: SSRC
    public let media: SSRC
    public let baseSequence: SequenceNumber
    public let statusCount: Int
    /// Base time, signed, in units of 64 ms from an origin that the receiver chose.
    public let referenceTime: Int32
    /// Counter of feedback messages, with wraparound.
    public let feedbackCount: UInt8

    private var index = 0
    private var chunk = StatusChunk.empty
    private var chunkOffset = TransportFeedback.headerSize
    private var deltaOffset: Int
    private var arrivalTicks: Int64

    @_lifetime(copy block)
    public init(_ block: RTCPBlock) throws(RTCPError) {
        try block.require(
            type: RTCPType.transportFeedback,
            format: RTCPFormat.transportWide,
            length: Self.headerSize
        )
        bytes = block.bytes
        sender = SSRC(rawValue: bytes.u32(at: 4))
        media = SSRC(rawValue: bytes.u32(at: 8))
        baseSequence = SequenceNumber(rawValue: bytes.u16(at: 12))
        statusCount = Int(bytes.u16(at: 14))
        referenceTime = Int32(bitPattern: bytes.u24(at: 16) << 8) >> 8
        feedbackCount = bytes[19]
        deltaOffset = try Self.deltaOffset(bytes, statusCount: statusCount)
        arrivalTicks = Int64(referenceTime) * Self.ticksPerReference
    }

    /// Returns the next packet's number and arrival time; returns `nil` at the end.
    ///
    /// The arrival time is in nanoseconds from the origin of `referenceTime`, or `nil` for a packet
    /// that has not arrived.
    public mutating func next() -> (sequenceNumber: SequenceNumber, arrival: Int64?)? {
        guard index < statusCount else { return nil }
        loadChunk()
        let number = baseSequence.advanced(by: index)
        index += 1
        return (number, takeArrival(chunk.removeFirst()))
    }

    /// Returns the next packet that has arrived, like `next` but without lost packets.
    ///
    /// A whole iteration takes time in proportion to the message's size in bytes, however many lost
    /// packets it claims.
    public mutating func nextArrived() -> (sequenceNumber: SequenceNumber, arrival: Int64)? {
        while index < statusCount {
            loadChunk()
            if let run = chunk.run, run.status == .lost {
                index += run.length
                chunk = .empty
                continue
            }
            let number = baseSequence.advanced(by: index)
            index += 1
            if let arrival = takeArrival(chunk.removeFirst()) { return (number, arrival) }
        }
        return nil
    }

    private mutating func loadChunk() {
        guard chunk.isEmpty else { return }
        chunk = StatusChunk(bytes.u16(at: chunkOffset))
        chunkOffset += 2
    }

    private mutating func takeArrival(_ status: PacketStatus) -> Int64? {
        switch status {
        case .small:
            arrivalTicks += Int64(bytes[deltaOffset])
            deltaOffset += 1
        case .large:
            arrivalTicks += Int64(Int16(bitPattern: bytes.u16(at: deltaOffset)))
            deltaOffset += 2
        case .lost, .reserved:
            return nil
        }
        return arrivalTicks * Self.nanosecondsPerTick
    }

    /// Returns the offset of the deltas, after checking that every chunk and delta is present.
    private static func deltaOffset(
        _ bytes: Span<UInt8>,
        statusCount: Int
    ) throws(RTCPError) -> Int {
        guard statusCount > 0 else { throw .malformed }
        var offset = headerSize
        var remaining = statusCount
        var deltaBytes = 0
        while remaining > 0 {
            guard offset + 2 <= bytes.count else { throw .truncated }
            var chunk = StatusChunk(bytes.u16(at: offset))
            offset += 2
            if let run = chunk.run {
                let length = min(run.length, remaining)
                guard run.status != .reserved else { throw .malformed }
                deltaBytes += length * run.status.deltaSize
                remaining -= length
                // Empty runs are refused, so that no message claims an endless iteration.
                guard length > 0 else { throw .malformed }
                continue
            }
            while remaining > 0, !chunk.isEmpty {
                let status = chunk.removeFirst()
                guard status != .reserved else { throw .malformed }
                deltaBytes += status.deltaSize
                remaining -= 1
            }
        }
        guard offset + deltaBytes <= bytes.count else { throw .truncated }
        return offset
    }

    static let headerSize = 20
    /// Unit of deltas: 250 µs.
    static let nanosecondsPerTick: Int64 = 250_000
    /// Unit of the reference time: 64 ms.
    static let ticksPerReference: Int64 = 256
}

/// Status of one packet; the raw value is the two-bit symbol.
enum PacketStatus: UInt8 {
    case lost, small, large, reserved

    /// Size of its receive delta, in bytes.
    var deltaSize: Int { self == .reserved ? 0 : Int(rawValue) }

    /// Returns the status that can encode a delta of `ticks`, if any.
    init?(delta ticks: Int64) {
        switch ticks {
        case 0...255: self = .small
        case -32768...32767: self = .large
        default: return nil
        }
    }
}

/// Remaining statuses of one packet status chunk (§3.1.3 and §3.1.4).
enum StatusChunk {
    case empty
    case run(PacketStatus, length: Int)
    /// Status vector: `count` symbols of `width` bits each, from bit 13 downwards.
    case vector(bits: UInt16, width: UInt16, count: Int)

    init(_ word: UInt16) {
        let symbol = UInt8(truncatingIfNeeded: word >> 13) & 3
        switch word >> 14 {
        case 2: self = .vector(bits: word & 0x3fff, width: 1, count: 14)
        case 3: self = .vector(bits: word & 0x3fff, width: 2, count: 7)
        default:
            let status = PacketStatus(rawValue: symbol) ?? .reserved
            self = .run(status, length: Int(word & 0x1fff))
        }
    }

    var isEmpty: Bool {
        switch self {
        case .empty: true
        case .run(_, let length): length == 0
        case .vector(_, _, let count): count == 0
        }
    }

    var run: (status: PacketStatus, length: Int)? {
        if case .run(let status, let length) = self { (status, length) } else { nil }
    }

    /// Removes and returns the first status; returns `lost` if there is none.
    mutating func removeFirst() -> PacketStatus {
        switch self {
        case .empty:
            return .lost
        case .run(let status, let length):
            self = .run(status, length: max(0, length - 1))
            return status
        case .vector(let bits, let width, let count):
            self = .vector(bits: bits << width & 0x3fff, width: width, count: max(0, count - 1))
            return PacketStatus(rawValue: UInt8(bits >> (14 - width))) ?? .reserved
        }
    }
}
