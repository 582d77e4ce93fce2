// Participants' modes: sending, receiving or signalling only.

extension Room {
    /// Changes a participant's mode.
    ///
    /// A participant may change its own mode without a permission, but needs a publish right to
    /// send.
    mutating func setMode(
        of id: String,
        _ mode: Mode,
        _ vocabulary: ModeVocabulary?,
        by actor: String?,
        _ transaction: inout RoomTransaction
    ) throws(CallError) {
        if let actor, actor != id {
            try check(
                actor,
                may: .mode,
                orElse: .notPermitted("changing another's mode needs the permission mode")
            )
        }
        var participant = try participant(id)
        if actor == id, mode == .sendAndReceive, !role(of: participant).publish.allowsAny {
            throw .notPermitted("role \"\(participant.role)\" may publish nothing")
        }
        try recordVocabulary(vocabulary)
        transaction.isFenced = true
        guard participant.mode != mode else { return }
        participant.mode = mode
        participants[id] = participant
        transaction.announce(
            .modeChanged(participant, by: actor),
            to: audience(of: participant)
        )
        if mode == .signallingOnly {
            for transport in participant.transports {
                end(transport: transport.name, of: id, EndReason.mode, &transaction)
            }
            noteConnection(of: id, ifNone: .none)
            unpin(id, &transaction)
        }
        if mode != .sendAndReceive { freeFloor(of: id, &transaction) }
        reconcile(publisher: id, ending: EndReason.mode, &transaction)
        review(subscriptionsTouching: id, &transaction)
    }

    /// Records the mode vocabulary in use; a strict room refuses the other one.
    mutating func recordVocabulary(_ vocabulary: ModeVocabulary?) throws(CallError) {
        if let vocabulary, settings.strictModeVocabulary, let heard = moderation.vocabulary,
            heard != vocabulary
        {
            throw .wrongState(
                "the room has heard mode names of the other vocabulary",
                reason: "mode-vocabulary"
            )
        }
        moderation.vocabulary = moderation.vocabulary ?? vocabulary
    }
}

extension Room.PublishRights {
    var allowsAny: Bool { audio || video || screen }
}
