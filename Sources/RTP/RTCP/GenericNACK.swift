/// Generic NACK: lost packets that a receiver requests (RFC 4585 §6.2.1).
public struct GenericNACK: ~Escapable {
    private let bytes: Span<UInt8>
    public let sender: SSRC
    public let media: SSRC
    /// Number of pairs of packet id and bitmask.
    public let count: Int

    @_lifetime(copy block)
    public init(_ block: RTCPBlock) throws(RTCPError) {
        try block.require(
            type: RTCPType.transportFeedback,
            format: RTCPFormat.genericNACK,
            length: 12
        )
        bytes = block.bytes
        sender = SSRC(rawValue: bytes.u32(at: 4))
        media = SSRC(rawValue: bytes.u32(at: 8))
        count = (bytes.count - 12) / 4
    }

    /// Returns a lost packet and a bitmask: bit `i` is set if packet `packetID + i + 1` is lost
    /// too.
    public subscript(index: Int) -> (packetID: SequenceNumber, bitmask: UInt16) {
        precondition(index >= 0 && index < count, "no such pair")
        let offset = 12 + 4 * index
        return (SequenceNumber(rawValue: bytes.u16(at: offset)), bytes.u16(at: offset + 2))
    }

    /// Returns the maximum encoded size for `lost` packets, in bytes.
    public static func encodedSize(lost: Int) -> Int { 12 + 4 * lost }

    /// Appends a packet that lists `lost`, ascending and at most 65,533 packets.
    ///
    /// `output` must have `encodedSize(lost:)` bytes free, or fewer if the caller knows how they
    /// pack.
    public static func encode(
        sender: SSRC,
        media: SSRC,
        lost: Span<SequenceNumber>,
        into output: inout OutputSpan<UInt8>
    ) {
        var pairs = 0
        var index = 0
        while index < lost.count {
            index = pair(lost, from: index).end
            pairs += 1
        }
        output.append(0x80 | RTCPFormat.genericNACK)
        output.append(RTCPType.transportFeedback)
        output.append(bigEndian: UInt16(2 + pairs))
        output.append(bigEndian: sender.rawValue)
        output.append(bigEndian: media.rawValue)
        index = 0
        while index < lost.count {
            let (bitmask, end) = pair(lost, from: index)
            output.append(bigEndian: lost[index].rawValue)
            output.append(bigEndian: bitmask)
            index = end
        }
    }

    /// Returns the bitmask of the pair with packet id `lost[start]`, and the start of the next
    /// pair.
    private static func pair(
        _ lost: Span<SequenceNumber>,
        from start: Int
    ) -> (bitmask: UInt16, end: Int) {
        var bitmask: UInt16 = 0
        var end = start + 1
        while end < lost.count {
            let distance = lost[end].distance(from: lost[start])
            guard (0...16).contains(distance) else { break }
            // A duplicate number costs no second pair.
            if distance > 0 { bitmask |= 1 << UInt16(distance - 1) }
            end += 1
        }
        return (bitmask, end)
    }
}
