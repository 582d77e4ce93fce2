public import JSON

/// Identification tag of an m-line (RFC 8843 §8.1): 1 to 48 printable ASCII bytes, no space.
public struct Mid: RawRepresentable, Hashable, Sendable {
    /// Longest mid, in bytes, in offers and in params.
    public static let byteLimit = 48
    public let rawValue: String

    public init?(rawValue: String) {
        guard (1...Self.byteLimit).contains(rawValue.utf8.count),
            rawValue.utf8.allSatisfy({ (0x21...0x7e).contains($0) })
        else { return nil }
        self.rawValue = rawValue
    }

    /// Wraps a valid mid; traps if it is not one.
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

/// Result of the negotiation for one m-line.
public struct MidInfo: Codable, Hashable, Sendable {
    public var mid: Mid
    /// `audio`, `video`, or another media type from the offer.
    public var kind: String
    /// Direction in the answer, from sfud's side: on `recvonly` the participant sends.
    public var direction: MediaDirection
    /// Stream that the participant sends on this m-line.
    public var stream: StreamID?
    /// Reason for `inactive`: `mode` or `event-type` (those of the participant and of the room let
    /// it send nothing here), `source` (it does not fit the kind), `codec` (sfud takes none of
    /// those offered) or `kind` (neither audio nor video).
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

/// Changes of a stream's attributes; `null` unsets one.
public struct StreamAttributes: Codable, Hashable, Sendable {
    public var name: Change<ShortText>
    public var custom: Change<CustomItems>
    public var audioFallback: Change<Bool>

    public init(
        name: Change<ShortText> = .keep,
        custom: Change<CustomItems> = .keep,
        audioFallback: Change<Bool> = .keep
    ) {
        self.name = name
        self.custom = custom
        self.audioFallback = audioFallback
    }
}

/// Creates a transport, renegotiates it, or restarts its ICE.
public enum TransportOffer: IPCMethod {
    public static let name = "transport.offer"

    public struct Params: Codable, Hashable, Sendable {
        public var room: RoomID
        public var participant: ParticipantID
        public var sdp: String
        public var transport: TransportName?
        /// Sources of the m-lines; camera or microphone by default.
        public var sources: [Mid: StreamSource]?
        /// Attributes of the streams that the m-lines belong to.
        public var streams: [Mid: StreamAttributes]?
        /// Whether the streams' video may be switched off to keep their audio; by default that of
        /// cameras may, and that of screens may not.
        public var audioFallback: Change<Bool>
        public var by: ParticipantID?

        public init(
            room: RoomID,
            participant: ParticipantID,
            sdp: String,
            transport: TransportName? = nil,
            sources: [Mid: StreamSource]? = nil,
            streams: [Mid: StreamAttributes]? = nil,
            audioFallback: Change<Bool> = .keep,
            by: ParticipantID? = nil
        ) {
            self.room = room
            self.participant = participant
            self.sdp = sdp
            self.transport = transport
            self.sources = sources
            self.streams = streams
            self.audioFallback = audioFallback
            self.by = by
        }
    }

    public struct Result: Codable, Hashable, Sendable {
        public var transport: TransportName
        public var sdp: String
        public var mids: [MidInfo]
        /// `false` if the change is not in the room's journal yet.
        ///
        /// It is lost if the node is lost before the registry is back. Absent otherwise, and
        /// without a cluster.
        public var durable: Bool?

        public init(transport: TransportName, sdp: String, mids: [MidInfo]) {
            self.transport = transport
            self.sdp = sdp
            self.mids = mids
        }
    }
}

/// Ends a transport with its streams and subscriptions.
public enum TransportClose: IPCMethod {
    public static let name = "transport.close"
    public typealias Result = Done

    public struct Params: Codable, Hashable, Sendable {
        public var room: RoomID
        public var participant: ParticipantID
        public var transport: TransportName?
        public var by: ParticipantID?

        public init(
            room: RoomID,
            participant: ParticipantID,
            transport: TransportName? = nil,
            by: ParticipantID? = nil
        ) {
            self.room = room
            self.participant = participant
            self.transport = transport
            self.by = by
        }
    }
}
