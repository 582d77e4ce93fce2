extension Room {
    mutating func join(
        _ call: Join,
        _ transaction: inout RoomTransaction
    ) throws(CallError) -> Result {
        let before = moderation.vocabulary
        try recordVocabulary(call.vocabulary)
        do throws(CallError) {
            return try enterOrTakeOver(call, &transaction)
        } catch {
            moderation.vocabulary = before
            throw error
        }
    }

    private mutating func enterOrTakeOver(
        _ call: Join,
        _ transaction: inout RoomTransaction
    ) throws(CallError) -> Result {
        if let present = participants[call.participant] {
            guard !call.refusesTakeover else {
                throw .alreadyExists(participant: present.id)
            }
            return takeOver(present, call, &transaction)
        }
        return try enter(call, &transaction)
    }

    private mutating func enter(
        _ call: Join,
        _ transaction: inout RoomTransaction
    ) throws(CallError) -> Result {
        let role = call.role ?? Role.participantName
        guard settings.role(named: role) != nil else { throw .roleInvalid(role) }
        let isModerator = role == Role.moderatorName
        try checkHasNotEnded()
        guard !locked || isModerator && moderation.formerModerators.contains(call.participant)
        else { throw .roomLocked(name) }
        if state == .created, !isModerator {
            throw .eventNotOpen
        }
        let daemonLimit = transaction.shared.limits.participantsPerRoom
        let limit = min(settings.maxParticipants ?? daemonLimit, daemonLimit)
        guard participants.count < limit else {
            throw .limitReached(
                limit == daemonLimit ? "participantsPerRoom" : "maxParticipants",
                limit
            )
        }
        try transaction.shared.memory.refuseMore()
        try transaction.shared.load.admit(at: transaction.shared.now)
        let participant = Participant(
            id: call.participant,
            birth: lifecycle.nextBirth(),
            name: call.name.applied(to: nil),
            role: role,
            mode: call.mode ?? .sendAndReceive,
            hardMuted: moderation.takeMutes(of: call.participant),
            admitted: !settings.knock || isModerator,
            connection: .none,
            joined: transaction.shared.unixTime,
            session: Session(began: transaction.shared.now),
            node: call.node
        )
        participants[participant.id] = participant
        if participant.admitted {
            transaction.announce(.joined(participant, again: false), to: .everyone)
        } else {
            transaction.announce(.awaited(participant), to: concerned(participant.id))
        }
        return participant.admitted ? .joined : .awaited
    }

    /// Treats a second join as a reconnect: the participant's role and other state stay.
    ///
    /// Another mode than before is a change of mode, with all that follows from one.
    private mutating func takeOver(
        _ present: Participant,
        _ call: Join,
        _ transaction: inout RoomTransaction
    ) -> Result {
        let result = present.admitted ? Result.joined : .awaited
        for transport in present.transports {
            end(
                transport: transport.name,
                of: present.id,
                EndReason.takeover,
                &transaction
            )
        }
        guard var participant = participants[present.id] else { return result }
        participant.name = call.name.applied(to: participant.name)
        participant.connection = .none
        participant.mode = call.mode ?? participant.mode
        participant.node = call.node
        participant.move = nil
        participants[participant.id] = participant
        moderation.hosts.expect(participant.id, at: transaction.shared.now)
        reconcile(publisher: participant.id, ending: EndReason.takeover, &transaction)
        // For the signalling server alone: it knows which of its clients is the former one, and
        // nobody else sees the participant leave.
        transaction.announce(.left(participant, reason: EndReason.replaced), to: .only([]))
        if participant.admitted {
            transaction.announce(.joined(participant, again: true), to: .everyone)
        }
        if participant.mode != present.mode {
            noteMode(of: participant, from: present.mode, by: nil, &transaction)
        }
        return result
    }

    /// Changes the name of a participant; its transports stay untouched.
    mutating func update(
        participant id: String,
        name: Setting<String>,
        by actor: String?,
        _ transaction: inout RoomTransaction
    ) throws(CallError) {
        if let actor, actor != id {
            try check(
                actor,
                may: .update,
                orElse: .notPermitted("changing another participant needs the permission update")
            )
        }
        var participant = try participant(id)
        participant.name = name.applied(to: participant.name)
        participants[id] = participant
        transaction.announce(.participantChanged(participant), to: audience(of: participant))
    }

    mutating func leave(_ id: String, _ transaction: inout RoomTransaction) throws(CallError) {
        let participant = try participant(id)
        transaction.isFenced = true
        remove(id, EndReason.left, &transaction)
        transaction.announce(
            .left(participant, reason: EndReason.left),
            to: audience(of: participant)
        )
        reconcileHosts(&transaction)
    }

    /// Ids of the admitted moderators, in join order.
    var moderators: [String] { participants.markedNames }
}
