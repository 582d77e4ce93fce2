// RTP forwarding to other tools, sfud's own addition to the contract.

/// Destination of one kind of a stream's media as plain RTP.
public struct TapDestination: Codable, Hashable, Sendable {
    /// `ADDR:PORT` for RTP; RTCP goes to the next port.
    public var address: String

    public init(address: String) { self.address = address }
}

/// Forwards a stream as plain RTP to an address that the configuration allows.
public enum TapStart: IPCMethod {
    public static let name = "tap.start"

    public struct Params: Codable, Hashable, Sendable {
        public var room: RoomID
        public var stream: StreamID
        /// Destinations; at least one of the two.
        public var audio: TapDestination?
        public var video: TapDestination?
        public var by: ParticipantID?

        public init(
            room: RoomID,
            stream: StreamID,
            audio: TapDestination? = nil,
            video: TapDestination? = nil,
            by: ParticipantID? = nil
        ) {
            self.room = room
            self.stream = stream
            self.audio = audio
            self.video = video
            self.by = by
        }
    }

    public struct Result: Codable, Hashable, Sendable {
        public var tap: TapName
        /// Session description for the receiver (RFC 8866).
        public var sdp: String
        /// `false` if the change is not in the room's journal yet.
        ///
        /// It is lost if the node is lost before the registry is back. Absent otherwise, and
        /// without a cluster.
        public var durable: Bool?

        public init(tap: TapName, sdp: String) {
            self.tap = tap
            self.sdp = sdp
        }
    }
}

/// Ends an RTP forward.
public enum TapStop: IPCMethod {
    public static let name = "tap.stop"
    public typealias Result = Done

    public struct Params: Codable, Hashable, Sendable {
        public var room: RoomID
        public var tap: TapName
        public var by: ParticipantID?

        public init(room: RoomID, tap: TapName, by: ParticipantID? = nil) {
            self.room = room
            self.tap = tap
            self.by = by
        }
    }
}

/// Lists the RTP forwards.
public enum TapList: IPCMethod {
    public static let name = "tap.list"

    public struct Params: PagedParams {
        /// Room to list; `nil` for all rooms.
        public var room: RoomID?
        public var limit: PageLimit?
        public var after: PageCursor?

        public init(room: RoomID? = nil, limit: PageLimit? = nil, after: PageCursor? = nil) {
            self.room = room
            self.limit = limit
            self.after = after
        }
    }

    public struct Result: PagedResult {
        /// Forwards in the order in which they started.
        public var taps: [TapInfo]
        public var next: PageCursor?

        public init(taps: [TapInfo], next: PageCursor? = nil) {
            self.taps = taps
            self.next = next
        }

        public var page: [TapInfo] { taps }
    }
}

/// A stream that is forwarded as plain RTP.
public struct TapInfo: Codable, Hashable, Sendable {
    public var tap: TapName
    public var room: RoomID
    public var stream: StreamID
    public var audio: TapDestination?
    public var video: TapDestination?
    /// Unix time, in seconds.
    public var started: Double
    /// RTP packets that the kernel accepted, as of at most a second ago.
    public var packets: UInt64
    /// Bytes of these packets.
    public var bytes: UInt64
    /// Packets that the kernel did not accept.
    public var dropped: UInt64
    /// Packets refused by the destination because no socket listens there.
    public var refused: UInt64

    public init(
        tap: TapName,
        room: RoomID,
        stream: StreamID,
        audio: TapDestination?,
        video: TapDestination?,
        started: Double,
        packets: UInt64,
        bytes: UInt64,
        dropped: UInt64,
        refused: UInt64
    ) {
        self.tap = tap
        self.room = room
        self.stream = stream
        self.audio = audio
        self.video = video
        self.started = started
        self.packets = packets
        self.bytes = bytes
        self.dropped = dropped
        self.refused = refused
    }
}

/// `tap.started`: a stream is forwarded as plain RTP; the destination is not reported.
public struct TapStarted: EventData {
    public static let event = "tap.started"
    public var tap: TapName
    public var stream: StreamID
    /// Participant who asked for it; `nil` for the signalling server.
    public var by: ParticipantID?

    public init(tap: TapName, stream: StreamID, by: ParticipantID?) {
        self.tap = tap
        self.stream = stream
        self.by = by
    }
}

/// `tap.stopped`: nothing more of the stream is forwarded.
public struct TapStopped: EventData {
    public static let event = "tap.stopped"
    public var tap: TapName
    public var stream: StreamID
    /// `requested`, or a word such as `stream-ended`.
    public var reason: String
    public var by: ParticipantID?

    public init(tap: TapName, stream: StreamID, reason: String, by: ParticipantID?) {
        self.tap = tap
        self.stream = stream
        self.reason = reason
        self.by = by
    }
}
