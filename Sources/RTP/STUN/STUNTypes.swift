/// Reason for which bytes are not a valid STUN message.
public enum STUNError: Error, Equatable, Sendable {
    /// First bits, magic cookie or length are wrong (RFC 8489 §5).
    case notSTUN
    /// An attribute exceeds the message, or has a length that its type does not allow.
    case attribute
    /// There are more attributes than any honest peer sends.
    case tooManyAttributes
    /// An attribute follows FINGERPRINT (RFC 8489 §14.7).
    case afterFingerprint
}

/// STUN message class (RFC 8489 §5).
public enum STUNClass: UInt8, Sendable {
    case request, indication, success, failure
}

/// Transaction id of 96 random bits, which links a response to its request (RFC 8489 §5).
public struct TransactionID: Hashable, Sendable {
    public var high: UInt32
    public var low: UInt64

    public init(high: UInt32, low: UInt64) {
        self.high = high
        self.low = low
    }
}

/// Transport address in STUN; IPv4 is stored as IPv4-mapped IPv6 (RFC 4291 §2.5.5.2).
public struct STUNAddress: Hashable, Sendable {
    public var high: UInt64
    public var low: UInt64
    public var port: UInt16

    public init(high: UInt64, low: UInt64, port: UInt16) {
        self.high = high
        self.low = low
        self.port = port
    }

    /// IPv4 address in host byte order, if this is one.
    var ipv4: UInt32? {
        guard high == 0, low >> 32 == 0xffff else { return nil }
        return UInt32(truncatingIfNeeded: low)
    }
}

/// STUN attribute types (RFC 8489 §18.3, RFC 8445 §16.1).
enum STUNAttribute {
    static let mappedAddress: UInt16 = 0x0001
    static let username: UInt16 = 0x0006
    static let messageIntegrity: UInt16 = 0x0008
    static let errorCode: UInt16 = 0x0009
    static let unknownAttributes: UInt16 = 0x000a
    static let realm: UInt16 = 0x0014
    static let nonce: UInt16 = 0x0015
    static let messageIntegritySHA256: UInt16 = 0x001c
    static let xorMappedAddress: UInt16 = 0x0020
    static let priority: UInt16 = 0x0024
    static let useCandidate: UInt16 = 0x0025
    static let fingerprint: UInt16 = 0x8028
    static let iceControlled: UInt16 = 0x8029
    static let iceControlling: UInt16 = 0x802a
}
