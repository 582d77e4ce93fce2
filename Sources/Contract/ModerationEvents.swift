public import JSON

/// `room.stateChanged`.
public struct RoomStateChanged: EventData {
    public static let event = "room.stateChanged"
    /// The state now.
    public var state: RoomState
    /// The state before, and again the one now.
    public var previous: RoomState
    public var current: RoomState
    public var by: ParticipantID?

    public init(previous: RoomState, current: RoomState, by: ParticipantID?) {
        state = current
        self.previous = previous
        self.current = current
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
    public var participant: ParticipantID
    public var participantInfo: ParticipantInfo
    /// The room without its lists; absent if it is longer than 4 KiB, and `room.get` has it.
    public var roomInfo: RoomInfo?
    public var by: ParticipantID?

    public init(
        _ participantInfo: ParticipantInfo,
        roomInfo: RoomInfo? = nil,
        by: ParticipantID?
    ) {
        participant = participantInfo.participant
        self.participantInfo = participantInfo
        self.roomInfo = roomInfo
        self.by = by
    }
}

/// `participant.denied`: a waiting participant was turned away.
public struct ParticipantDenied: EventData {
    public static let event = "participant.denied"
    public var participant: ParticipantID
    /// Free text of the caller.
    public var detail: ShortText?
    public var by: ParticipantID?

    public init(participant: ParticipantID, detail: ShortText?, by: ParticipantID?) {
        self.participant = participant
        self.detail = detail
        self.by = by
    }
}

/// `participant.modeChanged`.
public struct ParticipantModeChanged: EventData {
    public static let event = "participant.modeChanged"
    public var participant: ParticipantID
    /// The mode now.
    public var mode: ParticipantMode
    /// The mode before, and again the one now.
    public var previous: ParticipantMode
    public var current: ParticipantMode
    public var by: ParticipantID?

    public init(
        participant: ParticipantID,
        previous: ParticipantMode,
        current: ParticipantMode,
        by: ParticipantID?
    ) {
        self.participant = participant
        mode = current
        self.previous = previous
        self.current = current
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
    public var previous: ParticipantID
    /// The new moderator.
    public var current: ParticipantID
    public var by: ParticipantID?

    public init(previous: ParticipantID, current: ParticipantID, by: ParticipantID?) {
        self.previous = previous
        self.current = current
        self.by = by
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
