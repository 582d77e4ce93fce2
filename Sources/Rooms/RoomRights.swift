package import WorkerInterface

extension Room {
    /// Whether a participant may send something, and if not, what that comes to.
    package enum PublishVerdict: Hashable, Sendable {
        case open
        /// Accepted in the SDP and held back; gaining the right needs no negotiation.
        case gated(Gate)
        /// Refused in the SDP; once the right is gained a new offer is needed.
        case refused(PublishRefusal)

        /// Whether others see a stream for it.
        var isOnStage: Bool {
            switch self {
            case .open, .gated(.hostPlace), .gated(.mute): true
            case .gated(.knock), .gated(.floor), .refused: false
            }
        }
    }

    package enum Gate: Hashable, Sendable {
        /// Still awaits approval.
        case knock
        /// In a lecture only moderators and the holder of the floor are heard.
        case floor
        /// All places of a live event's hosts are taken.
        case hostPlace
        /// A moderator has muted the participant, or the room.
        case mute
    }

    /// The word in an answer's `refused`.
    package enum PublishRefusal: String, Hashable, Sendable {
        case mode, role
        case eventType = "event-type"
    }

    package enum ForwardVerdict: Hashable, Sendable {
        case open
        /// With the reason that the subscriber is told, where there is a word for it.
        case closed(DisableReason?)
    }

    /// Says whether this participant may send this kind of media from this source.
    ///
    /// The one place that decides it: every rule is a term here.
    package func mayPublish(
        _ participant: Participant,
        _ kind: MediaKind,
        from source: MediaSource
    ) -> PublishVerdict {
        guard participant.mode == .sendAndReceive else { return .refused(.mode) }
        let rights = role(of: participant).publish
        let allowed =
            switch (source, kind) {
            case (.screen, _): rights.screen
            case (_, .audio): rights.audio
            case (_, .video): rights.video
            }
        guard allowed else { return .refused(.role) }

        let isModerator = participant.role == Role.moderatorName
        if settings.kind.isLiveEvent, !isModerator { return .refused(.role) }
        if settings.kind == .singleHostAudioOnly, kind == .video { return .refused(.eventType) }
        guard participant.admitted else { return .gated(.knock) }
        if settings.kind == .lecture, !isModerator, floorHolder != participant.id {
            return .gated(.floor)
        }
        // Before the place: a viewer is told of a mute, and a place has no word.
        if isMuted(participant, kind) { return .gated(.mute) }
        if settings.kind.isLiveEvent, !hasHostPlace(participant.id) { return .gated(.hostPlace) }
        return .open
    }

    /// Says whether this kind of media may go from `publisher` to `subscriber`.
    ///
    /// The one place that decides it, `mayPublish` being one of its terms. What the two of them
    /// themselves switch on and off is no right and is not asked here.
    package func mayForward(
        _ kind: MediaKind,
        of source: MediaSource,
        from publisher: Participant,
        to subscriber: Participant
    ) -> ForwardVerdict {
        switch mayPublish(publisher, kind, from: source) {
        case .open: mayReceive(from: publisher, subscriber)
        case .gated(.mute): .closed(.muted)
        case .gated: .closed(nil)
        case .refused: .closed(.role)
        }
    }

    /// The terms of `mayForward` that differ from one subscriber to the next.
    ///
    /// They are the slot's gate, the others the publication's: so a change on the publisher's
    /// side is one command however many watch.
    func mayReceive(from publisher: Participant, _ subscriber: Participant) -> ForwardVerdict {
        guard subscriber.admitted, subscriber.mode != .signallingOnly else { return .closed(nil) }
        let rights = role(of: subscriber)
        if publisher.id != subscriber.id, let roles = rights.watches,
            !roles.contains(publisher.role)
        {
            return .closed(.role)
        }
        // Before a live event is `ongoing` only its hosts see it, themselves included.
        if settings.kind.isLiveEvent, state != .ongoing, subscriber.role != Role.moderatorName {
            return .closed(nil)
        }
        return .open
    }

    /// The room's mute is for audio and spares moderators; a participant's own spares nobody.
    private func isMuted(_ participant: Participant, _ kind: MediaKind) -> Bool {
        if participant.hardMuted.contains(kind) { return true }
        return hardMuted && kind == .audio && participant.role != Role.moderatorName
    }

    private func hasHostPlace(_ participant: String) -> Bool {
        // Who does not publish yet is judged as if it began now.
        let place = hosts.firstIndex(of: participant) ?? hosts.count
        return place < settings.maxHosts
    }
}
