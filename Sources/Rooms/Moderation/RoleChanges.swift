import RTP

// Role changes, at once or by request, and the transfer of the moderator role.

extension Room {
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
                number: lifecycle.nextBirth(),
                requester: actor,
                target: id,
                role: role,
                expires: transaction.shared.unixTime + Double(settings.roleRequestSeconds),
                due: transaction.shared.now.advanced(
                    milliseconds: 1_000 * Int64(settings.roleRequestSeconds)
                )
            )
            endRoleRequest(to: id, .replaced, &transaction)
            moderation.roleRequests[id] = request
            let audience = [id] + [actor].compactMap(\.self).filter { $0 != id }
            transaction.announce(.roleRequested(request), to: .only(audience))
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
        let open = openRoleRequest(of: id, at: transaction.shared.now)
        guard let open, open.id == request else {
            throw .noSuchRequest(request, to: id)
        }
        moderation.roleRequests[id] = nil
        transaction.isFenced = accept
        if accept {
            // The one who asked changes the role, and causes what follows; the other only agrees.
            transaction.actor = open.requester
            give(open.role, to: [id], by: open.requester, &transaction)
        } else {
            let requester = [open.requester].compactMap(\.self).filter { $0 != id }
            let audience = requester + [id]
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
            throw .invalidRole(source)
        }
        guard sources?.contains(role) != true else {
            throw .roleClash
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
        let old = try caller(actor)
        guard old.role == Role.moderatorName, old.admitted else {
            throw .notModerator(actor)
        }
        guard let new = participants[id] else { throw .noSuchTarget(id) }
        guard id != actor else { throw .transferToSelf(id) }
        guard new.role != Role.moderatorName else { throw .alreadyModerator(id) }
        guard new.admitted else { throw .awaitsApproval(5045, id) }
        guard settings.role(named: Role.participantName) != nil else {
            throw .roleInvalid(Role.participantName)
        }
        transaction.isFenced = true
        transaction.announce(.transferred(from: actor, to: id), to: .only([actor, id]))
        // The exemption from the room's mute is one of the rights that move.
        if moderation.mute?.caller == actor { moderation.mute?.caller = id }
        assign(Role.moderatorName, to: id, by: actor, &transaction)
        assign(Role.participantName, to: actor, by: actor, &transaction)
        apply(rolesOf: [id, actor], &transaction)
    }

    private func checkMayChangeRoles(_ actor: String?) throws(CallError) {
        if let actor, participants[actor] == nil { throw .peerLeft(actor).asCaller }
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
        for id in ids { assign(role, to: id, by: actor, &transaction) }
        apply(rolesOf: ids, &transaction)
    }

    /// Changes a role without applying its rights.
    private mutating func assign(
        _ role: String,
        to id: String,
        by actor: String?,
        _ transaction: inout RoomTransaction
    ) {
        guard var participant = participants[id], participant.role != role else { return }
        let old = participant.role
        participant.role = role
        participants[id] = participant
        transaction.announce(
            .roleChanged(participant, from: old, by: actor),
            to: audience(of: participant)
        )
        endRoleRequest(to: id, .roleChanged, &transaction)
        guard role == Role.moderatorName else { return }
        freeFloor(of: id, &transaction)
        admit(moderator: id, by: actor, &transaction)
    }

    /// Applies the rights of roles that have changed, of all at once.
    private mutating func apply(rolesOf ids: [String], _ transaction: inout RoomTransaction) {
        reviewRoleRequests(by: ids, &transaction)
        reconcile(rolesOf: ids, &transaction)
    }

    /// Applies the rights of new roles: first to publishers, then to subscriptions.
    mutating func reconcile(rolesOf ids: [String], _ transaction: inout RoomTransaction) {
        guard !ids.isEmpty else { return }
        reconcile(publishers: ids, ending: EndReason.role, &transaction)
        // A speaker's new role may let any follower watch it.
        speakers.followers.noteAll()
        for id in ids { review(subscriptionsTouching: id, &transaction) }
    }

    /// Admits a moderator that still awaits approval, unless the room is locked to it.
    mutating func admit(
        moderator id: String,
        by actor: String?,
        _ transaction: inout RoomTransaction
    ) {
        guard var participant = participants[id], !participant.admitted,
            !locked || moderation.formerModerators.contains(id)
        else { return }
        participant.admitted = true
        participants[id] = participant
        transaction.announce(.approved(participant, by: actor), to: concerned(id, actor))
        transaction.announce(.joined(participant, again: false), to: .everyone)
    }
}
