import JSON

/// An id on the IPC: 1 to 128 of `A-Z a-z 0-9 . _ : -`.
///
/// `Kind` keeps ids of different things apart at compile time.
public struct Identifier<Kind>: RawRepresentable, Hashable, Sendable {
    public let rawValue: String

    /// Returns `nil` if the string is not a valid id.
    public init?(rawValue: String) {
        guard Self.isValid(rawValue) else { return nil }
        self.rawValue = rawValue
    }

    /// Wraps a string of the caller's own making; traps if it is not a valid id.
    public init(_ made: String) {
        precondition(Self.isValid(made), "an id is 1 to 128 of A-Z a-z 0-9 . _ : -")
        rawValue = made
    }

    /// Longest id, in bytes.
    public static var byteLimit: Int { 128 }

    private static func isValid(_ string: String) -> Bool {
        (1...byteLimit).contains(string.utf8.count)
            && string.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"),
                    UInt8(ascii: ":"), UInt8(ascii: "-"):
                    true
                default: false
                }
            }
    }
}

extension Identifier: Codable, CodingKeyRepresentable {
    public init(from decoder: any Decoder) throws {
        let string = try decoder.singleValueContainer().decode(String.self)
        guard let id = Self(rawValue: string) else {
            throw decoder.refusal("is no id: 1 to 128 of A-Z a-z 0-9 . _ : -")
        }
        self = id
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(rawValue)
    }

    public var codingKey: any CodingKey { NamedKey(rawValue) }

    public init?(codingKey: some CodingKey) { self.init(rawValue: codingKey.stringValue) }
}

extension Identifier: CustomStringConvertible, Comparable, ExpressibleByStringLiteral {
    public var description: String { rawValue }
    public init(stringLiteral value: String) { self.init(value) }
    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// Phantom types that keep ids apart.
public enum IdentifierKind {
    public enum Room {}
    public enum Participant {}
    public enum Stream {}
    public enum Subscription {}
    public enum Transport {}
    public enum Recording {}
    public enum Streaming {}
    public enum Tap {}
}

/// Id of a room, chosen by the caller.
public typealias RoomID = Identifier<IdentifierKind.Room>
/// Id of a participant, chosen by the caller; unique in its room.
public typealias ParticipantID = Identifier<IdentifierKind.Participant>
/// Id of a stream, assigned by sfud in `transport.offer`; unique in its room.
public typealias StreamID = Identifier<IdentifierKind.Stream>
/// Id of a subscription, assigned by sfud in `subscription.add`; unique in its room.
public typealias SubscriptionID = Identifier<IdentifierKind.Subscription>
/// Id of a transport, assigned by sfud in `transport.offer`; unique in its room.
public typealias TransportName = Identifier<IdentifierKind.Transport>
/// Id of a recording, assigned by sfud in `recording.start`; unique in the process.
public typealias RecordingID = Identifier<IdentifierKind.Recording>
/// Id of a live stream, assigned by sfud in `streaming.start`; unique in the process.
public typealias StreamingID = Identifier<IdentifierKind.Streaming>
/// Id of an RTP forward, assigned by sfud in `tap.start`; unique in the process.
public typealias TapName = Identifier<IdentifierKind.Tap>
