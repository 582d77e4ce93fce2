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
    /// Node to which the participant's client connects; absent without a cluster.
    public var node: String?
    public var custom: JSON
    /// Unix time of the join, in seconds.
    public var joined: Double

    public init(
        participant: ParticipantID,
        name: String,
        role: String,
        mode: ParticipantMode,
        state: JoinState,
        hardMuted: [StreamKind] = [],
        connection: ConnectionState = .none,
        node: String? = nil,
        custom: JSON = [:],
        joined: Double = 0
    ) {
        self.participant = participant
        self.name = name
        self.role = role
        self.mode = mode
        self.state = state
        self.hardMuted = hardMuted
        self.connection = connection
        self.node = node
        self.custom = custom
        self.joined = joined
    }
}

/// Adds a participant, or takes over the one with that id.
public enum ParticipantJoin: IPCMethod {
    public static let name = "participant.join"

    public struct Params: Codable, Hashable, Sendable {
        public var room: RoomID
        public var participant: ParticipantID
        public var name: Change<ShortText>
        /// `participant` by default.
        public var role: RoleName?
        /// `SEND_AND_RECV` by default.
        public var mode: RequestedMode?
        public var custom: Change<CustomItems>
        /// `takeover` by default.
        public var ifPresent: IfPresent?
        /// Whether the result has the room's lists; `true` by default.
        public var snapshot: Bool?

        public init(
            room: RoomID,
            participant: ParticipantID,
            name: Change<ShortText> = .keep,
            role: RoleName? = nil,
            mode: ParticipantMode? = nil,
            custom: Change<CustomItems> = .keep,
            ifPresent: IfPresent? = nil,
            snapshot: Bool? = nil
        ) {
            self.room = room
            self.participant = participant
            self.name = name
            self.role = role
            self.mode = mode.map(RequestedMode.init)
            self.custom = custom
            self.ifPresent = ifPresent
            self.snapshot = snapshot
        }
    }

    /// Effect of a join under an id that is in the room.
    public enum IfPresent: String, Codable, Hashable, Sendable, CaseIterable {
        /// The participant is taken over, as after a reconnect.
        case takeover
        /// The call is refused with 4009.
        case refuse
    }

    public struct Result: Codable, Hashable, Sendable {
        public var state: JoinState
        public var room: RoomID
        public var participant: ParticipantID
        /// Node to which the participant's client connects; absent without a cluster.
        public var node: String?
        public var participantInfo: ParticipantInfo
        public var roomInfo: RoomInfo
        /// Open request to the participant to take a role, made before a reconnect.
        public var roleRequest: RoleRequestInfo?
        /// `false` if the change is not in the room's journal yet.
        ///
        /// It is lost if the node is lost before the registry is back. Absent otherwise, and
        /// without a cluster.
        public var durable: Bool?

        public init(
            state: JoinState,
            participantInfo: ParticipantInfo,
            roomInfo: RoomInfo,
            roleRequest: RoleRequestInfo? = nil
        ) {
            self.state = state
            room = roomInfo.room
            node = roomInfo.node
            participant = participantInfo.participant
            self.participantInfo = participantInfo
            self.roomInfo = roomInfo
            self.roleRequest = roleRequest
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

/// Returns a participant.
public enum ParticipantGet: IPCMethod {
    public static let name = "participant.get"
    public typealias Params = ParticipantOnly
    public typealias Result = ParticipantInfo
}

/// Returns a room's participants in the order of their joins, those who wait to be let in last.
public enum ParticipantList: IPCMethod {
    public static let name = "participant.list"

    public struct Params: PagedParams {
        public var room: RoomID
        /// Role of the participants to list; `nil` for all.
        public var role: RoleName?
        /// State of the participants to list; `nil` for both.
        public var state: JoinState?
        public var limit: PageLimit?
        public var after: PageCursor?

        public init(
            room: RoomID,
            role: RoleName? = nil,
            state: JoinState? = nil,
            limit: PageLimit? = nil,
            after: PageCursor? = nil
        ) {
            self.room = room
            self.role = role
            self.state = state
            self.limit = limit
            self.after = after
        }
    }

    public struct Result: PagedResult {
        public var participants: [ParticipantInfo]
        public var next: PageCursor?

        public init(participants: [ParticipantInfo], next: PageCursor? = nil) {
            self.participants = participants
            self.next = next
        }

        public var page: [ParticipantInfo] { participants }
    }
}

/// Changes a participant's name or custom data; its transports stay untouched.
public enum ParticipantUpdate: IPCMethod {
    public static let name = "participant.update"

    public struct Params: Codable, Hashable, Sendable {
        public var room: RoomID
        public var participant: ParticipantID
        public var name: Change<ShortText>
        public var custom: Change<CustomItems>
        public var by: ParticipantID?

        public init(
            room: RoomID,
            participant: ParticipantID,
            name: Change<ShortText> = .keep,
            custom: Change<CustomItems> = .keep,
            by: ParticipantID? = nil
        ) {
            self.room = room
            self.participant = participant
            self.name = name
            self.custom = custom
            self.by = by
        }
    }

    public struct Result: Codable, Hashable, Sendable {
        public var participantInfo: ParticipantInfo
        /// `false` if the change is not in the room's journal yet.
        ///
        /// It is lost if the node is lost before the registry is back. Absent otherwise, and
        /// without a cluster.
        public var durable: Bool?

        public init(participantInfo: ParticipantInfo) { self.participantInfo = participantInfo }
    }
}

/// `participant.changed`: a name or custom data changed.
public struct ParticipantChanged: EventData {
    public static let event = "participant.changed"
    public var participant: ParticipantID
    public var participantInfo: ParticipantInfo
    public var by: ParticipantID?

    public init(_ participantInfo: ParticipantInfo, by: ParticipantID? = nil) {
        participant = participantInfo.participant
        self.participantInfo = participantInfo
        self.by = by
    }
}
