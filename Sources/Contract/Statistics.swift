/// Shows the network statistics of a room, a participant or a subscription.
public enum StatsGet: IPCMethod {
    public static let name = "stats.get"

    public struct Params: Codable, Hashable, Sendable {
        public var room: RoomID
        public var participant: ParticipantID?
        public var subscription: SubscriptionID?

        public init(
            room: RoomID,
            participant: ParticipantID? = nil,
            subscription: SubscriptionID? = nil
        ) {
            self.room = room
            self.participant = participant
            self.subscription = subscription
        }
    }

    public struct Result: Codable, Hashable, Sendable {
        public var transports: [TransportStats]
        public var streams: [StreamStats]
        public var subscriptions: [SubscriptionStats]

        public init(
            transports: [TransportStats] = [],
            streams: [StreamStats] = [],
            subscriptions: [SubscriptionStats] = []
        ) {
            self.transports = transports
            self.streams = streams
            self.subscriptions = subscriptions
        }
    }
}

/// One participant's transport.
public struct TransportStats: Codable, Hashable, Sendable {
    public var transport: TransportName
    public var participant: ParticipantID
    public var connection: ConnectionState
    /// `ADDR:PORT` of the peer, once a check has proved it.
    public var remote: String?
    public var srtpProfile: String?
    public var packetsIn: UInt64 = 0
    public var bytesIn: UInt64 = 0
    public var packetsOut: UInt64 = 0
    public var bytesOut: UInt64 = 0
    /// Milliseconds, from reports.
    public var roundTripTime: Double?

    public init(
        transport: TransportName,
        participant: ParticipantID,
        connection: ConnectionState
    ) {
        self.transport = transport
        self.participant = participant
        self.connection = connection
    }
}

/// What comes of one stream on one m-line.
public struct StreamStats: Codable, Hashable, Sendable {
    public var stream: StreamID
    public var participant: ParticipantID
    public var mid: Mid
    public var kind: StreamKind
    public var codec: CodecName?
    public var encodings: [EncodingStats]

    public init(
        stream: StreamID,
        participant: ParticipantID,
        mid: Mid,
        kind: StreamKind,
        codec: CodecName?,
        encodings: [EncodingStats]
    ) {
        self.stream = stream
        self.participant = participant
        self.mid = mid
        self.kind = kind
        self.codec = codec
        self.encodings = encodings
    }
}

/// What comes of one encoding.
public struct EncodingStats: Codable, Hashable, Sendable {
    public var rid: String?
    public var ssrc: UInt32
    public var active: Bool
    /// Pixels; 0 for audio and while unknown.
    public var width = 0
    public var height = 0
    /// Frames a second.
    public var frameRate = 0.0
    /// Bits a second.
    public var bitrate = 0
    public var packets: UInt64 = 0
    public var bytes: UInt64 = 0
    public var packetsLost: Int64 = 0
    /// Milliseconds.
    public var jitter = 0.0
    /// Packets that sfud asked for again.
    public var nacks: UInt64 = 0
    /// Key frames that sfud asked for.
    public var plis: UInt64 = 0
    public var retransmissions: UInt64 = 0

    public init(rid: String?, ssrc: UInt32, active: Bool) {
        self.rid = rid
        self.ssrc = ssrc
        self.active = active
    }
}

/// What leaves on one slot.
public struct SubscriptionStats: Codable, Hashable, Sendable {
    public var subscription: SubscriptionID
    public var participant: ParticipantID
    public var stream: StreamID
    public var mid: Mid
    public var kind: StreamKind
    public var codec: CodecName?
    /// Of the layer being forwarded.
    public var rid: String?
    public var packets: UInt64 = 0
    public var bytes: UInt64 = 0
    /// By the viewer's reports.
    public var packetsLost: Int64 = 0
    /// By the viewer's last report: 0 to 1.
    public var fractionLost = 0.0
    /// Milliseconds, by the viewer's last report.
    public var jitter = 0.0
    /// Packets that the viewer asked for again.
    public var nacks: UInt64 = 0
    /// Key frames that the viewer asked for.
    public var plis: UInt64 = 0
    public var retransmissions: UInt64 = 0

    public init(
        subscription: SubscriptionID,
        participant: ParticipantID,
        stream: StreamID,
        mid: Mid,
        kind: StreamKind
    ) {
        self.subscription = subscription
        self.participant = participant
        self.stream = stream
        self.mid = mid
        self.kind = kind
    }
}
