/// Begins to stream a room live to a server: H.264 and AAC over RTMP.
///
/// Answered when the server has taken the first packet, or has not.
public enum StreamingStart: IPCMethod {
    public static let name = "streaming.start"

    public struct Params: Codable, Hashable, Sendable {
        public var room: RoomID
        /// `rtmp://` or `rtmps://`, with its key; it is neither told nor logged.
        public var url: String
        /// `stage`, which is the default, or `grid`.
        public var layout: String?
        /// In pixels; 1280 by 720 where neither is named, else 16:9.
        public var width: Int?
        public var height: Int?
        /// Of the picture, in bits a second.
        public var bitrate: Int?
        public var by: ParticipantID?

        public init(room: RoomID, url: String, by: ParticipantID? = nil) {
            self.room = room
            self.url = url
            self.by = by
        }
    }

    public struct Result: Codable, Hashable, Sendable {
        public var streaming: StreamingID
        public init(streaming: StreamingID) { self.streaming = streaming }
    }
}

/// Ends a room's live stream; without a name all that it has.
public enum StreamingStop: IPCMethod {
    public static let name = "streaming.stop"

    public struct Params: Codable, Hashable, Sendable {
        public var room: RoomID
        public var streaming: StreamingID?
        public var by: ParticipantID?

        public init(room: RoomID, streaming: StreamingID? = nil, by: ParticipantID? = nil) {
            self.room = room
            self.streaming = streaming
            self.by = by
        }
    }

    public typealias Result = Done
}

/// `streaming.started`: the server has taken the first packet.
public struct StreamingStarted: EventData {
    public static let event = "streaming.started"
    public var streaming: StreamingID
    /// `stage` or `grid`.
    public var layout: String
    /// In pixels.
    public var width: Int
    public var height: Int
    /// Who asked for it; `nil` for the signalling server.
    public var by: ParticipantID?

    public init(
        streaming: StreamingID,
        layout: String,
        width: Int,
        height: Int,
        by: ParticipantID?
    ) {
        self.streaming = streaming
        self.layout = layout
        self.width = width
        self.height = height
        self.by = by
    }
}

/// `streaming.stopped`: nothing more goes to the server.
public struct StreamingStopped: EventData {
    public static let event = "streaming.stopped"
    public var streaming: StreamingID
    /// `requested`, or a word such as `room-closed` or `unreachable`.
    public var reason: String
    public var by: ParticipantID?

    public init(streaming: StreamingID, reason: String, by: ParticipantID?) {
        self.streaming = streaming
        self.reason = reason
        self.by = by
    }
}

/// `streaming.interrupted`: the server is gone, and is tried again.
public struct StreamingInterrupted: EventData {
    public static let event = "streaming.interrupted"
    public var streaming: StreamingID
    /// A word such as `connection-lost`.
    public var cause: String

    public init(streaming: StreamingID, cause: String) {
        self.streaming = streaming
        self.cause = cause
    }
}

/// `streaming.resumed`: the server takes packets again.
public struct StreamingResumed: EventData {
    public static let event = "streaming.resumed"
    public var streaming: StreamingID
    public init(streaming: StreamingID) { self.streaming = streaming }
}
