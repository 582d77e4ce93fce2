/// Reason for which bytes are not the expected RTCP packet.
public enum RTCPError: Error, Equatable, Sendable {
    /// The packet has another type or format.
    case type
    /// The packet is shorter than its counts require.
    case truncated
    /// The packet is long enough but breaks its own rules.
    case malformed
}

/// RTCP packet types (RFC 3550 §12.1, RFC 4585 §6.1).
public enum RTCPType {
    public static let senderReport: UInt8 = 200
    public static let receiverReport: UInt8 = 201
    public static let sourceDescription: UInt8 = 202
    public static let goodbye: UInt8 = 203
    public static let application: UInt8 = 204
    public static let transportFeedback: UInt8 = 205
    public static let payloadFeedback: UInt8 = 206
    public static let extendedReport: UInt8 = 207
}

/// Feedback message formats of both feedback packet types, in the count field.
public enum RTCPFormat {
    /// Transport feedback (205): RFC 4585 §6.2.1.
    public static let genericNACK: UInt8 = 1
    /// Transport feedback (205): draft-holmer-rmcat-transport-wide-cc-extensions-01 §3.1.
    public static let transportWide: UInt8 = 15
    /// Payload feedback (206): RFC 4585 §6.3.1.
    public static let pictureLoss: UInt8 = 1
    /// Payload feedback (206): RFC 5104 §4.3.1.
    public static let fullIntraRequest: UInt8 = 4
    /// Payload feedback (206): RFC 4585 §6.4, which includes REMB.
    public static let applicationLayer: UInt8 = 15
}

/// One packet of a compound, with its length checked and its padding removed.
public struct RTCPBlock: ~Escapable {
    /// Bytes of the packet, including its four-byte header.
    public let bytes: Span<UInt8>

    /// Creates a view; `bytes` must hold the header at least.
    @inlinable
    @_lifetime(copy bytes)
    init(bytes: Span<UInt8>) { self.bytes = bytes }

    @inlinable public var type: UInt8 { bytes[1] }
    /// Five-bit field: report count, source count or feedback format.
    @inlinable public var count: UInt8 { bytes[0] & 0x1f }

    /// Throws unless this is a packet of `type` (and `format`) with at least `length` bytes.
    @inlinable
    func require(type: UInt8, format: UInt8? = nil, length: Int) throws(RTCPError) {
        guard self.type == type else { throw .type }
        if let format, count != format { throw .type }
        guard bytes.count >= length else { throw .truncated }
    }
}

/// Iterator over the packets of one compound (RFC 3550 §6.1), including reduced size (RFC 5506).
///
/// It ends at the first packet that does not fit; earlier ones stay valid.
public struct RTCPBlocks: ~Escapable {
    @usableFromInline let compound: Span<UInt8>
    @usableFromInline var position = 0
    /// Whether iteration ended before the end of the bytes.
    public private(set) var isMalformed = false

    @_lifetime(copy compound)
    public init(_ compound: Span<UInt8>) { self.compound = compound }

    @_lifetime(copy self)
    public mutating func next() -> RTCPBlock? {
        guard !isMalformed, position < compound.count else { return nil }
        guard let length = blockLength() else {
            isMalformed = true
            return nil
        }
        let end = position + length
        let isPadded = compound[position] & 0x20 != 0
        let padding = isPadded ? Int(compound[end - 1]) : 0
        // The padding count includes itself. It need not be a multiple of four: libwebrtc pads
        // transport feedback by one to three bytes.
        guard !isPadded || padding > 0, padding <= length - 4 else {
            isMalformed = true
            return nil
        }
        defer { position = end }
        return RTCPBlock(bytes: compound.extracting(position..<end - padding))
    }

    /// Returns the length in bytes of the packet at `position`, or `nil` if it does not fit.
    private func blockLength() -> Int? {
        guard compound.count - position >= 4, compound[position] >> 6 == 2 else { return nil }
        let length = 4 + 4 * Int(compound.u16(at: position + 2))
        return length <= compound.count - position ? length : nil
    }
}
