package import RTP

// Requests to take a role, until their answer, their expiry or the end of somebody's stay.

extension Room {
    /// Pending request to a participant to take a role.
    package struct RoleRequest: Hashable, Sendable, Codable {
        /// Number in the room; newer requests have higher ones.
        package let number: UInt64
        /// Participant that asked; `nil` for the signalling server itself.
        package let requester: String?
        package let target: String
        package let role: String
        /// Unix time, in seconds.
        package let expires: Double
        /// The same moment on the workers' monotonic clock.
        let due: Instant

        package var id: String { "req-\(number)" }
    }

    /// Reason word for the end of a role request that was neither accepted nor declined.
    package enum RoleRequestEnd: String, Hashable, Sendable, CaseIterable {
        /// It was not answered in time.
        case timeout
        /// A newer request to the same participant.
        case replaced
        /// The participant got another role meanwhile.
        case roleChanged = "role-changed"
        /// New settings have no such role.
        case roleRemoved = "role-removed"
        /// The requester may no longer change roles.
        case notPermitted = "not-permitted"
        case targetLeft = "target-left"
        case requesterLeft = "requester-left"
    }

    /// Pending role-change requests, one for each participant that is asked.
    struct RoleRequests: Sendable {
        private var byTarget: [String: RoleRequest] = [:]
        /// Targets of the requests of each requester.
        private var targets: [String: Set<String>] = [:]
        /// Earliest expiry; too early if that request is gone, which costs one needless look.
        private(set) var deadline: Instant?
        /// Number of requests that reviews have looked at; for tests.
        var reviewed = 0

        /// All requests, oldest first.
        var inOrder: [RoleRequest] { byTarget.values.sorted { $0.number < $1.number } }

        subscript(target: String) -> RoleRequest? {
            get { byTarget[target] }
            set {
                if let requester = byTarget[target]?.requester {
                    targets[requester]?.remove(target)
                    if targets[requester]?.isEmpty == true { targets[requester] = nil }
                }
                if let requester = newValue?.requester {
                    targets[requester, default: []].insert(target)
                }
                byTarget[target] = newValue
                deadline = [deadline, newValue?.due].compactMap(\.self).min()
            }
        }

        /// Returns the requests of a requester, oldest first.
        func requests(by requester: String) -> [RoleRequest] {
            (targets[requester] ?? []).compactMap { byTarget[$0] }.sorted { $0.number < $1.number }
        }

        /// Removes and returns the requests that were not answered in time, oldest first.
        mutating func takeExpired(at now: Instant) -> [RoleRequest] {
            guard let deadline, deadline <= now else { return [] }
            let expired = inOrder.filter { $0.due <= now }
            for request in expired { self[request.target] = nil }
            self.deadline = byTarget.values.map(\.due).min()
            return expired
        }
    }

}

// Saved as the list of the requests.
extension Room.RoleRequests: Codable {
    init(from decoder: any Decoder) throws {
        self.init()
        let saved = try decoder.singleValueContainer().decode([Room.RoleRequest].self)
        for request in saved { self[request.target] = request }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(inOrder)
    }
}

extension Room {
    /// Returns the requests that can be accepted now, oldest first.
    package func openRoleRequests(at now: Instant) -> [RoleRequest] {
        moderation.roleRequests.inOrder.filter { $0.due > now }
    }

    /// Returns the request that a participant can accept now, if any.
    package func openRoleRequest(of id: String, at now: Instant) -> RoleRequest? {
        moderation.roleRequests[id].flatMap { $0.due > now ? $0 : nil }
    }

    /// Ends the requests that were not answered in time, and tells the two of each.
    mutating func expireRoleRequests(_ transaction: inout RoomTransaction) {
        for request in moderation.roleRequests.takeExpired(at: transaction.shared.now) {
            announce(request, ended: .timeout, &transaction)
        }
    }

    /// Ends the request to a participant, if there is one.
    mutating func endRoleRequest(
        to id: String,
        _ end: RoleRequestEnd,
        _ transaction: inout RoomTransaction
    ) {
        guard let request = moderation.roleRequests[id] else { return }
        moderation.roleRequests[id] = nil
        announce(request, ended: end, &transaction)
    }

    /// Ends the requests to and from a participant that has left.
    mutating func endRoleRequests(ofLeaving id: String, _ transaction: inout RoomTransaction) {
        endRoleRequest(to: id, .targetLeft, &transaction)
        for request in moderation.roleRequests.requests(by: id) {
            endRoleRequest(to: request.target, .requesterLeft, &transaction)
        }
    }

    /// Ends the requests that new settings do not allow.
    mutating func reviewRoleRequests(_ transaction: inout RoomTransaction) {
        review(moderation.roleRequests.inOrder, &transaction)
    }

    /// Ends the requests of participants whose new roles do not allow them.
    ///
    /// A role has no effect on the requests of others; those to its holder have ended already.
    mutating func reviewRoleRequests(by ids: [String], _ transaction: inout RoomTransaction) {
        let requests = ids.flatMap { moderation.roleRequests.requests(by: $0) }
        review(requests.sorted { $0.number < $1.number }, &transaction)
    }

    /// Ends those of the requests that roles and settings do not allow.
    ///
    /// A request is never stronger than the right of its requester.
    private mutating func review(
        _ requests: [RoleRequest],
        _ transaction: inout RoomTransaction
    ) {
        moderation.roleRequests.reviewed += requests.count
        for request in requests {
            if settings.role(named: request.role) == nil {
                endRoleRequest(to: request.target, .roleRemoved, &transaction)
            } else if let requester = request.requester.flatMap({ participants[$0] }),
                !role(of: requester).permissions.contains(Permission.changeRole.rawValue)
            {
                endRoleRequest(to: request.target, .notPermitted, &transaction)
            }
        }
    }

    /// Tells the two of a request that it has ended, as far as they are in the room.
    ///
    /// The call that ended a request caused the event; for one that was not answered in time, the
    /// call that made it.
    private func announce(
        _ request: RoleRequest,
        ended end: RoleRequestEnd,
        _ transaction: inout RoomTransaction
    ) {
        let isLate = request.due <= transaction.shared.now
        let requester = request.requester.map { $0 == request.target ? [] : [$0] } ?? []
        let audience = ([request.target] + requester).filter { participants[$0] != nil }
        transaction.announce(
            .roleExpired(request, isLate ? .timeout : end),
            to: .only(audience),
            by: isLate ? request.requester : transaction.actor
        )
    }
}
