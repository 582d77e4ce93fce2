/// Params of methods that a participant calls for itself.
public struct ParticipantOnly: Codable, Hashable, Sendable {
    public var room: RoomID
    public var participant: ParticipantID

    public init(room: RoomID, participant: ParticipantID) {
        self.room = room
        self.participant = participant
    }
}

/// Asks for the floor of a lecture.
public enum FloorRequest: IPCMethod {
    public static let name = "floor.request"
    public typealias Params = ParticipantOnly
    public typealias Result = Done
}

/// Withdraws a request for the floor.
public enum FloorCancel: IPCMethod {
    public static let name = "floor.cancel"
    public typealias Params = ParticipantOnly
    public typealias Result = Done
}

/// Gives the floor back.
public enum FloorFinish: IPCMethod {
    public static let name = "floor.finish"
    public typealias Params = ParticipantOnly
    public typealias Result = Done
}

/// Gives the floor to a participant who asked for it.
public enum FloorGrant: IPCMethod {
    public static let name = "floor.grant"
    public typealias Params = ParticipantByParticipant
    public typealias Result = Done
}

/// Refuses a request for the floor.
public enum FloorDeny: IPCMethod {
    public static let name = "floor.deny"
    public typealias Params = ParticipantByParticipant
    public typealias Result = Done
}

/// Takes the floor from its holder.
public enum FloorRelease: IPCMethod {
    public static let name = "floor.release"
    public typealias Params = ParticipantByParticipant
    public typealias Result = Done
}

/// Common initializer of the `floor.…` events.
public protocol FloorEvent: EventData {
    init(participant: ParticipantID, name: String, by: ParticipantID?)
}

/// `floor.requested`.
public struct FloorRequested: FloorEvent {
    public static let event = "floor.requested"
    public var participant: ParticipantID
    public var name: String
    public var by: ParticipantID?

    public init(participant: ParticipantID, name: String, by: ParticipantID?) {
        self.participant = participant
        self.name = name
        self.by = by
    }
}

/// `floor.cancelled`; also sent when a participant who had asked leaves.
public struct FloorCancelled: FloorEvent {
    public static let event = "floor.cancelled"
    public var participant: ParticipantID
    public var name: String
    public var by: ParticipantID?

    public init(participant: ParticipantID, name: String, by: ParticipantID?) {
        self.participant = participant
        self.name = name
        self.by = by
    }
}

/// `floor.finished`; also sent when the holder leaves.
public struct FloorFinished: FloorEvent {
    public static let event = "floor.finished"
    public var participant: ParticipantID
    public var name: String
    public var by: ParticipantID?

    public init(participant: ParticipantID, name: String, by: ParticipantID?) {
        self.participant = participant
        self.name = name
        self.by = by
    }
}

/// `floor.granted`.
public struct FloorGranted: FloorEvent {
    public static let event = "floor.granted"
    public var participant: ParticipantID
    public var name: String
    public var by: ParticipantID?
    public var code: Int

    public init(participant: ParticipantID, name: String, by: ParticipantID?) {
        self.participant = participant
        self.name = name
        self.by = by
        code = 1708
    }
}

/// `floor.denied`.
public struct FloorDenied: FloorEvent {
    public static let event = "floor.denied"
    public var participant: ParticipantID
    public var name: String
    public var by: ParticipantID?
    public var code: Int

    public init(participant: ParticipantID, name: String, by: ParticipantID?) {
        self.participant = participant
        self.name = name
        self.by = by
        code = 4117
    }
}

/// `floor.released`.
public struct FloorReleased: FloorEvent {
    public static let event = "floor.released"
    public var participant: ParticipantID
    public var name: String
    public var by: ParticipantID?
    public var code: Int

    public init(participant: ParticipantID, name: String, by: ParticipantID?) {
        self.participant = participant
        self.name = name
        self.by = by
        code = 1712
    }
}
