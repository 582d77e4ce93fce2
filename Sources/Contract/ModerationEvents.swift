public import JSON

/// `room.stateChanged`.
public struct RoomStateChanged: EventData {
    public static let event = "room.stateChanged"
    public var state: RoomState
    public var by: ParticipantID?

    public init(state: RoomState, by: ParticipantID?) {
        self.state = state
        self.by = by
    }
}

/// `room.updated`: the custom data and settings after the change.
public struct RoomUpdated: EventData {
    public static let event = "room.updated"
    public var custom: JSON
    public var settings: RoomSettings
    public var by: ParticipantID?

    public init(custom: JSON, settings: RoomSettings, by: ParticipantID?) {
        self.custom = custom
        self.settings = settings
        self.by = by
    }
}

/// Common initializer of events that name only the participant who acted.
public protocol EventByParticipant: EventData {
    init(by: ParticipantID?)
}

/// `room.locked`.
public struct RoomLocked: EventByParticipant {
    public static let event = "room.locked"
    public var by: ParticipantID?
    public init(by: ParticipantID?) { self.by = by }
}

/// `room.unlocked`.
public struct RoomUnlocked: EventByParticipant {
    public static let event = "room.unlocked"
    public var by: ParticipantID?
    public init(by: ParticipantID?) { self.by = by }
}

/// `room.hardMuted`.
public struct RoomHardMuted: EventByParticipant {
    public static let event = "room.hardMuted"
    public var by: ParticipantID?
    public init(by: ParticipantID?) { self.by = by }
}

/// `room.hardUnmuted`.
public struct RoomHardUnmuted: EventByParticipant {
    public static let event = "room.hardUnmuted"
    public var by: ParticipantID?
    public init(by: ParticipantID?) { self.by = by }
}

/// `participant.approved`: a waiting participant was let in.
public struct ParticipantApproved: EventData {
    public static let event = "participant.approved"
    public var participant: ParticipantInfo
    public var by: ParticipantID?

    public init(participant: ParticipantInfo, by: ParticipantID?) {
        self.participant = participant
        self.by = by
    }
}

/// `participant.denied`: a waiting participant was turned away.
public struct ParticipantDenied: EventData {
    public static let event = "participant.denied"
    public var participant: ParticipantID
    public var by: ParticipantID?

    public init(participant: ParticipantID, by: ParticipantID?) {
        self.participant = participant
        self.by = by
    }
}

/// `participant.modeChanged`.
public struct ParticipantModeChanged: EventData {
    public static let event = "participant.modeChanged"
    public var participant: ParticipantID
    public var mode: ParticipantMode
    public var by: ParticipantID?

    public init(participant: ParticipantID, mode: ParticipantMode, by: ParticipantID?) {
        self.participant = participant
        self.mode = mode
        self.by = by
    }
}

/// `participant.hardMuted`; `media` lists the kinds that were not muted before.
public struct ParticipantHardMuted: EventData {
    public static let event = "participant.hardMuted"
    public var participant: ParticipantID
    public var media: [StreamKind]
    public var by: ParticipantID?

    public init(participant: ParticipantID, media: [StreamKind], by: ParticipantID?) {
        self.participant = participant
        self.media = media
        self.by = by
    }
}

/// `participant.hardUnmuted`; `media` lists the kinds that were muted before.
public struct ParticipantHardUnmuted: EventData {
    public static let event = "participant.hardUnmuted"
    public var participant: ParticipantID
    public var media: [StreamKind]
    public var by: ParticipantID?

    public init(participant: ParticipantID, media: [StreamKind], by: ParticipantID?) {
        self.participant = participant
        self.media = media
        self.by = by
    }
}

/// `moderator.transferred`.
public struct ModeratorTransferred: EventData {
    public static let event = "moderator.transferred"
    /// The former moderator, now a participant.
    public var from: ParticipantID
    /// The new moderator.
    public var to: ParticipantID

    public init(from: ParticipantID, to: ParticipantID) {
        self.from = from
        self.to = to
    }
}

/// `pins.changed`: all pinned participants, in pin order.
public struct PinsChanged: EventData {
    public static let event = "pins.changed"
    public var pins: [ParticipantID]
    public var by: ParticipantID?

    public init(pins: [ParticipantID], by: ParticipantID?) {
        self.pins = pins
        self.by = by
    }
}
