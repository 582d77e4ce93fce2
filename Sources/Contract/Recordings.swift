/// Starts recording a room or some of its streams, each track to a file of its own.
///
/// The reply is sent when directory and files exist; `recording.started` follows when the first
/// packet is on disk.
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

    public struct Params: Codable, Hashable, Sendable {
        /// Room to list; `nil` for all rooms.
        public var room: RoomID?
        public init(room: RoomID? = nil) { self.room = room }
    }

    public struct Result: Codable, Hashable, Sendable {
        /// Recordings in the order in which they started.
        public var recordings: [RecordingInfo]
        public init(recordings: [RecordingInfo]) { self.recordings = recordings }
    }
}

/// One recording of a room.
public struct RecordingInfo: Codable, Hashable, Sendable {
    public enum State: String, Codable, Hashable, Sendable, CaseIterable {
        /// No packet is on disk yet.
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
    /// Files as of at most a second ago.
    public var files: [RecordedFile]

    public init(
        recording: RecordingID,
        room: RoomID,
        directory: String,
        state: State,
        started: Double,
        files: [RecordedFile]
    ) {
        self.recording = recording
        self.room = room
        self.directory = directory
        self.state = state
        self.started = started
        self.files = files
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
    public var gaps: [Gap]

    public init(
        path: String,
        participant: ParticipantID,
        stream: StreamID,
        kind: StreamKind,
        start: Double,
        duration: Double,
        gaps: [Gap]
    ) {
        self.path = path
        self.participant = participant
        self.stream = stream
        self.kind = kind
        self.start = start
        self.duration = duration
        self.gaps = gaps
    }
}

/// `recording.started`: the first packet is on disk.
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
    /// Cause of an end that nobody asked for: `room-closed`, `disk-full`, `too-slow` and the like.
    public var reason: String?
    public var by: ParticipantID?
    public var files: [RecordedFile]

    public init(
        recording: RecordingID,
        directory: String,
        reason: String?,
        by: ParticipantID?,
        files: [RecordedFile]
    ) {
        self.recording = recording
        self.directory = directory
        self.reason = reason
        self.by = by
        self.files = files
    }
}
