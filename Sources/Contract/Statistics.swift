/// Returns network statistics of a room, a participant or a subscription.
public enum StatsGet: IPCMethod {
    public static let name = "stats.get"

    public struct Params: Codable, Hashable, Sendable {
        public var room: RoomID
        public var participant: ParticipantID?
        public var subscription: SubscriptionID?
        /// Most participants of a page.
        public var limit: PageLimit?
        public var after: PageCursor?

        public init(
            room: RoomID,
            participant: ParticipantID? = nil,
            subscription: SubscriptionID? = nil,
            limit: PageLimit? = nil,
            after: PageCursor? = nil
        ) {
            self.room = room
            self.participant = participant
            self.subscription = subscription
            self.limit = limit
            self.after = after
        }
    }

    public struct Result: Codable, Hashable, Sendable {
        public var transports: [TransportStats]
        public var streams: [StreamStats]
        public var subscriptions: [SubscriptionStats]
        /// Cursor of the next participants' statistics; `nil` at the end.
        public var next: PageCursor?

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

/// Statistics of a participant's transport.
public struct TransportStats: Codable, Hashable, Sendable {
    public var transport: TransportName
    public var participant: ParticipantID
    public var connection: ConnectionState
    /// `ADDR:PORT` of the peer, once a connectivity check has validated it.
    public var remote: String?
    /// Protocol of the path to the peer, once there is one.
    public var `protocol`: PathProtocol?
    public var srtpProfile: String?
    /// Unix time of the figures, in seconds; `nil` if the worker has none yet.
    public var time: Double?
    public var packetsIn: UInt64 = 0
    public var bytesIn: UInt64 = 0
    public var packetsOut: UInt64 = 0
    public var bytesOut: UInt64 = 0
    /// Milliseconds, from RTCP reports.
    public var roundTripTime: Double?
    /// Estimate of what the path to the peer carries, in bits a second; `nil` if no limit is known.
    public var estimate: Int?

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

/// Transport protocol of a path.
public enum PathProtocol: String, Codable, Hashable, Sendable, CaseIterable {
    case udp, tcp
}

/// Statistics of media received on one m-line of a stream.
public struct StreamStats: Codable, Hashable, Sendable {
    public var stream: StreamID
    public var participant: ParticipantID
    public var mid: Mid
    public var kind: StreamKind
    public var codec: CodecName?
    /// Unix time of the figures, in seconds.
    public var time: Double?
    public var encodings: [EncodingStats]

    public init(
        stream: StreamID,
        participant: ParticipantID,
        mid: Mid,
        kind: StreamKind,
        codec: CodecName?,
        time: Double? = nil,
        encodings: [EncodingStats]
    ) {
        self.stream = stream
        self.participant = participant
        self.mid = mid
        self.kind = kind
        self.codec = codec
        self.time = time
        self.encodings = encodings
    }
}

/// Statistics of one received encoding.
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
    /// Fraction lost in the interval of sfud's last receiver report: 0 to 1.
    public var fractionLost = 0.0
    /// Milliseconds.
    public var jitter = 0.0
    /// Packets that sfud requested again.
    public var nacks: UInt64 = 0
    /// Keyframes that sfud requested.
    public var plis: UInt64 = 0
    public var retransmissions: UInt64 = 0

    public init(rid: String?, ssrc: UInt32, active: Bool) {
        self.rid = rid
        self.ssrc = ssrc
        self.active = active
    }
}

/// Statistics of media sent on one slot.
public struct SubscriptionStats: Codable, Hashable, Sendable {
    public var subscription: SubscriptionID
    public var participant: ParticipantID
    public var stream: StreamID
    public var mid: Mid
    public var kind: StreamKind
    public var codec: CodecName?
    /// Unix time of the figures, in seconds.
    public var time: Double?
    /// RID of the forwarded layer.
    public var rid: String?
    public var packets: UInt64 = 0
    public var bytes: UInt64 = 0
    /// Packets lost according to the subscriber's receiver reports.
    public var packetsLost: Int64 = 0
    /// Fraction lost in the subscriber's last receiver report: 0 to 1.
    public var fractionLost = 0.0
    /// Jitter in the subscriber's last receiver report, in milliseconds.
    public var jitter = 0.0
    /// Packets that the subscriber requested again.
    public var nacks: UInt64 = 0
    /// Keyframes that the subscriber requested.
    public var plis: UInt64 = 0
    public var retransmissions: UInt64 = 0
    /// Freezes of the video that have ended, and their length.
    public var freezes: UInt64 = 0
    public var freezeSeconds = 0.0

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
