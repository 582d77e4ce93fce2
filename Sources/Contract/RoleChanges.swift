/// Id of a request to change role, assigned by sfud.
public typealias RoleRequestID = Identifier<RoleChange>

/// Changes a participant's role, at once or by a request that the participant may accept.
public enum RoleChange: IPCMethod {
    public static let name = "role.change"

    public struct Params: Codable, Hashable, Sendable {
        public var room: RoomID
        public var participant: ParticipantID
        public var role: RoleName
        /// Whether the change takes place without a request; `false` by default.
        public var force: Bool?
        public var by: ParticipantID?

        public init(
            room: RoomID,
            participant: ParticipantID,
            role: RoleName,
            force: Bool? = nil,
            by: ParticipantID? = nil
        ) {
            self.room = room
            self.participant = participant
            self.role = role
            self.force = force
            self.by = by
        }
    }

    public struct Result: Codable, Hashable, Sendable {
        /// Absent if the role changed without a request.
        public var request: RoleRequestID?
        public var fence: Fence?
        /// `false` if the change is not in the room's journal yet.
        ///
        /// It is lost if the node is lost before the registry is back. Absent otherwise, and
        /// without a cluster.
        public var durable: Bool?

        public init(request: RoleRequestID? = nil, fence: Fence? = nil) {
            self.request = request
            self.fence = fence
        }
    }
}

/// Params of the answers to a role request.
public struct RoleAnswer: Codable, Hashable, Sendable {
    public var room: RoomID
    public var participant: ParticipantID
    public var request: RoleRequestID

    public init(room: RoomID, participant: ParticipantID, request: RoleRequestID) {
        self.room = room
        self.participant = participant
        self.request = request
    }
}

/// Accepts a request to change role; its target calls this.
public enum RoleAccept: IPCMethod {
    public static let name = "role.accept"
    public typealias Params = RoleAnswer
    public typealias Result = Done
}

/// Declines a request to change role; its target calls this.
public enum RoleDecline: IPCMethod {
    public static let name = "role.decline"
    public typealias Params = RoleAnswer
    public typealias Result = Done
}

/// Changes the role of everybody, or of the participants with certain roles, at once.
public enum RoleChangeAll: IPCMethod {
    public static let name = "role.changeAll"
    public typealias Result = Done

    public struct Params: Codable, Hashable, Sendable {
        public var room: RoomID
        public var role: RoleName
        /// Roles to change; `nil` for all but `protectedRoles`.
        public var from: [RoleName]?
        public var by: ParticipantID?

        public init(
            room: RoomID,
            role: RoleName,
            from: [RoleName]? = nil,
            by: ParticipantID? = nil
        ) {
            self.room = room
            self.role = role
            self.from = from
            self.by = by
        }

        public init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            room = try container.decode(RoomID.self, forKey: .room)
            role = try container.decode(RoleName.self, forKey: .role)
            if try !container.isAbsent(.from) {
                from = try container.list(.from, 0...Role.countLimit)
            }
            by = try container.decodeIfPresent(ParticipantID.self, forKey: .by)
        }
    }
}

/// `role.changeRequested`: a participant is asked to take a role.
public struct RoleChangeRequested: EventData {
    public static let event = "role.changeRequested"
    public var request: RoleRequestID
    public var participant: ParticipantID
    public var role: RoleName
    public var by: ParticipantID?
    /// Unix time, in seconds.
    public var expires: Double

    public init(
        request: RoleRequestID,
        participant: ParticipantID,
        role: RoleName,
        by: ParticipantID?,
        expires: Double
    ) {
        self.request = request
        self.participant = participant
        self.role = role
        self.by = by
        self.expires = expires
    }
}

/// `role.changeDeclined`.
public struct RoleChangeDeclined: EventData {
    public static let event = "role.changeDeclined"
    public var request: RoleRequestID
    public var participant: ParticipantID
    public var role: RoleName
    public var by: ParticipantID?

    public init(
        request: RoleRequestID,
        participant: ParticipantID,
        role: RoleName,
        by: ParticipantID? = nil
    ) {
        self.request = request
        self.participant = participant
        self.role = role
        self.by = by
    }
}

/// `participant.roleChanged`.
public struct ParticipantRoleChanged: EventData {
    public static let event = "participant.roleChanged"
    public var participant: ParticipantID
    /// The role now.
    public var role: RoleName
    /// The role before, and again the one now.
    public var previous: RoleName
    public var current: RoleName
    public var by: ParticipantID?

    public init(
        participant: ParticipantID,
        previous: RoleName,
        current: RoleName,
        by: ParticipantID?
    ) {
        self.participant = participant
        role = current
        self.previous = previous
        self.current = current
        self.by = by
    }
}
