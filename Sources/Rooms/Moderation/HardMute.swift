import WorkerInterface

// Moderation of a room or of one of its participants: locking, muting, dropping, approving.

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
    }

    /// Mutes or unmutes the audio of all but moderators, including participants that join later.
    mutating func hardMute(
        _ on: Bool,
        by actor: String?,
        _ transaction: inout RoomTransaction
    ) throws(CallError) {
        try check(
            actor,
            may: .mute,
            orElse: .seed(
                on ? 5001 : 5002,
                "\(on ? "muting" : "unmuting") the room needs the permission mute"
            )
        )
        let process: PendingOperation = on ? .hardMute : .hardUnmute
        guard !isInProcess(process) else {
            throw .inProcess(on ? 5037 : 5040, on ? "hard mute" : "hard unmute")
        }
        guard hardMuted != on else {
            throw on
                ? CallError(
                    code: 5038,
                    reason: "room-already-muted",
                    message: "room \"\(name)\" is already muted"
                )
                : CallError(
                    code: 5039,
                    reason: "room-not-muted",
                    message: "room \"\(name)\" is not muted"
                )
        }
        moderation.isHardMuted = on
        transaction.isFenced = on
        begin(process, &transaction)
        for participant in members where !participant.transports.isEmpty {
            reconcileGates(of: participant.id, &transaction)
        }
        transaction.announce(.roomMuted(on, by: actor), to: .everyone)
    }

    /// Mutes or unmutes kinds of one participant's media, including what it publishes later.
    ///
    /// Kinds that are in that state already are ignored, without an error or an event.
    mutating func hardMute(
        _ id: String,
        _ media: Set<MediaKind>,
        _ on: Bool,
        by actor: String?,
        _ transaction: inout RoomTransaction
    ) throws(CallError) {
        let asked = MediaKind.allCases.filter(media.contains)
        let code =
            switch (asked.first, on) {
            case (.video, true): 5011
            case (.video, false): 5012
            case (_, true): 5009
            case (_, false): 5010
            }
        try check(
            actor,
            may: .mute,
            orElse: .seed(
                code,
                "\(on ? "muting" : "unmuting") a participant needs the permission mute"
            )
        )
        guard var participant = participants[id] else { throw .invalidClient(id) }
        transaction.isFenced = on
        let changed = asked.filter { participant.hardMuted.contains($0) != on }
        guard !changed.isEmpty else { return }
        for kind in changed {
            if on { participant.hardMuted.insert(kind) } else { participant.hardMuted.remove(kind) }
        }
        participants[id] = participant
        transaction.announce(
            .participantMuted(participant, media: changed, on: on, by: actor),
            to: .only([id])
        )
        show(hardMuted: participant.hardMuted, changed, of: participant, &transaction)
        reconcileGates(of: id, &transaction)
        review(subscriptionsTouching: id, &transaction)
    }

    /// Announces a moderator's mute to the others as an ordinary change of the stream.
    private mutating func show(
        hardMuted: Set<MediaKind>,
        _ changed: [MediaKind],
        of participant: Participant,
        _ transaction: inout RoomTransaction
    ) {
        for id in participant.streams {
            guard var stream = streams[id] else { continue }
            stream.hardMuted = hardMuted
            streams[id] = stream
            let isSeen = changed.contains {
                stream.publication($0) != nil && stream.isOn($0)
            }
            if isSeen { transaction.announce(.streamChanged(stream), to: .everyone) }
        }
    }

    /// Disconnects participants; they may join again.
    mutating func drop(
        _ ids: [String],
        by actor: String?,
        _ reason: String,
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
                .left(participant, reason: reason),
                to: audience(of: participant)
            )
        }
        reconcileHosts(&transaction)
        return .dropped(dropped)
    }

    /// Admits a participant that awaits approval, or removes it.
    mutating func answerKnock(
        of id: String,
        approve: Bool,
        by actor: String?,
        _ transaction: inout RoomTransaction
    ) throws(CallError) {
        try check(
            actor,
            may: .approve,
            orElse: .notPermitted("answering a knock needs the permission approve")
        )
        var participant = try participant(id)
        guard !participant.admitted else {
            throw .wrongState("participant \"\(id)\" awaits no approval")
        }
        guard approve else {
            transaction.isFenced = true
            remove(id, EndReason.denied, &transaction)
            transaction.announce(
                .denied(participant, by: actor),
                to: .only([id] + moderators.filter { $0 != actor })
            )
            return
        }
        guard !locked else { throw .roomLocked(name) }
        let others = members.map(\.id)
        participant.admitted = true
        participants[id] = participant
        transaction.announce(
            .approved(participant, by: actor),
            to: .only([id] + moderators.filter { $0 != actor })
        )
        transaction.announce(.joined(participant, again: false), to: .only(others))
        reconcile(publisher: id, ending: EndReason.unpublished, &transaction)
        review(subscriptionsTouching: id, &transaction)
    }

    /// Reapplies rights to all subscriptions from or to a participant.
    ///
    /// Subscriptions that the roles no longer allow end.
    mutating func review(
        subscriptionsTouching id: String,
        _ transaction: inout RoomTransaction
    ) {
        guard let participant = participants[id] else { return }
        // Changed rights may also fill following slots that are empty now.
        talkers.followers.noteAll()
        var numbers = Set(participant.subscriptions)
        for stream in participant.streams { numbers.formUnion(streams[stream]?.subscribers ?? []) }
        for number in numbers.sorted() {
            guard let subscription = subscriptions[number],
                let publisher = streams[subscription.stream]?.participant,
                let publisher = participants[publisher],
                let subscriber = participants[subscription.participant]
            else { continue }
            guard mayReceive(from: publisher, subscriber) == .closed(.role) else {
                reconcile(subscription: number, &transaction)
                continue
            }
            end(subscription: number, &transaction)
            transaction.announce(
                .subscriptionDisconnected(subscription),
                to: .only([subscriber.id])
            )
        }
    }
}
