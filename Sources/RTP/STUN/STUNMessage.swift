/// Borrowed view of one STUN message (RFC 8489 §5).
///
/// The initializer checks every length; after it, no accessor can fail. The caller verifies
/// integrity: it computes an HMAC over `integrityInput(into:)` and compares it with `integrityTag`.
public struct STUNMessage: ~Escapable {
    public let bytes: Span<UInt8>
    /// Offsets of attribute values, the first of each kind; 0 if there is none.
    private var offsets = Offsets()
    private var usernameLength = 0
    /// Unknown comprehension-required attributes, in order; at most the first eight.
    public private(set) var unknownAttributes = UnknownAttributes()

    private struct Offsets {
        var username = 0
        var integrity = 0
        var fingerprint = 0
        var priority = 0
        var useCandidate = 0
        var controlled = 0
        var controlling = 0
        var mappedAddress = 0
        var errorCode = 0
    }

    @_lifetime(copy bytes)
    public init(_ bytes: Span<UInt8>) throws(STUNError) {
        guard bytes.count >= Self.headerSize, bytes[0] & 0xc0 == 0,
            Int(bytes.u16(at: 2)) == bytes.count - Self.headerSize, bytes.count % 4 == 0,
            bytes.u32(at: 4) == Self.cookie
        else { throw .notSTUN }
        self.bytes = bytes

        var position = Self.headerSize
        var count = 0
        while position < bytes.count {
            guard offsets.fingerprint == 0 else { throw .afterFingerprint }
            guard count < Self.maximumAttributes else { throw .tooManyAttributes }
            // Lengths are multiples of four, so four bytes are left.
            let length = Int(bytes.u16(at: position + 2))
            let start = position + 4
            guard length <= bytes.count - start else { throw .attribute }
            try note(bytes.u16(at: position), at: start, length: length)
            position = start + (length + 3) & ~3
            count += 1
        }
    }

    /// Records one attribute; the first of a kind counts (RFC 8489 §14).
    private mutating func note(
        _ type: UInt16,
        at offset: Int,
        length: Int
    ) throws(STUNError) {
        if type == STUNAttribute.fingerprint {
            guard length == 4 else { throw .attribute }
            offsets.fingerprint = offset
            return
        }
        // Nothing after MESSAGE-INTEGRITY is protected by it (RFC 8489 §14.5).
        guard offsets.integrity == 0 else { return }
        switch type {
        case STUNAttribute.username:
            guard length <= 513 else { throw .attribute }
            if offsets.username == 0 { usernameLength = length }
            Self.keep(offset, in: &offsets.username)
        case STUNAttribute.messageIntegrity:
            guard length == 20 else { throw .attribute }
            offsets.integrity = offset
        case STUNAttribute.priority:
            guard length == 4 else { throw .attribute }
            Self.keep(offset, in: &offsets.priority)
        case STUNAttribute.useCandidate:
            Self.keep(offset, in: &offsets.useCandidate)
        case STUNAttribute.iceControlled:
            guard length == 8 else { throw .attribute }
            Self.keep(offset, in: &offsets.controlled)
        case STUNAttribute.iceControlling:
            guard length == 8 else { throw .attribute }
            Self.keep(offset, in: &offsets.controlling)
        case STUNAttribute.xorMappedAddress:
            guard length == 8 && bytes[offset + 1] == 1 || length == 20 && bytes[offset + 1] == 2
            else { throw .attribute }
            Self.keep(offset, in: &offsets.mappedAddress)
        case STUNAttribute.errorCode:
            guard length >= 4 else { throw .attribute }
            Self.keep(offset, in: &offsets.errorCode)
        case STUNAttribute.mappedAddress, STUNAttribute.unknownAttributes, STUNAttribute.realm,
            STUNAttribute.nonce, STUNAttribute.messageIntegritySHA256:
            break
        case 0..<0x8000:
            unknownAttributes.append(type)
        default:
            break
        }
    }

    private static func keep(_ offset: Int, in slot: inout Int) {
        if slot == 0 { slot = offset }
    }

    static let headerSize = 20
    static let cookie: UInt32 = 0x2112_a442
    static let maximumAttributes = 64
}

extension STUNMessage {
    /// Message class; its bits are spread over the type (RFC 8489 §5, figure 3).
    public var messageClass: STUNClass {
        let type = bytes.u16(at: 0)
        return switch type & 0x0110 {
        case 0x0000: .request
        case 0x0010: .indication
        case 0x0100: .success
        default: .failure
        }
    }

    /// Method; Binding is 1.
    public var method: UInt16 {
        let type = bytes.u16(at: 0)
        return type & 0x000f | (type & 0x00e0) >> 1 | (type & 0x3e00) >> 2
    }

    public var transactionID: TransactionID {
        TransactionID(high: bytes.u32(at: 8), low: bytes.u64(at: 12))
    }

