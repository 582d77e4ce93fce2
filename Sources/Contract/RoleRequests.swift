/// A request to a participant to take a role, open until it is answered or expires.
public struct RoleRequestInfo: Codable, Hashable, Sendable {
    public var request: RoleRequestID
    /// The participant who is asked.
    public var participant: ParticipantID
    public var role: RoleName
    /// The participant who asks; absent if it is the signalling server itself.
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

/// Returns a room's open role requests, oldest first.
public enum RoleRequests: IPCMethod {
    public static let name = "role.requests"

    public struct Params: PagedParams {
        public var room: RoomID
        /// The participant who is asked; `nil` for the requests to all.
        public var participant: ParticipantID?
        public var limit: PageLimit?
        public var after: PageCursor?

        public init(
            room: RoomID,
            participant: ParticipantID? = nil,
            limit: PageLimit? = nil,
            after: PageCursor? = nil
        ) {
            self.room = room
            self.participant = participant
            self.limit = limit
            self.after = after
        }
    }

    public struct Result: PagedResult {
        public var requests: [RoleRequestInfo]
        public var next: PageCursor?

        public init(requests: [RoleRequestInfo], next: PageCursor? = nil) {
            self.requests = requests
            self.next = next
        }

        public var page: [RoleRequestInfo] { requests }
    }
}

/// `role.requestExpired`: a role request has ended without an answer.
public struct RoleRequestExpired: EventData {
    public static let event = "role.requestExpired"
    public var request: RoleRequestID
    public var participant: ParticipantID
    public var role: RoleName
    /// `timeout`, `replaced`, `role-changed`, `role-removed`, `not-permitted`, `target-left` or
    /// `requester-left`.
    public var reason: String
    /// The participant who asked; absent if it was the signalling server itself.
    public var requester: ParticipantID?
    /// The participant whose call ended the request; for `timeout`, the one who asked.
    public var by: ParticipantID?

    public init(
        request: RoleRequestID,
        participant: ParticipantID,
        role: RoleName,
        reason: String,
        requester: ParticipantID? = nil,
        by: ParticipantID? = nil
    ) {
        self.request = request
        self.participant = participant
        self.role = role
        self.reason = reason
        self.requester = requester
        self.by = by
    }
}
