public import JSON

/// Media that a participant may send and receive at all.
public enum ParticipantMode: String, Codable, Hashable, Sendable, CaseIterable {
    case sendAndReceive = "SEND_AND_RECV"
    case signallingOnly = "SIGNALLING_ONLY"
    case receiveOnly = "RECV_ONLY"
}

/// A mode in a call, by its current name or by an older one.
public struct RequestedMode: Codable, Hashable, Sendable {
    public var mode: ParticipantMode
    /// Whether an old name was used, `CONFERENCE` or `VIEWER`; see `strictModeVocabulary`.
    public var isOldName: Bool

    public init(_ mode: ParticipantMode) {
        self.mode = mode
        isOldName = false
    }

    public init(from decoder: any Decoder) throws {
        let name = try decoder.singleValueContainer().decode(String.self)
        isOldName = name == "CONFERENCE" || name == "VIEWER"
        switch name {
        case "CONFERENCE": mode = .sendAndReceive
        case "VIEWER": mode = .signallingOnly
        default:
            guard let mode = ParticipantMode(rawValue: name) else {
                throw decoder.refusal("must be SEND_AND_RECV, SIGNALLING_ONLY or RECV_ONLY")
            }
            self.mode = mode
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch (isOldName, mode) {
        case (true, .sendAndReceive): try container.encode("CONFERENCE")
        case (true, .signallingOnly): try container.encode("VIEWER")
        default: try container.encode(mode)
        }
    }
}

/// Whether a participant has joined or waits to be let in.
public enum JoinState: String, Codable, Hashable, Sendable, CaseIterable { case joined, awaited }

/// State of a participant's connection.
public enum ConnectionState: String, Codable, Hashable, Sendable, CaseIterable {
    /// No transport exists.
    case none
    /// A transport waits for ICE and DTLS.
    case connecting
    case connected
    case reconnecting
    case disconnected
}

/// A participant as results and events describe it.
public struct ParticipantInfo: Codable, Hashable, Sendable {
    public var participant: ParticipantID
    public var name: String
    public var role: String
    public var mode: ParticipantMode
    public var state: JoinState
    /// Kinds of media that a moderator has muted.
    public var hardMuted: [StreamKind]
    public var connection: ConnectionState
    public var custom: JSON

    public init(
        participant: ParticipantID,
        name: String,
        role: String,
        mode: ParticipantMode,
        state: JoinState,
        hardMuted: [StreamKind] = [],
        connection: ConnectionState = .none,
        custom: JSON = [:]
    ) {
        self.participant = participant
        self.name = name
        self.role = role
        self.mode = mode
        self.state = state
        self.hardMuted = hardMuted
        self.connection = connection
        self.custom = custom
    }
}

/// A participant who waits to be let in.
public struct AwaitedParticipant: Codable, Hashable, Sendable {
    public var participant: ParticipantID
    public var name: String

    public init(participant: ParticipantID, name: String) {
        self.participant = participant
        self.name = name
    }
}

/// Adds a participant, or takes over the one with that id.
public enum ParticipantJoin: IPCMethod {
    public static let name = "participant.join"

    public struct Params: Codable, Hashable, Sendable {
        public var room: RoomID
        public var participant: ParticipantID
        public var name: ShortText?
        /// `participant` by default.
        public var role: RoleName?
        /// `SEND_AND_RECV` by default.
        public var mode: RequestedMode?
        public var custom: CustomItems?

        public init(
            room: RoomID,
            participant: ParticipantID,
            name: ShortText? = nil,
            role: RoleName? = nil,
            mode: ParticipantMode? = nil,
            custom: CustomItems? = nil
        ) {
            self.room = room
            self.participant = participant
            self.name = name
            self.role = role
            self.mode = mode.map(RequestedMode.init)
            self.custom = custom
        }
    }

    public struct Result: Codable, Hashable, Sendable {
        public var state: JoinState
        public var room: RoomInfo

        public init(state: JoinState, room: RoomInfo) {
            self.state = state
            self.room = room
        }
    }
}

/// Removes a participant that leaves.
public enum ParticipantLeave: IPCMethod {
    public static let name = "participant.leave"
    public typealias Result = Done

    public struct Params: Codable, Hashable, Sendable {
        public var room: RoomID
        public var participant: ParticipantID

        public init(room: RoomID, participant: ParticipantID) {
            self.room = room
            self.participant = participant
        }
    }
}
