import JSON

/// A method of the contract: its name, its params and its result.
public protocol IPCMethod: Sendable {
    associatedtype Params: Codable & Hashable & Sendable
    associatedtype Result: Codable & Hashable & Sendable
    static var name: String { get }
}

/// The empty object, `{}`.
public struct Empty: Codable, Hashable, Sendable {
    public init() {}

    // Opens a keyed container to check that the value is an object and has no unknown members.
    public init(from decoder: any Decoder) throws {
        _ = try decoder.container(keyedBy: NamedKey.self)
    }
}

/// Params of the methods that take a room and nothing else.
public struct RoomOnly: Codable, Hashable, Sendable {
    public var room: RoomID
    public init(room: RoomID) { self.room = room }
}

/// Time and packet count at which the media of a revoked right stopped.
public struct Fence: Codable, Hashable, Sendable {
    /// Unix time, in seconds.
    public var time: Double
    /// Packets forwarded under the right before the call revoked it.
    public var packets: UInt64
    /// Nodes that have not confirmed it, whose media has stopped by itself; absent if all have.
    public var silent: [String]?

    public init(time: Double, packets: UInt64, silent: [String]? = nil) {
        self.time = time
        self.packets = packets
        self.silent = silent
    }
}

/// The result of a method that returns no data.
///
/// `fence` is present if the call revoked a right.
public struct Done: Codable, Hashable, Sendable {
    public var fence: Fence?
    /// `false` if the change is not in the room's journal yet.
    ///
    /// It is lost if the node is lost before the registry is back. Absent otherwise, and without
    /// a cluster.
    public var durable: Bool?

    public init(fence: Fence? = nil) { self.fence = fence }
}

/// A human-readable string of at most 256 bytes of UTF-8.
///
/// Two are the same if their bytes are: Unicode knows several spellings of one text.
public struct ShortText: Codable, Hashable, Sendable, ExpressibleByStringLiteral,
    CustomStringConvertible
{
    public static let byteLimit = 256
    public let rawValue: String

    /// Returns `nil` if the string is too long.
    public init?(rawValue: String) {
        guard rawValue.utf8.count <= Self.byteLimit else { return nil }
        self.rawValue = rawValue
    }

    public init(stringLiteral value: String) {
        precondition(value.utf8.count <= Self.byteLimit, "a short text is short")
        rawValue = value
    }

    public var description: String { rawValue }

    public static func == (left: Self, right: Self) -> Bool {
        left.rawValue.utf8.elementsEqual(right.rawValue.utf8)
    }

    public func hash(into hasher: inout Hasher) {
        for byte in rawValue.utf8 { hasher.combine(byte) }
    }

    public init(from decoder: any Decoder) throws {
        let string = try decoder.singleValueContainer().decode(String.self)
        guard let text = Self(rawValue: string) else {
            throw decoder.refusal("is longer than \(Self.byteLimit) bytes")
        }
        self = text
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(rawValue)
    }
}
