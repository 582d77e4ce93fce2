// Plain RTP to other tools: sfud's own addition to the contract.

/// Where one kind of a stream goes as plain RTP.
public struct TapLine: Codable, Hashable, Sendable {
    /// `ADDR:PORT` of RTP; RTCP goes to the port above.
    public var address: String

    public init(address: String) { self.address = address }
}

/// Sends a stream as plain RTP to an address that the configuration allows.
public enum TapStart: IPCMethod {
    public static let name = "tap.start"

    public struct Params: Codable, Hashable, Sendable {
        public var room: RoomID
        public var stream: StreamID
        /// One of the two at least.
        public var audio: TapLine?
        public var video: TapLine?
        public var by: ParticipantID?

        public init(
            room: RoomID,
            stream: StreamID,
            audio: TapLine? = nil,
            video: TapLine? = nil,
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
        /// What a receiver has to know (RFC 8866).
        public var sdp: String

        public init(tap: TapName, sdp: String) {
            self.tap = tap
            self.sdp = sdp
        }
    }
}

/// Ends what `tap.start` began.
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

/// Shows the streams that go out as plain RTP.
public enum TapList: IPCMethod {
    public static let name = "tap.list"

    public struct Params: Codable, Hashable, Sendable {
        /// `nil`: of all rooms.
        public var room: RoomID?
        public init(room: RoomID? = nil) { self.room = room }
    }

    public struct Result: Codable, Hashable, Sendable {
        /// In the order in which they began.
        public var taps: [TapInfo]
        public init(taps: [TapInfo]) { self.taps = taps }
    }
}

/// A stream that goes out as plain RTP.
public struct TapInfo: Codable, Hashable, Sendable {
    public var tap: TapName
    public var room: RoomID
    public var stream: StreamID
    public var audio: TapLine?
    public var video: TapLine?
    /// Unix time, in seconds.
    public var started: Double
    /// RTP packets that the system took, up to a second ago.
    public var packets: UInt64
    /// Their bytes.
    public var bytes: UInt64
    /// Packets that the system did not take.
    public var dropped: UInt64
    /// Packets that came to nothing because nobody listens there.
    public var refused: UInt64

    public init(
        tap: TapName,
        room: RoomID,
        stream: StreamID,
        audio: TapLine?,
        video: TapLine?,
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

/// `tap.started`: a stream goes out as plain RTP; where to is not told.
public struct TapStarted: EventData {
    public static let event = "tap.started"
    public var tap: TapName
    public var stream: StreamID
    /// Who asked for it; `nil` for the signalling server.
    public var by: ParticipantID?

    public init(tap: TapName, stream: StreamID, by: ParticipantID?) {
        self.tap = tap
        self.stream = stream
        self.by = by
    }
}

/// `tap.stopped`: nothing more of it goes out.
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
