// Role changes, at once or by request, and the transfer of the moderator role.

extension Room {
    /// Pending request to a participant to take a role.
    package struct RoleRequest: Hashable, Sendable {
        package let id: String
        /// Participant that asked; `nil` for the signalling server itself.
        package let requester: String?
        package let target: String
        package let role: String
        /// Unix time, in seconds.
        package let expires: Double
    }

    /// Pending role-change requests, one for each participant that is asked.
    struct RoleRequests: Sendable {
        private var byTarget: [String: RoleRequest] = [:]

        subscript(target: String) -> RoleRequest? {
            get { byTarget[target] }
            set { byTarget[target] = newValue }
        }

        /// Removes the requests to and from a participant that has left.
        mutating func forget(_ id: String) {
            byTarget = byTarget.filter { $0.key != id && $0.value.requester != id }
        }

        /// Removes the requests for roles that new settings no longer have.
        mutating func removeRoles(missingFrom settings: Settings) {
            byTarget = byTarget.filter { settings.role(named: $0.value.role) != nil }
        }
    }

    /// Changes a role at once if `force` is set, else asks the participant to accept it.
    mutating func changeRole(
        of id: String,
        to role: String,
        force: Bool,
        by actor: String?,
        _ transaction: inout RoomTransaction
    ) throws(CallError) -> Result {
        try checkMayChangeRoles(actor)
        guard settings.role(named: role) != nil else { throw .roleInvalid(role) }
        guard let participant = participants[id] else { throw .peerLeft(id) }
        transaction.isFenced = force
        guard participant.role != role else { return .none }
        guard force else {
            let request = RoleRequest(
                id: "req-\(lifecycle.nextBirth())",
                requester: actor,
                target: id,
                role: role,
                expires: transaction.shared.unixTime + Double(settings.roleRequestSeconds)
            )
            moderation.roleRequests[id] = request
            transaction.announce(.roleRequested(request), to: .only([id]))
            return .requested(request.id)
        }
        give(role, to: [id], by: actor, &transaction)
        return .none
    }

    /// Accepts or declines a role-change request on behalf of the participant asked.
    mutating func answerRoleRequest(
        _ request: String,
        of id: String,
        accept: Bool,
        _ transaction: inout RoomTransaction
    ) throws(CallError) {
        _ = try participant(id)
        guard let open = moderation.roleRequests[id], open.id == request,
            open.expires > transaction.shared.unixTime
        else {
            throw .wrongState(
                "participant \"\(id)\" has no open request \"\(request)\"",
                reason: "no-such-request"
            )
        }
        moderation.roleRequests[id] = nil
        transaction.isFenced = accept
        if accept {
            give(open.role, to: [id], by: open.requester, &transaction)
        } else {
            let audience = open.requester.map { [$0] } ?? []
            transaction.announce(.roleDeclined(open), to: .only(audience))
        }
    }

    /// Gives a role to all participants that have one of `sources`.
    ///
    /// `nil` means all participants except those with a protected role.
    mutating func changeRoles(
        to role: String,
        from sources: [String]?,
        by actor: String?,
        _ transaction: inout RoomTransaction
    ) throws(CallError) {
        try checkMayChangeRoles(actor)
        guard settings.role(named: role) != nil else { throw .roleInvalid(role) }
        for source in sources ?? [] where settings.role(named: source) == nil {
            throw CallError(
                code: 4044,
                reason: "invalid-role",
                message: "invalid role",
                details: ["role": .text(source)]
            )
        }
        guard sources?.contains(role) != true else {
            throw .wrongState("target role clash with requested roles", reason: "role-clash")
        }
        let chosen = (members + awaited).filter { participant in
            guard let sources else { return !settings.protectedRoles.contains(participant.role) }
            return sources.contains(participant.role)
        }
        transaction.isFenced = true
        let changed = chosen.filter { $0.role != role }.map(\.id)
        give(role, to: changed, by: actor, &transaction)
    }

    /// Transfers the moderator role; the old moderator becomes a participant.
    mutating func transfer(
        to id: String,
        by actor: String,
        _ transaction: inout RoomTransaction
    ) throws(CallError) {
        let old = try participant(actor)
        guard old.role == Role.moderatorName, old.admitted else {
            throw .seed(5085, "only a moderator can hand its role over")
        }
        guard let new = participants[id], new.admitted, id != actor,
            new.role != Role.moderatorName
        else { throw .invalidClient(id) }
        guard settings.role(named: Role.participantName) != nil else {
            throw .roleInvalid(Role.participantName)
        }
        transaction.isFenced = true
        transaction.announce(.transferred(from: actor, to: id), to: .only([actor, id]))
        give(Role.moderatorName, to: [id], by: actor, &transaction)
        give(Role.participantName, to: [actor], by: actor, &transaction)
    }

    private func checkMayChangeRoles(_ actor: String?) throws(CallError) {
        if let actor, participants[actor] == nil { throw .peerLeft(actor) }
        try check(
            actor,
            may: .changeRole,
            orElse: .notPermitted("role does not have required permission")
        )
    }

    /// Changes roles and applies their rights, with one event for each participant.
    private mutating func give(
        _ role: String,
        to ids: [String],
        by actor: String?,
        _ transaction: inout RoomTransaction
    ) {
        for id in ids {
            guard var participant = participants[id], participant.role != role else { continue }
            let old = participant.role
            participant.role = role
            participants[id] = participant
            moderation.roleRequests[id] = nil
            transaction.announce(
                .roleChanged(participant, from: old, by: actor),
                to: audience(of: participant)
            )
            if role == Role.moderatorName {
                freeFloor(of: id, &transaction)
                admit(id, by: actor, &transaction)
            }
        }
        reconcile(rolesOf: ids, &transaction)
    }

    /// Applies the rights of new roles: first to publishers, then to subscriptions.
    mutating func reconcile(rolesOf ids: [String], _ transaction: inout RoomTransaction) {
        reconcile(publishers: ids, ending: EndReason.role, &transaction)
        for id in ids { review(subscriptionsTouching: id, &transaction) }
    }

    /// Admits a new moderator that still awaits approval.
    private mutating func admit(
        _ id: String,
        by actor: String?,
        _ transaction: inout RoomTransaction
    ) {
        guard var participant = participants[id], !participant.admitted else { return }
        let others = members.map(\.id)
        participant.admitted = true
        participants[id] = participant
        let told = moderators.filter { $0 != actor && $0 != id }
        transaction.announce(.approved(participant, by: actor), to: .only([id] + told))
        transaction.announce(.joined(participant, again: false), to: .only(others))
    }
}
