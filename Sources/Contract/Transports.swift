import JSON

/// The name of an m-line (RFC 8843 §8.1): 1 to 128 bytes of printable ASCII without space.
public struct Mid: RawRepresentable, Hashable, Sendable {
    public let rawValue: String

    public init?(rawValue: String) {
        guard (1...128).contains(rawValue.utf8.count),
            rawValue.utf8.allSatisfy({ (0x21...0x7e).contains($0) })
        else { return nil }
        self.rawValue = rawValue
    }

    /// Wraps a string that is known to be a mid.
    public init(_ known: String) {
        guard let mid = Self(rawValue: known) else { preconditionFailure("no mid: \(known)") }
        self = mid
    }
}

extension Mid: Codable, CodingKeyRepresentable, CustomStringConvertible, ExpressibleByStringLiteral
{
    public init(from decoder: any Decoder) throws {
        let string = try decoder.singleValueContainer().decode(String.self)
        guard let mid = Self(rawValue: string) else { throw decoder.refusal("is no mid") }
        self = mid
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(rawValue)
    }

    public var codingKey: any CodingKey { NamedKey(rawValue) }
    public init?(codingKey: some CodingKey) { self.init(rawValue: codingKey.stringValue) }
    public var description: String { rawValue }
    public init(stringLiteral value: String) { self.init(value) }
}

/// What an answer says about one m-line.
public struct MidInfo: Codable, Hashable, Sendable {
    public var mid: Mid
    /// `audio`, `video`, or what else the offer had there.
    public var kind: String
    /// As in the answer, from sfud's side: `recvonly` is one that the participant sends on.
    public var direction: MediaDirection
    /// The stream that the participant sends on it.
    public var stream: StreamID?
    /// Why it is `inactive`, in a word such as `role`, `mode` or `codec`.
    public var refused: String?

    public init(
        mid: Mid,
        kind: String,
        direction: MediaDirection,
        stream: StreamID? = nil,
        refused: String? = nil
    ) {
        self.mid = mid
        self.kind = kind
        self.direction = direction
        self.stream = stream
        self.refused = refused
    }
}

/// The direction attribute of an m-line (RFC 8866 §6.7).
public enum MediaDirection: String, Codable, Hashable, Sendable, CaseIterable {
    case sendrecv, sendonly, recvonly, inactive
}

/// Makes a transport, renegotiates it, or restarts its ICE.
public enum TransportOffer: IPCMethod {
    public static let name = "transport.offer"

    public struct Params: Codable, Hashable, Sendable {
        public var room: RoomID
        public var participant: ParticipantID
        public var sdp: String
        public var transport: TransportName?
        /// What the m-lines carry; those left out are a camera or a microphone.
        public var sources: [Mid: StreamSource]?
        /// Whether sfud may drop the streams' video to keep their audio; true where left out.
        public var audioFallback: Bool?

        public init(
            room: RoomID,
            participant: ParticipantID,
            sdp: String,
            transport: TransportName? = nil,
            sources: [Mid: StreamSource]? = nil,
            audioFallback: Bool? = nil
        ) {
            self.room = room
            self.participant = participant
            self.sdp = sdp
            self.transport = transport
            self.sources = sources
            self.audioFallback = audioFallback
        }
    }

    public struct Result: Codable, Hashable, Sendable {
        public var transport: TransportName
        public var sdp: String
        public var mids: [MidInfo]

        public init(transport: TransportName, sdp: String, mids: [MidInfo]) {
            self.transport = transport
            self.sdp = sdp
            self.mids = mids
        }
    }
}

/// Ends a transport, and with it its streams and subscriptions.
public enum TransportClose: IPCMethod {
    public static let name = "transport.close"
    public typealias Result = Done

    public struct Params: Codable, Hashable, Sendable {
        public var room: RoomID
        public var participant: ParticipantID
        public var transport: TransportName?

        public init(
            room: RoomID,
            participant: ParticipantID,
            transport: TransportName? = nil
        ) {
            self.room = room
            self.participant = participant
            self.transport = transport
        }
    }
}
