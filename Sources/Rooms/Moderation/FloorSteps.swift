// Steps of floor control: those of the participant itself, then those of a moderator.

extension Room {
    mutating func requestFloor(
        _ id: String,
        _ transaction: inout RoomTransaction
    ) throws(CallError) {
        let participant = try checkOwnStep(.request, id)
        guard !moderation.floor.isRequested(by: id), floorHolder != id else {
            throw CallError(
                code: 5042,
                reason: "floor-already-requested",
                message: "participant \"\(id)\" has asked for the floor already, or has it"
            )
        }
        begin(.floor(.request, id), &transaction)
        moderation.floor.request(by: id)
        transaction.announce(.floor(.requested, participant, by: nil), to: .only(moderators))
    }

    mutating func cancelFloorRequest(
        of id: String,
        _ transaction: inout RoomTransaction
    ) throws(CallError) {
        let participant = try checkOwnStep(.cancel, id)
        guard moderation.floor.isRequested(by: id) else { throw .noFloorRequest(id, .cancel) }
        begin(.floor(.cancel, id), &transaction)
        moderation.floor.removeRequest(of: id)
        transaction.announce(.floor(.cancelled, participant, by: nil), to: .only(moderators))
    }

    mutating func finishFloor(
        of id: String,
        _ transaction: inout RoomTransaction
    ) throws(CallError) {
        let participant = try checkOwnStep(.finish, id)
        guard floorHolder == id else { throw .noFloorRequest(id, .finish) }
        transaction.isFenced = true
        begin(.floor(.finish, id), &transaction)
        moderation.floor.vacate()
        transaction.announce(.floor(.finished, participant, by: nil), to: .only(moderators))
        reconcile(publisher: id, ending: EndReason.floor, &transaction)
    }

    mutating func grantFloor(
        to id: String,
        by actor: String?,
        _ transaction: inout RoomTransaction
    ) throws(CallError) {
        let participant = try checkModeratorStep(
            .grant,
            id,
            by: actor,
            unpermitted: 5004,
            busy: 5043
        )
        if floorHolder == id { throw .floorAlreadyGranted(5044, to: id) }
        if let floorHolder {
            throw CallError(
                code: 5046,
                reason: "floor-held",
                message: "participant \"\(floorHolder)\" has the floor"
            )
        }
        let isRequested = moderation.floor.isRequested(by: id)
        guard isRequested, !moderation.pending.isReleasingFloor else {
            throw CallError(
                code: 5069,
                reason: "floor-released",
                message: isRequested
                    ? "the floor is being released"
                    : "participant \"\(id)\" has no open request for the floor"
            )
        }
        moderation.floor.give(to: id)
        conclude(.grant, .granted, participant, by: actor, &transaction)
    }

    mutating func denyFloor(
        to id: String,
        by actor: String?,
        _ transaction: inout RoomTransaction
    ) throws(CallError) {
        let participant = try checkModeratorStep(
            .deny,
            id,
            by: actor,
            unpermitted: 5005,
            busy: 5047
        )
        if floorHolder == id { throw .floorAlreadyGranted(5048, to: id) }
        guard moderation.floor.isRequested(by: id) else { throw .invalidClient(id) }
        transaction.isFenced = true
        conclude(.deny, .denied, participant, by: actor, &transaction)
    }

    mutating func releaseFloor(
        of id: String,
        by actor: String?,
        _ transaction: inout RoomTransaction
    ) throws(CallError) {
        let participant = try checkModeratorStep(
            .release,
            id,
            by: actor,
            unpermitted: 5006,
            busy: 5049
        )
        guard floorHolder == id else {
            throw CallError(
                code: 5050,
                reason: "floor-not-held",
                message: "participant \"\(id)\" does not have the floor"
            )
        }
        transaction.isFenced = true
        moderation.floor.vacate()
        conclude(.release, .released, participant, by: actor, &transaction)
    }

    /// Checks the common conditions of the steps of the participant itself.
    private func checkOwnStep(
        _ step: FloorStep,
        _ id: String
    ) throws(CallError) -> Participant {
        guard let participant = participants[id], participant.admitted else {
            throw .invalidClient(id)
        }
        guard participant.role != Role.moderatorName else {
            throw .seed(5003, "a moderator needs no floor")
        }
        guard !isInProcess(.floor(step, id)) else {
            throw .inProcess(5041, "floor \(step.rawValue)")
        }
        return participant
    }

    /// Checks the common conditions of a moderator's steps.
    private func checkModeratorStep(
        _ step: FloorStep,
        _ id: String,
        by actor: String?,
        unpermitted: Int,
        busy: Int
    ) throws(CallError) -> Participant {
        try check(
            actor,
            may: .floor,
            orElse: .seed(unpermitted, "floor \(step.rawValue) needs the permission floor")
        )
        guard let participant = participants[id], participant.admitted else {
            throw .invalidClient(id)
        }
        guard !isInProcess(.floor(step, id)) else {
            throw .inProcess(busy, "floor \(step.rawValue)")
        }
        return participant
    }

    /// Ends a moderator's step: closes the request, announces the change and applies the rights.
    private mutating func conclude(
        _ step: FloorStep,
        _ change: FloorChange,
        _ participant: Participant,
        by actor: String?,
        _ transaction: inout RoomTransaction
    ) {
        let id = participant.id
        begin(.floor(step, id), &transaction)
        moderation.floor.removeRequest(of: id)
        transaction.announce(
            .floor(change, participant, by: actor),
            to: .only([id] + moderators.filter { $0 != actor })
        )
        reconcile(publisher: id, ending: EndReason.floor, &transaction)
    }
}

extension CallError {
    fileprivate static func noFloorRequest(_ id: String, _ step: Room.FloorStep) -> Self {
        Self(
            code: 5042,
            reason: "no-floor-request",
            message: "participant \"\(id)\" has nothing to \(step.rawValue)"
        )
    }

    fileprivate static func floorAlreadyGranted(_ code: Int, to id: String) -> Self {
        Self(
            code: code,
            reason: "floor-already-granted",
            message: "participant \"\(id)\" has the floor already"
        )
    }
}
