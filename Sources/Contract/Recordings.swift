/// Starts recording a room or some of its streams, each track to a file of its own.
///
/// The reply is sent when directory and files are ready, and `recording.started` follows it.
public enum RecordingStart: IPCMethod {
    public static let name = "recording.start"

    public struct Params: Codable, Hashable, Sendable {
        public var room: RoomID
        public var by: ParticipantID?
        /// Streams to record; `nil` for all current and future streams.
        public var streams: [StreamID]?

        public init(room: RoomID, by: ParticipantID? = nil, streams: [StreamID]? = nil) {
            self.room = room
            self.by = by
            self.streams = streams
        }

        public init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            room = try container.decode(RoomID.self, forKey: .room)
            by = try container.decodeIfPresent(ParticipantID.self, forKey: .by)
            try container.note(.count(1...Self.streamLimit), .streams)
            streams = try container.decodeIfPresent([StreamID].self, forKey: .streams)
            guard let streams else { return }
            guard (1...Self.streamLimit).contains(streams.count) else {
                throw container.refusal(.streams, "must have 1 to \(Self.streamLimit) elements")
            }
        }

        /// Most streams that one call may name.
        public static let streamLimit = 1_000
    }

    public struct Result: Codable, Hashable, Sendable {
        public var recording: RecordingID
        /// Absolute path.
        public var directory: String
        /// `false` if the change is not in the room's journal yet.
        ///
        /// It is lost if the node is lost before the registry is back. Absent otherwise, and
        /// without a cluster.
        public var durable: Bool?

        public init(recording: RecordingID, directory: String) {
            self.recording = recording
            self.directory = directory
        }
    }
}

/// Ends a room's recording; `recording.stopped` lists the files.
public enum RecordingStop: IPCMethod {
    public static let name = "recording.stop"
    public typealias Params = RoomByParticipant
    public typealias Result = Done
}

/// Lists running recordings, and ended ones that are still remembered.
public enum RecordingList: IPCMethod {
    public static let name = "recording.list"

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
        /// Recordings in the order in which they started.
        public var recordings: [RecordingInfo]
        /// `after` of the next page; `nil` at the end.
        public var next: PageCursor?

        public init(recordings: [RecordingInfo], next: PageCursor? = nil) {
            self.recordings = recordings
            self.next = next
        }

        public var page: [RecordingInfo] { recordings }
    }
}

/// Lists the files of a recording.
public enum RecordingFiles: IPCMethod {
    public static let name = "recording.files"

    public struct Params: PagedParams {
        public var recording: RecordingID
        public var limit: PageLimit?
        public var after: PageCursor?

        public init(recording: RecordingID, limit: PageLimit? = nil, after: PageCursor? = nil) {
            self.recording = recording
            self.limit = limit
            self.after = after
        }
    }

    public struct Result: PagedResult {
        /// Files in the order in which they were begun.
        public var files: [RecordedFile]
        /// `after` of the next page; `nil` at the end.
        public var next: PageCursor?

        public init(files: [RecordedFile], next: PageCursor? = nil) {
            self.files = files
            self.next = next
        }

        public var page: [RecordedFile] { files }
    }
}

/// One recording of a room.
public struct RecordingInfo: Codable, Hashable, Sendable {
    public enum State: String, Codable, Hashable, Sendable, CaseIterable {
        /// Directory and files are not ready yet.
        case starting
        case recording, stopped
    }

    public var recording: RecordingID
    public var room: RoomID
    /// Absolute path.
    public var directory: String
    public var state: State
    /// Unix time, in seconds.
    public var started: Double
    /// Number of all files, as of at most a second ago.
    public var count: Int
    /// Bytes of all files.
    public var bytes: Int
    /// The first files; `recording.files` gives the rest.
    public var files: [RecordedFile]
    /// `after` of the next page of files; `nil` if there is none.
    public var next: PageCursor?

    public init(
        recording: RecordingID,
        room: RoomID,
        directory: String,
        state: State,
        started: Double,
        count: Int,
        bytes: Int,
        files: [RecordedFile],
        next: PageCursor? = nil
    ) {
        self.recording = recording
        self.room = room
        self.directory = directory
        self.state = state
        self.started = started
        self.count = count
        self.bytes = bytes
        self.files = files
        self.next = next
    }
}

/// File with one recorded track of a stream.
public struct RecordedFile: Codable, Hashable, Sendable {
    /// A period for which the file has no samples.
    public struct Gap: Codable, Hashable, Sendable {
        /// Unix times, in seconds.
        public var start: Double
        public var end: Double
        /// `muted`, `lost` or `refused`.
        public var reason: String

        public init(start: Double, end: Double, reason: String) {
            self.start = start
            self.end = end
            self.reason = reason
        }
    }

    /// Absolute path.
    public var path: String
    public var participant: ParticipantID
    public var stream: StreamID
    public var kind: StreamKind
    /// Unix time of the first sample, in seconds.
    public var start: Double
    /// In seconds.
    public var duration: Double
    /// Length of what is on disk, in bytes.
    public var bytes: Int
    public var gaps: [Gap]

    public init(
        path: String,
        participant: ParticipantID,
        stream: StreamID,
        kind: StreamKind,
        start: Double,
        duration: Double,
        bytes: Int,
        gaps: [Gap]
    ) {
        self.path = path
        self.participant = participant
        self.stream = stream
        self.kind = kind
        self.start = start
        self.duration = duration
        self.bytes = bytes
        self.gaps = gaps
    }
}

/// `recording.started`: directory and files are ready.
public struct RecordingStarted: EventData {
    public static let event = "recording.started"
    public var recording: RecordingID
    /// Absolute path.
    public var directory: String
    /// Participant who asked for it; `nil` for the signalling server and for `autoRecord`.
    public var by: ParticipantID?

    public init(recording: RecordingID, directory: String, by: ParticipantID?) {
        self.recording = recording
        self.directory = directory
        self.by = by
    }
}

/// `recording.stopped`: its files are closed.
public struct RecordingStopped: EventData {
    public static let event = "recording.stopped"
    public var recording: RecordingID
    /// Absolute path.
    public var directory: String
    /// Cause of an end that nobody asked for: `room-closed`, `session-ended`, `disk-full`,
    /// `too-slow` and the like.
    public var reason: String?
    public var by: ParticipantID?
    /// Number of all files.
    public var count: Int
    /// Bytes of all files.
    public var bytes: Int
    /// The first files; `recording.files` gives the rest.
    public var files: [RecordedFile]
    /// `after` of the next page of files; `nil` if there is none.
    public var next: PageCursor?

    public init(
        recording: RecordingID,
        directory: String,
        reason: String?,
        by: ParticipantID?,
        count: Int,
        bytes: Int,
        files: [RecordedFile],
        next: PageCursor? = nil
    ) {
        self.recording = recording
        self.directory = directory
        self.reason = reason
        self.by = by
        self.count = count
        self.bytes = bytes
        self.files = files
        self.next = next
    }
}

/// `recording.failed`: a recording that nobody waits for could not begin.
///
/// An automatic recording is tried again while the room's session lasts, and is told once for each
/// reason.
public struct RecordingFailed: EventData {
    public static let event = "recording.failed"
    /// Absent if the recording was refused before it had an id.
    public var recording: RecordingID?
    /// A word such as `limit-reached`, `no-recorder`, `disk-full` or `not-permitted`.
    public var reason: String
    public var by: ParticipantID?

    public init(recording: RecordingID?, reason: String, by: ParticipantID?) {
        self.recording = recording
        self.reason = reason
        self.by = by
    }
}
