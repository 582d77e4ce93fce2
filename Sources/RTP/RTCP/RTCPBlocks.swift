/// Why bytes are not the RTCP packet that was asked for.
public enum RTCPError: Error, Equatable, Sendable {
    /// A packet of another type or format.
    case type
    /// Shorter than its counts promise.
    case truncated
    /// Long enough, but against its own rules.
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

/// Formats of the two feedback packet types, in the count field.
public enum RTCPFormat {
    /// Transport feedback (205): RFC 4585 §6.2.1.
    public static let genericNACK: UInt8 = 1
    /// Transport feedback (205): draft-holmer-rmcat-transport-wide-cc-extensions-01 §3.1.
    public static let transportWide: UInt8 = 15
    /// Payload feedback (206): RFC 4585 §6.3.1.
    public static let pictureLoss: UInt8 = 1
    /// Payload feedback (206): RFC 5104 §4.3.1.
    public static let fullIntraRequest: UInt8 = 4
    /// Payload feedback (206): RFC 4585 §6.4, of which REMB is one.
    public static let applicationLayer: UInt8 = 15
}

/// One packet of a compound, its length checked and its padding left out.
public struct RTCPBlock: ~Escapable {
    /// The packet with its four-byte header.
    public let bytes: Span<UInt8>

    /// `bytes` must hold the header at least.
    @inlinable
    @_lifetime(copy bytes)
    init(bytes: Span<UInt8>) { self.bytes = bytes }

    @inlinable public var type: UInt8 { bytes[1] }
    /// The five bits that are a report count, a source count or a feedback format.
    @inlinable public var count: UInt8 { bytes[0] & 0x1f }

    /// Throws unless this is a packet of `type` (and `format`) with at least `length` bytes.
    @inlinable
    func require(type: UInt8, format: UInt8? = nil, length: Int) throws(RTCPError) {
        guard self.type == type else { throw .type }
        if let format, count != format { throw .type }
        guard bytes.count >= length else { throw .truncated }
    }
}

/// A walk over the packets of one compound (RFC 3550 §6.1), reduced size too (RFC 5506).
///
/// The walk ends at the first packet that does not fit; those before it stand.
public struct RTCPBlocks: ~Escapable {
    @usableFromInline let compound: Span<UInt8>
    @usableFromInline var position = 0
    /// Whether the walk ended before the end of the bytes.
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
        // The count byte counts itself. It need not be a multiple of four: libwebrtc pads
        // transport feedback by one to three bytes.
        guard !isPadded || padding > 0, padding <= length - 4 else {
            isMalformed = true
            return nil
        }
        defer { position = end }
        return RTCPBlock(bytes: compound.extracting(position..<end - padding))
    }

    /// The length of the packet at `position` in bytes, if it fits.
    private func blockLength() -> Int? {
        guard compound.count - position >= 4, compound[position] >> 6 == 2 else { return nil }
        let length = 4 + 4 * Int(compound.u16(at: position + 2))
        return length <= compound.count - position ? length : nil
    }
}
