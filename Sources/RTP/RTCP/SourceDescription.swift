/// Source description: the CNAME of one source, the only item that sfud uses (RFC 3550 §6.5).
public struct SourceDescription: ~Escapable {
    public let ssrc: SSRC
    /// Bytes of the CNAME: at most 255, not verified as UTF-8.
    public let cname: Span<UInt8>

    /// Reads the CNAME of the first chunk.
    @_lifetime(copy block)
    public init(_ block: RTCPBlock) throws(RTCPError) {
        try block.require(type: RTCPType.sourceDescription, length: 8)
        let bytes = block.bytes
        var position = 8
        while position + 2 <= bytes.count, bytes[position] != 0 {
            let start = position + 2
            let end = start + Int(bytes[position + 1])
            guard end <= bytes.count else { throw .truncated }
            if bytes[position] == Self.canonicalName {
                ssrc = SSRC(rawValue: bytes.u32(at: 4))
                cname = bytes.extracting(start..<end)
                return
            }
            position = end
        }
        throw .malformed
    }

    /// Returns the encoded size with one CNAME of `length` bytes, in bytes.
    public static func encodedSize(cnameLength length: Int) -> Int {
        // The items end with at least one zero and are padded with zeros to a multiple of four.
        8 + (2 + length + 1 + 3) / 4 * 4
    }

    /// Appends a packet of one chunk with a CNAME of at most 255 bytes.
    ///
    /// `output` must have `encodedSize(cnameLength:)` bytes free.
    public static func encode(
        ssrc: SSRC,
        cname: Span<UInt8>,
        into output: inout OutputSpan<UInt8>
    ) {
        precondition(cname.count <= 255, "a CNAME has at most 255 bytes")
        let size = encodedSize(cnameLength: cname.count)
        output.append(0x81)
        output.append(RTCPType.sourceDescription)
        output.append(bigEndian: UInt16(size / 4 - 1))
        output.append(bigEndian: ssrc.rawValue)
        output.append(canonicalName)
        output.append(UInt8(cname.count))
        output.append(copying: cname)
        output.append(repeating: 0, count: size - 10 - cname.count)
    }

    private static var canonicalName: UInt8 { 1 }
}
