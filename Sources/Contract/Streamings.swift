/// Starts a live stream of a room to an RTMP server, as H.264 and AAC.
///
/// The reply is sent once the server has accepted the first packet or failed to.
public enum StreamingStart: IPCMethod {
    public static let name = "streaming.start"

    public struct Params: Codable, Hashable, Sendable {
        public var room: RoomID
        /// `rtmp://` or `rtmps://` URL with its stream key; it is neither reported nor logged.
        public var url: String
        /// `stage`, the default, or `grid`; `page` is refused as not implemented.
        public var layout: String?
        /// Page to show instead of participants; refused as not implemented.
        public var page: StreamingPage?
        /// Pixels; 1280 × 720 by default, and 16:9 if only one is given.
        public var width: Int?
        public var height: Int?
        /// Video bitrate, in bits a second.
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
        /// `false` if the change is not in the room's journal yet.
        ///
        /// It is lost if the node is lost before the registry is back. Absent otherwise, and
        /// without a cluster.
        public var durable: Bool?

        public init(streaming: StreamingID) { self.streaming = streaming }
    }
}

/// Page that a live stream is to show instead of participants.
public struct StreamingPage: Codable, Hashable, Sendable {
    public var url: String
    public init(url: String) { self.url = url }
}

/// Ends one live stream of a room, or all of them if no id is given.
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

/// Returns live streams, of one room or of all, in the order in which they started.
public enum StreamingList: IPCMethod {
    public static let name = "streaming.list"

    public struct Params: PagedParams {
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
        public var streamings: [StreamingInfo]
        public var next: PageCursor?

        public init(streamings: [StreamingInfo], next: PageCursor? = nil) {
            self.streamings = streamings
            self.next = next
        }

        public var page: [StreamingInfo] { streamings }
    }
}

/// A live stream; its URL is not reported.
public struct StreamingInfo: Codable, Hashable, Sendable {
    public var streaming: StreamingID
    public var room: RoomID
    public var state: State
    /// `stage` or `grid`.
    public var layout: String
    /// In pixels.
    public var width: Int
    public var height: Int
    /// Unix time of the call, in seconds.
    public var started: Double
    /// Participant who asked for it; `nil` for the signalling server.
    public var by: ParticipantID?

    /// Progress of a live stream.
    public enum State: String, Codable, Hashable, Sendable, CaseIterable {
        /// The server has not accepted the first packet yet.
        case starting
        case streaming
        /// The server is gone, and sfud reconnects.
        case interrupted
    }

    public init(
        streaming: StreamingID,
        room: RoomID,
        state: State,
        layout: String,
        width: Int,
        height: Int,
        started: Double,
        by: ParticipantID?
    ) {
        self.streaming = streaming
        self.room = room
        self.state = state
        self.layout = layout
        self.width = width
        self.height = height
        self.started = started
        self.by = by
    }
}

/// `streaming.started`: the server has accepted the first packet.
public struct StreamingStarted: EventData {
    public static let event = "streaming.started"
    public var streaming: StreamingID
    /// `stage` or `grid`.
    public var layout: String
    /// In pixels.
    public var width: Int
    public var height: Int
    /// Participant who asked for it; `nil` for the signalling server.
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

/// `streaming.stopped`: nothing more is sent to the server.
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

/// `streaming.interrupted`: the connection to the server was lost; reconnecting.
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

/// `streaming.resumed`: the server accepts packets again.
public struct StreamingResumed: EventData {
    public static let event = "streaming.resumed"
    public var streaming: StreamingID
    public init(streaming: StreamingID) { self.streaming = streaming }
}
