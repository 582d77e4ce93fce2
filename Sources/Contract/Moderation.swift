/// Params of what is done to a room, maybe on a participant's behalf.
public struct RoomByParticipant: Codable, Hashable, Sendable {
    public var room: RoomID
    public var by: ParticipantID?

    public init(room: RoomID, by: ParticipantID? = nil) {
        self.room = room
        self.by = by
    }
}

/// Params of what is done to a participant, maybe on another's behalf.
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

/// Takes a live event a step on, or ends it.
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

/// Changes what callers keep with a room, and its settings but for the mode.
public enum RoomUpdate: IPCMethod {
    public static let name = "room.update"
    public typealias Result = RoomInfo

    public struct Params: Codable, Hashable, Sendable {
        public var room: RoomID
        /// Takes the place of what was there.
        public var custom: CustomItems?
        /// Merged into those that hold.
        public var settings: RoomSettingsChange?
        public var by: ParticipantID?

        public init(
            room: RoomID,
            custom: CustomItems? = nil,
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

/// Lets nobody new in but moderators.
public enum RoomLock: IPCMethod {
    public static let name = "room.lock"
    public typealias Params = RoomByParticipant
    public typealias Result = Done
}

/// Lets people in again.
public enum RoomUnlock: IPCMethod {
    public static let name = "room.unlock"
    public typealias Params = RoomByParticipant
    public typealias Result = Done
}

/// Silences everybody but moderators, those who come later too.
public enum RoomHardMute: IPCMethod {
    public static let name = "room.hardMute"
    public typealias Params = RoomByParticipant
    public typealias Result = Done
}

/// Ends the room's mute; those of participants stay.
public enum RoomHardUnmute: IPCMethod {
    public static let name = "room.hardUnmute"
    public typealias Params = RoomByParticipant
    public typealias Result = Done
}

/// Disconnects participants; they may come back.
public enum ParticipantDrop: IPCMethod {
    public static let name = "participant.drop"
    /// Participants named in one call.
    public static let countLimit = 10_000

    public struct Params: Codable, Hashable, Sendable {
        public var room: RoomID
        public var participants: [ParticipantID]
        public var by: ParticipantID?
        /// Told in `participant.left`; at most 256 bytes.
        public var reason: ShortText?

        public init(
            room: RoomID,
            participants: [ParticipantID],
            by: ParticipantID? = nil,
            reason: ShortText? = nil
        ) {
            self.room = room
            self.participants = participants
            self.by = by
            self.reason = reason
        }

        public init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            room = try container.decode(RoomID.self, forKey: .room)
            participants = try container.list(.participants, 0...ParticipantDrop.countLimit)
            by = try container.decodeIfPresent(ParticipantID.self, forKey: .by)
            reason = try container.decodeIfPresent(ShortText.self, forKey: .reason)
        }
    }

    public struct Result: Codable, Hashable, Sendable {
        /// In the order of the call.
        public var results: [Dropped]
        public var fence: Fence?

        public init(results: [Dropped], fence: Fence? = nil) {
            self.results = results
            self.fence = fence
        }
    }

    public struct Dropped: Codable, Hashable, Sendable {
        public var participant: ParticipantID
        /// `false`: nobody of that id was in the room.
        public var dropped: Bool

        public init(participant: ParticipantID, dropped: Bool) {
            self.participant = participant
            self.dropped = dropped
        }
    }
}

/// Lets somebody in who has knocked.
public enum ParticipantApprove: IPCMethod {
    public static let name = "participant.approve"
    public typealias Params = ParticipantByParticipant
    public typealias Result = Done
}

/// Sends somebody away who has knocked.
public enum ParticipantDeny: IPCMethod {
    public static let name = "participant.deny"
    public typealias Params = ParticipantByParticipant
    public typealias Result = Done
}

/// Changes what a participant does in the room.
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

/// Params of a participant's hard mute.
public struct ParticipantMedia: Codable, Hashable, Sendable {
    public var room: RoomID
    public var participant: ParticipantID
    /// At least one.
    public var media: [StreamKind]
    public var by: ParticipantID?

    public init(
        room: RoomID,
        participant: ParticipantID,
        media: [StreamKind],
        by: ParticipantID? = nil
    ) {
        self.room = room
        self.participant = participant
        self.media = media
        self.by = by
    }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        room = try container.decode(RoomID.self, forKey: .room)
        participant = try container.decode(ParticipantID.self, forKey: .participant)
        media = try container.list(.media, 1...StreamKind.allCases.count)
        by = try container.decodeIfPresent(ParticipantID.self, forKey: .by)
    }
}

/// Takes a participant's audio or video, whatever it publishes later.
public enum ParticipantHardMute: IPCMethod {
    public static let name = "participant.hardMute"
    public typealias Params = ParticipantMedia
    public typealias Result = Done
}

public enum ParticipantHardUnmute: IPCMethod {
    public static let name = "participant.hardUnmute"
    public typealias Params = ParticipantMedia
    public typealias Result = Done
}

/// Makes another the moderator; `by`, who was it, becomes a participant.
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

/// Params of the pins' methods.
public struct ParticipantsByParticipant: Codable, Hashable, Sendable {
    /// Participants named in one call.
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

public enum PinAdd: IPCMethod {
    public static let name = "pin.add"
    public typealias Params = ParticipantsByParticipant
    public typealias Result = Done
}

public enum PinRemove: IPCMethod {
    public static let name = "pin.remove"
    public typealias Params = ParticipantsByParticipant
    public typealias Result = Done
}