    /// Bytes of USERNAME; empty if there is none.
    public var username: Span<UInt8> {
        @_lifetime(copy self)
        get { bytes.extracting(offsets.username..<offsets.username + usernameLength) }
    }

    public var priority: UInt32? {
        offsets.priority == 0 ? nil : bytes.u32(at: offsets.priority)
    }

    public var useCandidate: Bool { offsets.useCandidate != 0 }

    /// Tie breaker of a peer that claims the controlled role.
    public var iceControlled: UInt64? {
        offsets.controlled == 0 ? nil : bytes.u64(at: offsets.controlled)
    }

    /// Tie breaker of a peer that claims the controlling role.
    public var iceControlling: UInt64? {
        offsets.controlling == 0 ? nil : bytes.u64(at: offsets.controlling)
    }

    /// Our address as the server saw it, from XOR-MAPPED-ADDRESS.
    public var mappedAddress: STUNAddress? {
        let offset = offsets.mappedAddress
        guard offset != 0 else { return nil }
        let port = bytes.u16(at: offset + 2) ^ UInt16(Self.cookie >> 16)
        guard bytes[offset + 1] == 2 else {
            let octets = UInt64(bytes.u32(at: offset + 4) ^ Self.cookie)
            return STUNAddress(high: 0, low: 0xffff_0000_0000 | octets, port: port)
        }
        // IPv6 is XORed with the cookie and transaction id, which are adjacent (RFC 8489 §14.2).
        return STUNAddress(
            high: bytes.u64(at: offset + 4) ^ bytes.u64(at: 4),
            low: bytes.u64(at: offset + 12) ^ bytes.u64(at: 12),
            port: port
        )
    }

    /// Code of an error response, 300 to 699; `nil` for other codes.
    public var errorCode: Int? {
        guard offsets.errorCode != 0 else { return nil }
        let code = Int(bytes[offsets.errorCode + 2] & 7) * 100 + Int(bytes[offsets.errorCode + 3])
        return (300...699).contains(code) ? code : nil
    }

    /// Offset of the MESSAGE-INTEGRITY attribute, including its header.
    public var integrityOffset: Int? {
        offsets.integrity == 0 ? nil : offsets.integrity - 4
    }

    /// HMAC-SHA1 in MESSAGE-INTEGRITY, 20 bytes; empty if there is none.
    public var integrityTag: Span<UInt8> {
        @_lifetime(copy self)
        get {
            let length = offsets.integrity == 0 ? 0 : 20
            return bytes.extracting(offsets.integrity..<offsets.integrity + length)
        }
    }

    /// Appends the bytes that MESSAGE-INTEGRITY authenticates (RFC 8489 §14.5), or nothing without
    /// one.
    ///
    /// These are the message up to the attribute, with a length as if the attribute were the last.
    /// `output` must have `bytes.count` bytes free.
    public func integrityInput(into output: inout OutputSpan<UInt8>) {
        guard let end = integrityOffset else { return }
        output.append(copying: bytes.extracting(0..<2))
        output.append(bigEndian: UInt16(end + 24 - Self.headerSize))
        output.append(copying: bytes.extracting(4..<end))
    }

    public var hasFingerprint: Bool { offsets.fingerprint != 0 }

    /// Whether FINGERPRINT is present and correct (RFC 8489 §14.7).
    public var isFingerprintValid: Bool {
        guard hasFingerprint else { return false }
        let sum = Checksum.crc32(bytes.extracting(0..<offsets.fingerprint - 4))
        return bytes.u32(at: offsets.fingerprint) == sum ^ Self.fingerprintMask
    }

    /// XOR mask of FINGERPRINT: "STUN" in ASCII.
    static let fingerprintMask: UInt32 = 0x5354_554e
}

/// List of at most eight attribute types.
public struct UnknownAttributes: Sendable {
    private var types: InlineArray<8, UInt16> = .init(repeating: 0)
    public private(set) var count = 0

    public init() {}

    public var isEmpty: Bool { count == 0 }

    public subscript(index: Int) -> UInt16 {
        precondition(index >= 0 && index < count, "no such attribute")
        return types[index]
    }

    /// Adds a type; a ninth is dropped.
    public mutating func append(_ type: UInt16) {
        guard count < types.count else { return }
        types[count] = type
        count += 1
    }
}

/// CRC-32 of ISO 3309, as in STUN's FINGERPRINT (RFC 8489 §14.7).
enum Checksum {
    static func crc32(_ bytes: Span<UInt8>) -> UInt32 {
        let table = Self.table.span
        var crc: UInt32 = 0xffff_ffff
        for index in bytes.indices {
            crc = table[Int((crc ^ UInt32(bytes[index])) & 0xff)] ^ crc >> 8
        }
        return ~crc
    }

    private static let table: [UInt32] = (0..<256).map { index in
        (0..<8).reduce(UInt32(index)) { crc, _ in
            crc & 1 == 0 ? crc >> 1 : crc >> 1 ^ 0xedb8_8320
        }
    }
}
