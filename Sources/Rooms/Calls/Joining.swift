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
        guard state != .ended else { throw .wrongState("the live event has ended") }
        guard !locked || isModerator else { throw .roomLocked(name) }
        if state == .created, !isModerator {
            throw .wrongState("the live event is not ready: only its hosts may enter")
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
            name: call.name,
            role: role,
            mode: call.mode ?? .sendAndReceive,
            admitted: !settings.knock || isModerator,
            connection: .none,
            joined: transaction.shared.unixTime
        )
        let others = participants.listedNames
        participants[participant.id] = participant
        if participant.admitted {
            transaction.announce(.joined(participant, again: false), to: .only(others))
        } else {
            transaction.announce(.awaited(participant), to: .only(moderators))
        }
        return participant.admitted ? .joined : .awaited
    }

    /// Treats a second join as a reconnect: the participant's role and other state stay.
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
        participant.name = call.name ?? participant.name
        participant.connection = .none
        participant.mode = call.mode ?? participant.mode
        participants[participant.id] = participant
        if participant.admitted {
            transaction.announce(
                .joined(participant, again: true),
                to: .only(participants.listedNames.filter { $0 != participant.id })
            )
        }
        reconcile(publisher: participant.id, ending: EndReason.takeover, &transaction)
        return result
    }

    mutating func leave(_ id: String, _ transaction: inout RoomTransaction) throws(CallError) {
        let participant = try participant(id)
        transaction.isFenced = true
        remove(id, EndReason.left, &transaction)
        reconcileHosts(&transaction)
        transaction.announce(
            .left(participant, reason: EndReason.left),
            to: participant.admitted ? .everyone : .only(moderators)
        )
    }

    /// Ids of the admitted moderators, in join order.
    var moderators: [String] {
        members.filter { $0.role == Role.moderatorName }.map(\.id)
    }
}
