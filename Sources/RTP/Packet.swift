/// Reason for which bytes are not an RTP packet.
public enum PacketError: Error, Equatable, Sendable {
    case truncated
    case version
    case padding
}

/// Borrowed view of one RTP packet (RFC 3550 §5.1).
///
/// The initializer checks every length; after it, no accessor can fail.
public struct Packet: ~Escapable {
    public let bytes: Span<UInt8>
    /// Offset of the extension block past its four-byte header, or 0 if there is none.
    @usableFromInline let extensionStart: Int
    /// Length of fixed header, CSRCs and extension block together, in bytes.
    public let headerLength: Int
    /// Length of the padding at the end, in bytes, including its count byte.
    public let paddingLength: Int

    /// Parses a whole unencrypted packet.
    @inlinable
    @_lifetime(copy bytes)
    public init(_ bytes: Span<UInt8>) throws(PacketError) {
        try self.init(bytes, encrypted: false)
    }

    /// Parses the part of a packet that SRTP leaves unencrypted (RFC 3711 §3.1).
    ///
    /// The padding count is encrypted, so it is ignored.
    @inlinable
    @_lifetime(copy bytes)
    public init(encrypted bytes: Span<UInt8>) throws(PacketError) {
        try self.init(bytes, encrypted: true)
    }

    @inlinable
    @_lifetime(copy bytes)
    init(_ bytes: Span<UInt8>, encrypted: Bool) throws(PacketError) {
        guard bytes.count >= 12 else { throw .truncated }
        guard bytes[0] >> 6 == 2 else { throw .version }

        var length = 12 + 4 * Int(bytes[0] & 0x0f)
        var extensionStart = 0
        if bytes[0] & 0x10 != 0 {
            guard bytes.count >= length + 4 else { throw .truncated }
            extensionStart = length + 4
            length += 4 + 4 * Int(bytes.u16(at: length + 2))
        }
        guard bytes.count >= length else { throw .truncated }

        var padding = 0
        if bytes[0] & 0x20 != 0, !encrypted {
            padding = Int(bytes[bytes.count - 1])
            guard padding > 0, length + padding <= bytes.count else { throw .padding }
        }
        self.bytes = bytes
        self.extensionStart = extensionStart
        self.headerLength = length
        self.paddingLength = padding
    }

    @inlinable public var marker: Bool { bytes[1] & 0x80 != 0 }
    @inlinable public var payloadType: PayloadType { .init(rawValue: bytes[1]) }
    @inlinable public var sequenceNumber: SequenceNumber { .init(rawValue: bytes.u16(at: 2)) }
    @inlinable public var timestamp: UInt32 { bytes.u32(at: 4) }
    @inlinable public var ssrc: SSRC { .init(rawValue: bytes.u32(at: 8)) }
    @inlinable public var csrcCount: Int { Int(bytes[0] & 0x0f) }

    /// Payload without padding; in an encrypted packet, all bytes after the header.
    @inlinable
    public var payload: Span<UInt8> {
        @_lifetime(copy self)
        get { bytes.extracting(headerLength..<bytes.count - paddingLength) }
    }

    /// Header extension elements; empty if there are none or their profile is unknown.
    @inlinable
    public var extensions: HeaderExtensions {
        @_lifetime(copy self)
        get {
            guard extensionStart > 0 else {
                return HeaderExtensions(block: bytes.extracting(0..<0), profile: 0, offset: 0)
            }
            return HeaderExtensions(
                block: bytes.extracting(extensionStart..<headerLength),
                profile: bytes.u16(at: extensionStart - 4),
                offset: extensionStart
            )
        }
    }
}
