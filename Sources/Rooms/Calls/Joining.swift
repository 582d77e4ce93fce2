extension Room {
    mutating func join(_ call: Join, _ shared: inout Shared) throws(CallError) -> Outcome {
        let before = vocabulary
        try recordVocabulary(call.vocabulary)
        do throws(CallError) {
            return try enterOrTakeOver(call, &shared)
        } catch {
            vocabulary = before
            throw error
        }
    }

    private mutating func enterOrTakeOver(
        _ call: Join,
        _ shared: inout Shared
    ) throws(CallError) -> Outcome {
        if let present = participants[call.participant] {
            return takeOver(present, call, &shared)
        }
        return try enter(call, &shared)
    }

    private mutating func enter(_ call: Join, _ shared: inout Shared) throws(CallError) -> Outcome {
        let role = call.role ?? Role.participantName
        guard settings.role(named: role) != nil else { throw .roleInvalid(role) }
        let isModerator = role == Role.moderatorName
        guard state != .ended else { throw .wrongState("the live event has ended") }
        guard !locked || isModerator else { throw .roomLocked(name) }
        if state == .created, !isModerator {
            throw .wrongState("the live event is not ready: only its hosts may enter")
        }
        let daemonLimit = shared.limits.participantsPerRoom
        let limit = min(settings.maxParticipants ?? daemonLimit, daemonLimit)
        guard participants.count < limit else {
            throw .limitReached(
                limit == daemonLimit ? "participantsPerRoom" : "maxParticipants",
                limit
            )
        }
        try shared.memory.refuseMore()
        try shared.load.admit(at: shared.now)
        let participant = Participant(
            id: call.participant,
            birth: nextBirth(),
            name: call.name,
            role: role,
            mode: call.mode ?? .sendAndReceive,
            admitted: !settings.knock || isModerator,
            connection: .none,
            joined: shared.unixTime
        )
        let others = participants.listedNames
        participants[participant.id] = participant
        var outcome = Outcome(result: participant.admitted ? .joined : .awaited)
        if participant.admitted {
            outcome.change.announce(.joined(participant, again: false), to: .only(others))
        } else {
            outcome.change.announce(.awaited(participant), to: .only(moderators))
        }
        return outcome
    }

    /// Treats a second join as a reconnect: the participant's role and other state stay.
    private mutating func takeOver(
        _ present: Participant,
        _ call: Join,
        _ shared: inout Shared
    ) -> Outcome {
        var outcome = Outcome(result: present.admitted ? .joined : .awaited)
        for transport in present.transports {
            end(
                transport: transport.name,
                of: present.id,
                EndReason.takeover,
                &outcome.change
            )
        }
        guard var participant = participants[present.id] else { return outcome }
        participant.name = call.name ?? participant.name
        participant.connection = .none
        participant.mode = call.mode ?? participant.mode
        participants[participant.id] = participant
        if participant.admitted {
            outcome.change.announce(
                .joined(participant, again: true),
                to: .only(participants.listedNames.filter { $0 != participant.id })
            )
        }
        reconcile(publisher: participant.id, ending: EndReason.takeover, &shared, &outcome.change)
        return outcome
    }

    mutating func leave(_ id: String, _ shared: inout Shared) throws(CallError) -> Outcome {
        let participant = try participant(id)
        var outcome = Outcome(isFenced: true)
        remove(id, EndReason.left, &outcome.change)
        reconcileHosts(&shared, &outcome.change)
        outcome.change.announce(
            .left(participant, reason: EndReason.left),
            to: participant.admitted ? .everyone : .only(moderators)
        )
        return outcome
    }

    /// Ids of the admitted moderators, in join order.
    var moderators: [String] {
        members.filter { $0.role == Role.moderatorName }.map(\.id)
    }
}
