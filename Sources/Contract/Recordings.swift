/// Begins to record a room, or some of its streams: each track to a file of its own.
///
/// Answered when directory and files stand ready; `recording.started` follows when the first
/// packet is on disk.
public enum RecordingStart: IPCMethod {
    public static let name = "recording.start"

    public struct Params: Codable, Hashable, Sendable {
        public var room: RoomID
        public var by: ParticipantID?
        /// The only streams to be recorded; `nil`: all that there are and will be.
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

        /// Streams that a call may name.
        public static let streamLimit = 1_000
    }

    public struct Result: Codable, Hashable, Sendable {
        public var recording: RecordingID
        /// An absolute path.
        public var directory: String

        public init(recording: RecordingID, directory: String) {
            self.recording = recording
            self.directory = directory
        }
    }
}

/// Ends a room's recording; `recording.stopped` tells what there is.
public enum RecordingStop: IPCMethod {
    public static let name = "recording.stop"
    public typealias Params = RoomByParticipant
    public typealias Result = Done
}

/// Shows recordings that run and, as far as they are remembered, that have ended.
public enum RecordingList: IPCMethod {
    public static let name = "recording.list"

    public struct Params: Codable, Hashable, Sendable {
        /// `nil`: of all rooms.
        public var room: RoomID?
        public init(room: RoomID? = nil) { self.room = room }
    }

    public struct Result: Codable, Hashable, Sendable {
        /// In the order in which they began.
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
    /// An absolute path.
    public var directory: String
    public var state: State
    /// Unix time, in seconds.
    public var started: Double
    /// As they were a second ago at most.
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

/// One track of a stream, as it was recorded.
public struct RecordedFile: Codable, Hashable, Sendable {
    /// A time for which the file has no samples.
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

    /// An absolute path.
    public var path: String
    public var participant: ParticipantID
    public var stream: StreamID
    public var kind: StreamKind
    /// Unix time of its first sample, in seconds.
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
    /// An absolute path.
    public var directory: String
    /// Who asked for it; `nil` for the signalling server, and for `autoRecord`.
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
    /// An absolute path.
    public var directory: String
    /// Where nobody asked for it, a word such as `room-closed`, `disk-full` or `too-slow`.
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
