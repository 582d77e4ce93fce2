// Steps of floor control: those of the participant itself, then those of a moderator.

extension Room {
    mutating func requestFloor(
        _ id: String,
        _ transaction: inout RoomTransaction
    ) throws(CallError) {
        let participant = try checkOwnStep(.request, id)
        guard floorHolder != id else { throw .floorAlreadyGranted(5042, to: id) }
        guard !moderation.floor.isRequested(by: id) else { throw .floorAlreadyRequested(by: id) }
        guard raisedHands.count < Self.floorRequestLimit else {
            throw .limitReached("floorRequests", Self.floorRequestLimit)
        }
        begin(.floor(.request, id), &transaction)
        moderation.floor.request(by: id)
        transaction.announce(.floor(.requested, participant, by: id), to: concerned(id))
    }

    mutating func cancelFloorRequest(
        of id: String,
        _ transaction: inout RoomTransaction
    ) throws(CallError) {
        let participant = try checkOwnStep(.cancel, id)
        guard moderation.floor.isRequested(by: id) else { throw .noFloorRequest(5042, of: id) }
        begin(.floor(.cancel, id), &transaction)
        moderation.floor.removeRequest(of: id)
        transaction.announce(.floor(.cancelled, participant, by: id), to: concerned(id))
    }

    mutating func finishFloor(
        of id: String,
        _ transaction: inout RoomTransaction
    ) throws(CallError) {
        let participant = try checkOwnStep(.finish, id)
        guard floorHolder == id else { throw .floorNotHeld(5042, by: id) }
        transaction.isFenced = true
        begin(.floor(.finish, id), &transaction)
        moderation.floor.vacate()
        transaction.announce(.floor(.finished, participant, by: id), to: concerned(id))
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
        if let floorHolder { throw .floorHeld(by: floorHolder) }
        guard moderation.floor.isRequested(by: id) else { throw .noFloorRequest(5069, of: id) }
        guard !moderation.pending.isReleasingFloor else { throw .floorReleased }
        try checkCanUseFloor(participant)
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
        guard moderation.floor.isRequested(by: id) else { throw .noFloorRequest(5045, of: id) }
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
        guard floorHolder == id else { throw .floorNotHeld(5050, by: id) }
        transaction.isFenced = true
        moderation.floor.vacate()
        conclude(.release, .released, participant, by: actor, &transaction)
    }

    /// Checks the common conditions of the steps of the participant itself.
    private func checkOwnStep(
        _ step: FloorStep,
        _ id: String
    ) throws(CallError) -> Participant {
        guard let participant = participants[id] else { throw .noSuchTarget(id) }
        guard participant.admitted else { throw .awaitsApproval(5045, id) }
        guard participant.role != Role.moderatorName else {
            throw .floorNotNeeded(by: id)
        }
        guard !isInProcess(.floor(step, id)) else {
            throw .inProcess(5041, "floor.\(step.rawValue)")
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
        guard let participant = participants[id] else { throw .noSuchTarget(id) }
        guard participant.admitted else { throw .awaitsApproval(5045, id) }
        guard !isInProcess(.floor(step, id)) else {
            throw .inProcess(busy, "floor.\(step.rawValue)")
        }
        return participant
    }

    /// Checks that a participant may publish anything once it holds the floor.
    ///
    /// The floor adds to what mode and role allow. Somebody whom they allow nothing would keep it
    /// from others and not be heard; a request for it keeps it from nobody.
    private func checkCanUseFloor(_ participant: Participant) throws(CallError) {
        guard participant.mode == .sendAndReceive else {
            throw .modeMayNotPublish(participant.id, participant.mode)
        }
        guard role(of: participant).publish.allowsAny else {
            throw .roleMayNotPublish(participant.role)
        }
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
            to: concerned(id, actor)
        )
        reconcile(publisher: id, ending: EndReason.floor, &transaction)
    }
}

extension CallError {
    fileprivate static func floorNotNeeded(by id: String) -> Self {
        Self(
            code: 5003,
            reason: "floor-not-needed",
            message: "participant \"\(id)\" is a moderator and needs no floor"
        )
    }

    fileprivate static func floorAlreadyRequested(by id: String) -> Self {
        Self(
            code: 5042,
            reason: "floor-already-requested",
            message: "participant \"\(id)\" has asked for the floor already"
        )
    }

    fileprivate static func floorAlreadyGranted(_ code: Int, to id: String) -> Self {
        Self(
            code: code,
            reason: "floor-already-granted",
            message: "participant \"\(id)\" has the floor already"
        )
    }

    fileprivate static func noFloorRequest(_ code: Int, of id: String) -> Self {
        Self(
            code: code,
            reason: "no-floor-request",
            message: "participant \"\(id)\" has no open request for the floor"
        )
    }

    fileprivate static func floorHeld(by holder: String) -> Self {
        Self(
            code: 5046,
            reason: "floor-held",
            message: "participant \"\(holder)\" has the floor"
        )
    }

    fileprivate static func floorNotHeld(_ code: Int, by id: String) -> Self {
        Self(
            code: code,
            reason: "floor-not-held",
            message: "participant \"\(id)\" does not have the floor"
        )
    }

    fileprivate static let floorReleased = Self(
        code: 5069,
        reason: "floor-released",
        message: "the floor is being released"
    )
}
