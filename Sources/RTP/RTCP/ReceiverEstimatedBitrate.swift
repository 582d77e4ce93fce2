/// Receiver Estimated Maximum Bitrate, REMB (draft-alvestrand-rmcat-remb-03 §2.2).
public struct ReceiverEstimatedBitrate: ~Escapable {
    private let bytes: Span<UInt8>
    public let sender: SSRC
    /// Estimated bitrate in bits a second, saturated.
    public let bitrate: UInt64
    /// Number of sources that the estimate covers.
    public let count: Int

    @_lifetime(copy block)
    public init(_ block: RTCPBlock) throws(RTCPError) {
        try block.require(
            type: RTCPType.payloadFeedback,
            format: RTCPFormat.applicationLayer,
            length: 16
        )
        bytes = block.bytes
        // Other application-layer feedback shares this format.
        guard bytes.u32(at: 12) == Self.identifier else { throw .type }
        guard bytes.count >= 20 else { throw .truncated }
        count = Int(bytes[16])
        guard bytes.count >= 20 + 4 * count else { throw .truncated }
        sender = SSRC(rawValue: bytes.u32(at: 4))
        let exponent = UInt64(bytes[17] >> 2)
        let mantissa = UInt64(bytes.u24(at: 17) & 0x3_ffff)
        let shifted = mantissa << exponent
        bitrate = shifted >> exponent == mantissa ? shifted : .max
    }

    public subscript(index: Int) -> SSRC {
        precondition(index >= 0 && index < count, "no such source")
        return SSRC(rawValue: bytes.u32(at: 20 + 4 * index))
    }

    /// Returns the encoded size with `count` sources, in bytes.
    public static func encodedSize(sources count: Int) -> Int { 20 + 4 * count }

    /// Appends an estimate of `bitrate` bits a second, rounded down to 18 significant bits.
    ///
    /// It lists at most 255 sources; `output` must have `encodedSize(sources:)` bytes free.
    public static func encode(
        sender: SSRC,
        bitrate: UInt64,
        sources: Span<SSRC>,
        into output: inout OutputSpan<UInt8>
    ) {
        precondition(sources.count <= 255, "too many sources for one packet")
        let exponent = max(0, 64 - 18 - bitrate.leadingZeroBitCount)
        let mantissa = UInt32(truncatingIfNeeded: bitrate >> UInt64(exponent))
        output.append(0x80 | RTCPFormat.applicationLayer)
        output.append(RTCPType.payloadFeedback)
        output.append(bigEndian: UInt16(encodedSize(sources: sources.count) / 4 - 1))
        output.append(bigEndian: sender.rawValue)
        output.append(bigEndian: UInt32(0))
        output.append(bigEndian: identifier)
        output.append(
            bigEndian: UInt32(sources.count) << 24 | UInt32(exponent) << 18 | mantissa
        )
        for index in sources.indices { output.append(bigEndian: sources[index].rawValue) }
    }

    /// Unique identifier: "REMB" in ASCII.
    private static var identifier: UInt32 { 0x5245_4d42 }
}
