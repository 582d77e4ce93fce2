public import JSON

/// State of a room as results describe it.
public struct RoomInfo: Codable, Hashable, Sendable {
    public var room: RoomID
    public var state: RoomState
    /// `seq` of the room's last event; 0 before the first.
    public var seq: Int64
    public var settings: RoomSettings
    public var custom: JSON
    public var locked: Bool
    public var hardMuted: Bool
    public var participants: [ParticipantInfo]
    /// Participants who wait to be let in.
    public var awaited: [AwaitedParticipant]
    public var streams: [StreamInfo]
    public var talkers: [Talker]
    public var pins: [ParticipantID]
    /// Participants who asked for the floor, in order.
    public var raisedHands: [ParticipantID]
    /// Participants who have the floor.
    public var approvedHands: [ParticipantID]
    public var recording: Bool
    public var streaming: Bool
    /// Unix time, in seconds.
    public var created: Double

    public init(room: RoomID, state: RoomState, settings: RoomSettings, created: Double) {
        self.room = room
        self.state = state
        seq = 0
        self.settings = settings
        custom = [:]
        locked = false
        hardMuted = false
        participants = []
        awaited = []
        streams = []
        talkers = []
        pins = []
        raisedHands = []
        approvedHands = []
        recording = false
        streaming = false
        self.created = created
    }
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

        public init(room: RoomID, settings: RoomSettingsChange? = nil) {
            self.room = room
            self.settings = settings
        }
    }
}

/// Returns a room.
public enum RoomGet: IPCMethod {
    public static let name = "room.get"
    public typealias Params = RoomOnly
    public typealias Result = RoomInfo
}

/// Returns all rooms.
public enum RoomList: IPCMethod {
    public static let name = "room.list"
    public typealias Params = Empty

    public struct Result: Codable, Hashable, Sendable {
        public var rooms: [RoomInfo]
        public init(rooms: [RoomInfo]) { self.rooms = rooms }
    }
}

/// Ends a room; all participants are disconnected.
public enum RoomClose: IPCMethod {
    public static let name = "room.close"
    public typealias Result = Done

    public struct Params: Codable, Hashable, Sendable {
        public var room: RoomID
        public var by: ParticipantID?
        /// Reason that `room.closed` reports; at most 256 bytes.
        public var reason: ShortText?

        public init(room: RoomID, by: ParticipantID? = nil, reason: ShortText? = nil) {
            self.room = room
            self.by = by
            self.reason = reason
        }
    }
}
