public import JSON

/// Params of methods on a room, with the participant who asks for it if any.
public struct RoomByParticipant: Codable, Hashable, Sendable {
    public var room: RoomID
    public var by: ParticipantID?

    public init(room: RoomID, by: ParticipantID? = nil) {
        self.room = room
        self.by = by
    }
}

/// Params of methods on a participant, with the participant who asks for it if any.
public struct ParticipantByParticipant: Codable, Hashable, Sendable {
    public var room: RoomID
    public var participant: ParticipantID
    public var by: ParticipantID?

    public init(room: RoomID, participant: ParticipantID, by: ParticipantID? = nil) {
        self.room = room
        self.participant = participant
        self.by = by
    }
}

/// Moves a live event to its next state, or ends it.
public enum RoomSetState: IPCMethod {
    public static let name = "room.setState"
    public typealias Result = Done

    public struct Params: Codable, Hashable, Sendable {
        public var room: RoomID
        public var state: RoomState
        public var by: ParticipantID?

        public init(room: RoomID, state: RoomState, by: ParticipantID? = nil) {
            self.room = room
            self.state = state
            self.by = by
        }
    }
}

/// Changes a room's custom data, or its settings except the mode.
public enum RoomUpdate: IPCMethod {
    public static let name = "room.update"
    public typealias Result = RoomInfo

    public struct Params: Codable, Hashable, Sendable {
        public var room: RoomID
        /// Replaces the custom data; null empties it.
        public var custom: Change<CustomItems>
        /// Merged into the current settings.
        public var settings: RoomSettingsChange?
        public var by: ParticipantID?

        public init(
            room: RoomID,
            custom: Change<CustomItems> = .keep,
            settings: RoomSettingsChange? = nil,
            by: ParticipantID? = nil
        ) {
            self.room = room
            self.custom = custom
            self.settings = settings
            self.by = by
        }
    }
}

/// Locks a room: nobody new may join, only former moderators may return.
public enum RoomLock: IPCMethod {
    public static let name = "room.lock"
    public typealias Params = RoomByParticipant
    public typealias Result = Done
}

/// Unlocks a room.
public enum RoomUnlock: IPCMethod {
    public static let name = "room.unlock"
    public typealias Params = RoomByParticipant
    public typealias Result = Done
}

/// Mutes the audio of all but the caller, including participants who join later.
public enum RoomHardMute: IPCMethod {
    public static let name = "room.hardMute"
    public typealias Result = Done

    public struct Params: Codable, Hashable, Sendable {
        public var room: RoomID
        /// Participant who asks for it, and who stays audible.
        public var by: ParticipantID?
        /// Further participants who stay audible; `nil` for none.
        public var sparing: MuteSparing?

        public init(room: RoomID, by: ParticipantID? = nil, sparing: MuteSparing? = nil) {
            self.room = room
            self.by = by
            self.sparing = sparing
        }
    }
}

/// Participants whom a room's mute spares besides its caller.
public enum MuteSparing: String, Codable, Hashable, Sendable, CaseIterable {
    /// Everybody who is a moderator at the time.
    case moderators
}

/// Ends the room's mute; hard mutes of single participants remain.
public enum RoomHardUnmute: IPCMethod {
    public static let name = "room.hardUnmute"
    public typealias Params = RoomByParticipant
    public typealias Result = Done
}

/// Disconnects participants; they may join again.
public enum ParticipantDrop: IPCMethod {
    public static let name = "participant.drop"
    /// Most participants that one call may name.
    public static let countLimit = 5_000

    public struct Params: Codable, Hashable, Sendable {
        public var room: RoomID
        public var participants: [ParticipantID]
        public var by: ParticipantID?
        /// Free text that `participant.left` passes on; at most 256 bytes.
        public var detail: ShortText?

        public init(
            room: RoomID,
            participants: [ParticipantID],
            by: ParticipantID? = nil,
            detail: ShortText? = nil
        ) {
            self.room = room
            self.participants = participants
            self.by = by
            self.detail = detail
        }

        public init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            room = try container.decode(RoomID.self, forKey: .room)
            participants = try container.list(.participants, 0...ParticipantDrop.countLimit)
            by = try container.decodeIfPresent(ParticipantID.self, forKey: .by)
            detail = try container.decodeIfPresent(ShortText.self, forKey: .detail)
        }
    }

    public struct Result: Codable, Hashable, Sendable {
        /// One result for each participant, in the order of the call.
        public var results: [Dropped]
        public var fence: Fence?
        /// `false` if the change is not in the room's journal yet.
        ///
        /// It is lost if the node is lost before the registry is back. Absent otherwise, and
        /// without a cluster.
        public var durable: Bool?

        public init(results: [Dropped], fence: Fence? = nil) {
            self.results = results
            self.fence = fence
        }
    }

    public struct Dropped: Codable, Hashable, Sendable {
        public var participant: ParticipantID
        /// Whether the participant was in the room.
        public var dropped: Bool

        public init(participant: ParticipantID, dropped: Bool) {
            self.participant = participant
            self.dropped = dropped
        }
    }
}

/// Changes whether a participant may send and receive.
public enum ParticipantSetMode: IPCMethod {
    public static let name = "participant.setMode"
    public typealias Result = Done

    public struct Params: Codable, Hashable, Sendable {
        public var room: RoomID
        public var participant: ParticipantID
        public var mode: RequestedMode
        public var by: ParticipantID?

        public init(
            room: RoomID,
            participant: ParticipantID,
            mode: ParticipantMode,
            by: ParticipantID? = nil
        ) {
            self.room = room
            self.participant = participant
            self.mode = RequestedMode(mode)
            self.by = by
        }
    }
}

/// Makes another participant the moderator; `by`, the former moderator, becomes a participant.
public enum ModeratorTransfer: IPCMethod {
    public static let name = "moderator.transfer"
    public typealias Result = Done

    public struct Params: Codable, Hashable, Sendable {
        public var room: RoomID
        public var participant: ParticipantID
        public var by: ParticipantID

        public init(room: RoomID, participant: ParticipantID, by: ParticipantID) {
            self.room = room
            self.participant = participant
            self.by = by
        }
    }
}

/// Params of the pin methods.
public struct ParticipantsByParticipant: Codable, Hashable, Sendable {
    /// Most participants that one call may name.
    public static let countLimit = 100

    public var room: RoomID
    public var participants: [ParticipantID]
    public var by: ParticipantID?

    public init(room: RoomID, participants: [ParticipantID], by: ParticipantID? = nil) {
        self.room = room
        self.participants = participants
        self.by = by
    }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        room = try container.decode(RoomID.self, forKey: .room)
        participants = try container.list(.participants, 0...Self.countLimit)
        by = try container.decodeIfPresent(ParticipantID.self, forKey: .by)
    }
}

/// Pins participants to the front of the list of active speakers.
public enum PinAdd: IPCMethod {
    public static let name = "pin.add"
    public typealias Params = ParticipantsByParticipant
    public typealias Result = Done
}

/// Unpins participants.
public enum PinRemove: IPCMethod {
    public static let name = "pin.remove"
    public typealias Params = ParticipantsByParticipant
    public typealias Result = Done
}
