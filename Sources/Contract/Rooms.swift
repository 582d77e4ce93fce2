public import JSON

/// State of a room as results describe it.
public struct RoomInfo: Codable, Hashable, Sendable {
    public var room: RoomID
    /// Home of the room, the node that has it; absent without a cluster.
    public var node: String?
    public var state: RoomState
    /// `seq` of the room's last event; 0 before the first.
    public var seq: Int64
    public var settings: RoomSettings
    public var custom: JSON
    public var locked: Bool
    public var hardMuted: Bool
    public var counts: RoomCounts
    public var talkers: [Talker]
    public var pins: [ParticipantID]
    public var floor: FloorInfo
    /// The running recording.
    public var recording: RecordingID?
    /// The oldest of `streamings`.
    public var streaming: StreamingID?
    /// The running live streams, in the order of their start.
    public var streamings: [StreamingID]
    /// The first page of `participant.list`; absent in a join without snapshot.
    public var participants: [ParticipantInfo]?
    /// The first page of those who wait to be let in.
    public var awaited: [ParticipantInfo]?
    /// The first page of `stream.list`.
    public var streams: [StreamInfo]?
    /// Cursors of the lists that go on.
    public var next: RoomPages?
    /// Unix time, in seconds.
    public var created: Double
    /// `false` in the results of `room.create` and `room.update` if the change is not in the room's
    /// journal yet: it is lost if the node is lost before the registry is back.
    public var durable: Bool?

    public init(room: RoomID, state: RoomState, settings: RoomSettings, created: Double) {
        self.room = room
        self.state = state
        seq = 0
        self.settings = settings
        custom = [:]
        locked = false
        hardMuted = false
        counts = RoomCounts()
        talkers = []
        pins = []
        floor = FloorInfo()
        streamings = []
        self.created = created
    }
}

/// Numbers of a room's objects.
public struct RoomCounts: Codable, Hashable, Sendable {
    public var participants = 0
    /// Participants who wait to be let in.
    public var awaited = 0
    public var streams = 0

    public init() {}
}

/// The floor of a lecture.
public struct FloorInfo: Codable, Hashable, Sendable {
    /// Participants who asked for it, in order.
    public var requested: [ParticipantID] = []
    /// Participants who have it.
    public var granted: [ParticipantID] = []

    public init() {}
}

/// Cursors of a room's lists after their first page: `after` of the list's own method.
public struct RoomPages: Codable, Hashable, Sendable {
    public var participants: String?
    /// For `participant.list` with state `awaited`.
    public var awaited: String?
    public var streams: String?

    public init() {}
}

public enum RoomState: String, Codable, Hashable, Sendable, CaseIterable {
    case created, ready, ongoing, ended
}

/// One entry in the list of active speakers.
public struct Talker: Codable, Hashable, Sendable {
    public var participant: ParticipantID
    public var stream: StreamID?
    public var talking: Bool
    public var pinned: Bool

    public init(participant: ParticipantID, stream: StreamID?, talking: Bool, pinned: Bool) {
        self.participant = participant
        self.stream = stream
        self.talking = talking
        self.pinned = pinned
    }
}

/// Creates a room.
public enum RoomCreate: IPCMethod {
    public static let name = "room.create"
    public typealias Result = RoomInfo

    public struct Params: Codable, Hashable, Sendable {
        public var room: RoomID
        public var settings: RoomSettingsChange?
        public var custom: CustomItems?

        public init(
            room: RoomID,
            settings: RoomSettingsChange? = nil,
            custom: CustomItems? = nil
        ) {
            self.room = room
            self.settings = settings
            self.custom = custom
        }
    }
}

/// Returns a room.
public enum RoomGet: IPCMethod {
    public static let name = "room.get"
    public typealias Params = RoomOnly
    public typealias Result = RoomInfo
}

/// Returns a summary of each room, in the order of their names.
public enum RoomList: IPCMethod {
    public static let name = "room.list"

    public struct Params: PagedParams {
        /// State of the rooms to list; `nil` for all.
        public var state: RoomState?
        public var limit: PageLimit?
        public var after: PageCursor?

        public init(state: RoomState? = nil, limit: PageLimit? = nil, after: PageCursor? = nil) {
            self.state = state
            self.limit = limit
            self.after = after
        }
    }

    public struct Result: PagedResult {
        public var rooms: [RoomSummary]
        public var next: PageCursor?

        public init(rooms: [RoomSummary], next: PageCursor? = nil) {
            self.rooms = rooms
            self.next = next
        }

        public var page: [RoomSummary] { rooms }
    }
}

/// A room as `room.list` shows it.
public struct RoomSummary: Codable, Hashable, Sendable {
    public var room: RoomID
    public var state: RoomState
    public var mode: RoomMode
    public var locked: Bool
    /// Unix time, in seconds.
    public var created: Double
    public var custom: JSON
    public var counts: RoomCounts

    public init(
        room: RoomID,
        state: RoomState,
        mode: RoomMode = .group,
        locked: Bool = false,
        created: Double,
        custom: JSON = [:],
        counts: RoomCounts = RoomCounts()
    ) {
        self.room = room
        self.state = state
        self.mode = mode
        self.locked = locked
        self.created = created
        self.custom = custom
        self.counts = counts
    }
}

/// Ends a room; all participants are disconnected.
public enum RoomClose: IPCMethod {
    public static let name = "room.close"
    public typealias Result = Done

    public struct Params: Codable, Hashable, Sendable {
        public var room: RoomID
        public var by: ParticipantID?
        /// Free text that `room.closed` passes on; at most 256 bytes.
        public var detail: ShortText?

        public init(room: RoomID, by: ParticipantID? = nil, detail: ShortText? = nil) {
            self.room = room
            self.by = by
            self.detail = detail
        }
    }
}
