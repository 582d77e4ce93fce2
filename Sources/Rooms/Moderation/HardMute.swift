import WorkerInterface

// Mutes by moderators, of a room or of one participant.

extension Room {
    /// Mute of a room's audio, and the participants that stay audible.
    struct RoomMute: Hashable, Sendable, Codable {
        /// Participant that muted the room, by id: it is spared when it comes back, too.
        ///
        /// `nil` if the signalling server itself did, or if the participant was dropped.
        var caller: String?
        /// Whether it spares everybody who is a moderator at the time.
        var sparesModerators: Bool
    }

    /// Whether the room's mute spares a participant: the caller, as long as it may mute, and
    /// moderators if asked to.
    private func spares(_ participant: Participant, _ mute: RoomMute) -> Bool {
        if mute.sparesModerators, participant.role == Role.moderatorName { return true }
        return participant.id == mute.caller
            && role(of: participant).permissions.contains(Permission.mute.rawValue)
    }

    /// Whether the room's mute applies to a participant; it affects audio and spares some.
    func isSilenced(_ participant: Participant) -> Bool {
        moderation.mute.map { !spares(participant, $0) } ?? false
    }

    /// Mutes or unmutes the room's audio, including that of participants that join later.
    ///
    /// The caller stays audible, and with `sparingModerators` all moderators do.
    mutating func hardMute(
        _ on: Bool,
        sparingModerators: Bool = false,
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
            throw .inProcess(on ? 5037 : 5040, on ? "room.hardMute" : "room.hardUnmute")
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
        moderation.mute =
            on ? RoomMute(caller: actor, sparesModerators: sparingModerators) : nil
        transaction.isFenced = on
        begin(process, &transaction)
        transaction.announce(.roomMuted(on, by: actor), to: .everyone)
        for participant in members where !participant.transports.isEmpty {
            showMutes(of: participant, &transaction)
            reconcileGates(of: participant.id, &transaction)
        }
    }

    /// Checks that a caller may mute or unmute kinds of a participant's media; the first of them
    /// decides the code of the refusal.
    func check(
        _ actor: String?,
        mayMute media: Set<MediaKind>,
        _ on: Bool
    ) throws(CallError) {
        let code =
            switch (MediaKind.allCases.first(where: media.contains), on) {
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
        try check(actor, mayMute: media, on)
        guard var participant = participants[id] else { throw .noSuchTarget(id) }
        transaction.isFenced = on
        let changed = MediaKind.allCases.filter {
            media.contains($0) && participant.hardMuted.contains($0) != on
        }
        guard !changed.isEmpty else { return }
        for kind in changed {
            if on { participant.hardMuted.insert(kind) } else { participant.hardMuted.remove(kind) }
        }
        participants[id] = participant
        transaction.announce(
            .participantMuted(participant, media: changed, on: on, by: actor),
            to: concerned(id, actor)
        )
        showMutes(of: participant, &transaction)
        reconcileGates(of: id, &transaction)
        review(subscriptionsTouching: id, &transaction)
    }

    /// Announces moderators' mutes to the others, as ordinary changes of the streams.
    private mutating func showMutes(
        of participant: Participant,
        _ transaction: inout RoomTransaction
    ) {
        let muted = mutedKinds(of: participant)
        for id in participant.streams {
            guard var stream = streams[id], stream.hardMuted != muted else { continue }
            let isSeen = stream.mute(muted)
            streams[id] = stream
            if isSeen { transaction.announce(.streamChanged(stream), to: .everyone) }
        }
    }
}

extension Room.Stream {
    /// Replaces the kinds that moderators have muted.
    ///
    /// - Returns: whether others see a difference: not in kinds that are absent or switched off.
    mutating func mute(_ kinds: Set<MediaKind>) -> Bool {
        let changed = hardMuted.symmetricDifference(kinds)
        hardMuted = kinds
        return changed.contains { publication($0) != nil && isOn($0) }
    }
}
