/// RTCP BYE: sources that leave (RFC 3550 §6.6); the reason text is ignored.
public struct Goodbye: ~Escapable {
    private let bytes: Span<UInt8>
    public let count: Int

    @_lifetime(copy block)
    public init(_ block: RTCPBlock) throws(RTCPError) {
        count = Int(block.count)
        bytes = block.bytes
        try block.require(type: RTCPType.goodbye, length: 4 + 4 * count)
    }

    public subscript(index: Int) -> SSRC {
        precondition(index >= 0 && index < count, "no such source")
        return SSRC(rawValue: bytes.u32(at: 4 + 4 * index))
    }

    /// Returns the encoded size with `count` sources, in bytes.
    public static func encodedSize(sources count: Int) -> Int { 4 + 4 * count }

    /// Appends a packet without a reason for at most 31 sources.
    ///
    /// `output` must have `encodedSize(sources:)` bytes free.
    public static func encode(_ sources: Span<SSRC>, into output: inout OutputSpan<UInt8>) {
        precondition(sources.count <= 31, "too many sources for one packet")
        output.append(0x80 | UInt8(sources.count))
        output.append(RTCPType.goodbye)
        output.append(bigEndian: UInt16(sources.count))
        for index in sources.indices { output.append(bigEndian: sources[index].rawValue) }
    }
}
