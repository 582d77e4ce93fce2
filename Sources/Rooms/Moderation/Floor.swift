// Floor control of lectures: one participant holds the floor; others request it and wait.

extension Room {
    package enum FloorStep: String, Hashable, Sendable, CaseIterable {
        /// Steps of the participant itself.
        case request, cancel, finish
        /// Steps of a moderator, about a participant.
        case grant, deny, release
    }

    package enum FloorChange: String, Hashable, Sendable {
        case requested, cancelled, granted, denied, released, finished
    }

    mutating func floor(
        _ step: FloorStep,
        _ id: String,
        by actor: String?,
        _ transaction: inout RoomTransaction
    ) throws(CallError) {
        guard settings.kind == .lecture else {
            throw CallError(
                code: 5082,
                reason: "no-floor",
                message: "room \"\(name)\" is no lecture and has no floor"
            )
        }
        switch step {
        case .request, .cancel, .finish: try ownStep(step, id, &transaction)
        case .grant, .deny, .release: try moderate(step, id, by: actor, &transaction)
        }
    }

    private mutating func ownStep(
        _ step: FloorStep,
        _ id: String,
        _ transaction: inout RoomTransaction
    ) throws(CallError) {
        guard let participant = participants[id], participant.admitted else {
            throw .invalidClient(id)
        }
        guard participant.role != Role.moderatorName else {
            throw .seed(5003, "a moderator needs no floor")
        }
        guard !isInProcess(.floor(step, id)) else {
            throw .inProcess(5041, "floor \(step.rawValue)")
        }
        let isAsking = raisedHands.contains(id)
        let isPossible =
            switch step {
            case .request: !isAsking && floorHolder != id
            case .cancel: isAsking
            default: floorHolder == id
            }
        guard isPossible else {
            throw CallError(
                code: 5042,
                reason: step == .request ? "floor-already-requested" : "no-floor-request",
                message: step == .request
                    ? "participant \"\(id)\" has asked for the floor already, or has it"
                    : "participant \"\(id)\" has nothing to \(step.rawValue)"
            )
        }
        transaction.isFenced = step == .finish
        begin(.floor(step, id), &transaction)
        switch step {
        case .request:
            raisedHands.append(id)
            transaction.announce(.floor(.requested, participant, by: nil), to: .only(moderators))
        case .cancel:
            raisedHands.removeAll { $0 == id }
            transaction.announce(.floor(.cancelled, participant, by: nil), to: .only(moderators))
        default:
            floorHolder = nil
            transaction.announce(.floor(.finished, participant, by: nil), to: .only(moderators))
            reconcile(publisher: id, ending: EndReason.floor, &transaction)
        }
    }

    private mutating func moderate(
        _ step: FloorStep,
        _ id: String,
        by actor: String?,
        _ transaction: inout RoomTransaction
    ) throws(CallError) {
        let (unauthorized, busy) =
            switch step {
            case .grant: (5004, 5043)
            case .deny: (5005, 5047)
            default: (5006, 5049)
            }
        try check(
            actor,
            may: .floor,
            orElse: .seed(unauthorized, "floor \(step.rawValue) needs the permission floor")
        )
        guard let participant = participants[id], participant.admitted else {
            throw .invalidClient(id)
        }
        guard !isInProcess(.floor(step, id)) else {
            throw .inProcess(busy, "floor \(step.rawValue)")
        }
        try checkFloor(step, id)
        transaction.isFenced = step != .grant
        begin(.floor(step, id), &transaction)
        let audience = Audience.only([id] + moderators.filter { $0 != actor })
        raisedHands.removeAll { $0 == id }
        switch step {
        case .grant: floorHolder = id
        case .release: floorHolder = nil
        default: break
        }
        let news: FloorChange =
            switch step {
            case .grant: .granted
            case .deny: .denied
            default: .released
            }
        transaction.announce(.floor(news, participant, by: actor), to: audience)
        reconcile(publisher: id, ending: EndReason.floor, &transaction)
    }

    /// Checks that a moderator's step is valid in the present state of the floor.
    private func checkFloor(_ step: FloorStep, _ id: String) throws(CallError) {
        let isAsking = raisedHands.contains(id)
        switch step {
        case .grant:
            if floorHolder == id {
                throw CallError(
                    code: 5044,
                    reason: "floor-already-granted",
                    message: "participant \"\(id)\" has the floor already"
                )
            }
            if let floorHolder {
                throw CallError(
                    code: 5046,
                    reason: "floor-held",
                    message: "participant \"\(floorHolder)\" has the floor"
                )
            }
            guard isAsking, !isReleasing else {
                throw CallError(
                    code: 5069,
                    reason: "floor-released",
                    message: isAsking
                        ? "the floor is being released"
                        : "participant \"\(id)\" has no open request for the floor"
                )
            }
        case .deny:
            if floorHolder == id {
                throw CallError(
                    code: 5048,
                    reason: "floor-already-granted",
                    message: "participant \"\(id)\" has the floor already"
                )
            }
            guard isAsking else { throw .invalidClient(id) }
        default:
            guard floorHolder == id else {
                throw CallError(
                    code: 5050,
                    reason: "floor-not-held",
                    message: "participant \"\(id)\" does not have the floor"
                )
            }
        }
    }

    private var isReleasing: Bool {
        inProcess.keys.contains { process in
            if case .floor(.release, _) = process { true } else { false }
        }
    }

    /// Takes the floor and a pending request for it from a participant that may no longer use it.
    mutating func freeFloor(of id: String, _ transaction: inout RoomTransaction) {
        guard let participant = participants[id] else { return }
        freeFloor(of: participant, &transaction)
    }

    private mutating func freeFloor(
        of participant: Participant,
        _ transaction: inout RoomTransaction
    ) {
        if floorHolder == participant.id {
            floorHolder = nil
            transaction.announce(.floor(.finished, participant, by: nil), to: .only(moderators))
        }
        if raisedHands.contains(participant.id) {
            raisedHands.removeAll { $0 == participant.id }
            transaction.announce(.floor(.cancelled, participant, by: nil), to: .only(moderators))
        }
    }

    /// Clears the pins, speech and requests of a participant that has left.
    mutating func forget(_ participant: Participant, _ transaction: inout RoomTransaction) {
        unpin(participant.id, &transaction)
        talkers.ranking.remove(participant.id)
        talkers.followers[participant.id] = nil
        talkers.isStale = true
        freeFloor(of: participant, &transaction)
        roleRequests = roleRequests.filter {
            $0.key != participant.id && $0.value.requester != participant.id
        }
    }

    /// Clears the same state of all participants, when the room ends.
    mutating func forgetAll() {
        pins = []
        raisedHands = []
        floorHolder = nil
        roleRequests = [:]
        talkers = ActiveSpeakers()
    }
}
