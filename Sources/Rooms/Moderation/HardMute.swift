import WorkerInterface

// Mutes by moderators, of a room or of one participant.

extension Room {
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
}
