// Admission of participants: locking the room, answering knocks, dropping.

extension Room {
    mutating func lock(
        _ on: Bool,
        by actor: String?,
        _ transaction: inout RoomTransaction
    ) throws(CallError) {
        let word = on ? "locking" : "unlocking"
        try check(
            actor,
            may: .lock,
            orElse: .seed(5115, "\(word) the room needs the permission lock")
        )
        guard locked != on else {
            throw on
                ? CallError(
                    code: 5117,
                    reason: "room-already-locked",
                    message: "room \"\(name)\" is already locked"
                )
                : CallError(
                    code: 5118,
                    reason: "room-not-locked",
                    message: "room \"\(name)\" is not locked"
                )
        }
        moderation.isLocked = on
        transaction.announce(.locked(on, by: actor), to: .everyone)
        if !on { admitWaitingModerators(by: actor, &transaction) }
    }

    /// Admits those who became moderators while the lock kept them out.
    private mutating func admitWaitingModerators(
        by actor: String?,
        _ transaction: inout RoomTransaction
    ) {
        let waiting = awaited.filter { $0.role == Role.moderatorName }.map(\.id)
        for id in waiting { admit(moderator: id, by: actor, &transaction) }
        reconcile(rolesOf: waiting, &transaction)
    }

    /// Checks that a caller may admit those who await approval, and turn them away.
    func checkMayAnswerKnocks(_ actor: String?) throws(CallError) {
        try check(
            actor,
            may: .approve,
            orElse: .notPermitted("answering a knock needs the permission approve")
        )
    }

    /// Admits a participant that awaits approval, or removes it.
    mutating func answerKnock(
        of id: String,
        approve: Bool,
        detail: String?,
        by actor: String?,
        _ transaction: inout RoomTransaction
    ) throws(CallError) {
        try checkMayAnswerKnocks(actor)
        var participant = try participant(id)
        guard !participant.admitted else {
            throw .notAwaited(id)
        }
        guard approve else {
            transaction.isFenced = true
            remove(id, EndReason.denied, &transaction)
            transaction.announce(
                .denied(participant, detail: detail, by: actor),
                to: concerned(id, actor)
            )
            transaction.announce(
                .left(participant, reason: EndReason.denied),
                to: audience(of: participant)
            )
            return
        }
        guard !locked else { throw .roomLocked(name) }
        participant.admitted = true
        participants[id] = participant
        transaction.announce(
            .approved(participant, by: actor),
            to: concerned(id, actor)
        )
        transaction.announce(.joined(participant, again: false), to: .everyone)
        reconcile(publisher: id, ending: EndReason.unpublished, &transaction)
        review(subscriptionsTouching: id, &transaction)
    }

    /// Disconnects participants; they may join again.
    mutating func drop(
        _ ids: [String],
        by actor: String?,
        detail: String?,
        _ transaction: inout RoomTransaction
    ) throws(CallError) -> Result {
        try check(
            actor,
            may: .drop,
            orElse: .seed(5116, "dropping participants needs the permission drop")
        )
        transaction.isFenced = true
        var dropped: [String] = []
        for id in ids {
            guard let participant = participants[id] else { continue }
            dropped.append(id)
            remove(id, EndReason.dropped, &transaction)
            transaction.announce(
                .left(participant, reason: EndReason.dropped, detail: detail),
                to: audience(of: participant)
            )
        }
        reconcileHosts(&transaction)
        return .dropped(dropped)
    }
}
