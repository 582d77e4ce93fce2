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
            throw .roleMayNotPublish(participant.role)
        }
        try recordVocabulary(vocabulary)
        transaction.isFenced = true
        guard participant.mode != mode else { return }
        let previous = participant.mode
        participant.mode = mode
        participants[id] = participant
        noteMode(of: participant, from: previous, by: actor, &transaction)
        reconcile(publisher: id, ending: EndReason.mode, &transaction)
        review(subscriptionsTouching: id, &transaction)
    }

    /// Announces a participant's new mode, and takes away what the mode does not allow: transports
    /// and the pin without media, the floor without sending.
    mutating func noteMode(
        of participant: Participant,
        from previous: Mode,
        by actor: String?,
        _ transaction: inout RoomTransaction
    ) {
        let id = participant.id
        transaction.announce(
            .modeChanged(participant, from: previous, by: actor),
            to: audience(of: participant)
        )
        if participant.mode == .signallingOnly {
            for transport in participants[id]?.transports ?? [] {
                end(transport: transport.name, of: id, EndReason.mode, &transaction)
            }
            noteConnection(of: id, ifNone: .none)
            unpin(id, &transaction)
        }
        if participant.mode != .sendAndReceive { freeFloor(of: id, &transaction) }
    }

    /// Records the mode vocabulary in use; a strict room refuses the other one.
    mutating func recordVocabulary(_ vocabulary: ModeVocabulary?) throws(CallError) {
        if let vocabulary, settings.strictModeVocabulary, let heard = moderation.vocabulary,
            heard != vocabulary
        {
            throw .modeVocabulary
        }
        moderation.vocabulary = moderation.vocabulary ?? vocabulary
    }
}

extension Room.PublishRights {
    var allowsAny: Bool { audio || video || screen }
}
