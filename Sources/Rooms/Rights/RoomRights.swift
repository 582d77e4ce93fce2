package import WorkerInterface

extension Room {
    /// Verdict on publishing: allowed, held back or refused.
    package enum PublishVerdict: Hashable, Sendable {
        case open
        /// Accepted in the SDP but not forwarded; gaining the right needs no renegotiation.
        case gated(Gate)
        /// Refused in the SDP; gaining the right requires a new offer.
        case refused(PublishRefusal)

        /// Whether the media makes a stream that others see.
        var isOnStage: Bool {
            switch self {
            case .open, .gated(.mute): true
            case .gated(.role), .gated(.knock), .gated(.floor), .gated(.hostPlace), .refused: false
            }
        }

        /// Whether the media makes a stream, or would if its host had a place.
        var claimsHostPlace: Bool {
            switch self {
            case .open, .gated(.mute), .gated(.hostPlace): true
            case .gated(.role), .gated(.knock), .gated(.floor), .refused: false
            }
        }
    }

    package enum Gate: Hashable, Sendable {
        /// The publisher's role does not allow it.
        case role
        /// The publisher awaits approval.
        case knock
        /// Only moderators and the floor holder are forwarded in a lecture.
        case floor
        /// The live event has `maxHosts` other publishing hosts; this one waits without a stream.
        case hostPlace
        /// A moderator muted the participant or the room.
        case mute
    }

    /// Reason word in the `refused` member of an answer.
    package enum PublishRefusal: String, Hashable, Sendable {
        case mode
        case eventType = "event-type"
    }

    package enum ForwardVerdict: Hashable, Sendable {
        case open
        /// Not forwarded, with the reason announced to the subscriber, if there is a word for it.
        case closed(DisableReason?)
    }

    /// Decides whether a participant may send this kind of media from this source.
    ///
    /// This is the only place that decides it; every rule is checked here.
    package func mayPublish(
        _ participant: Participant,
        _ kind: MediaKind,
        from source: MediaSource
    ) -> PublishVerdict {
        guard participant.mode == .sendAndReceive else { return .refused(.mode) }
        if settings.kind == .singleHostAudioOnly, kind == .video { return .refused(.eventType) }
        guard role(of: participant).publish.allows(kind, from: source) else { return .gated(.role) }
        let isModerator = participant.role == Role.moderatorName
        if settings.kind.isLiveEvent, !isModerator { return .gated(.role) }
        guard participant.admitted else { return .gated(.knock) }
        if settings.kind == .lecture, !isModerator, floorHolder != participant.id {
            return .gated(.floor)
        }
        // Before the mute: a waiting host has no stream that could be shown as muted.
        if settings.kind.isLiveEvent,
            !moderation.hosts.hasPlace(participant.id, among: settings.maxHosts)
        {
            return .gated(.hostPlace)
        }
        return isMuted(participant, kind) ? .gated(.mute) : .open
    }

    /// Decides whether this kind of media may be forwarded from `publisher` to `subscriber`.
    ///
    /// This is the only place that decides it; `mayPublish` is one of its conditions. The
    /// participants' own on/off switches are not rights and are not checked here.
    package func mayForward(
        _ kind: MediaKind,
        of source: MediaSource,
        from publisher: Participant,
        to subscriber: Participant
    ) -> ForwardVerdict {
        switch mayPublish(publisher, kind, from: source) {
        case .open: mayReceive(from: publisher, subscriber)
        case .gated(.mute): .closed(.muted)
        case .gated(.knock), .gated(.floor), .gated(.hostPlace): .closed(nil)
        case .gated(.role), .refused: .closed(.role)
        }
    }

    /// Decides the conditions of `mayForward` that depend on the subscriber.
    ///
    /// They control the gate of the slot, all others the gate of the publication. A change on the
    /// publisher's side is therefore one command for any number of subscribers.
    func mayReceive(from publisher: Participant, _ subscriber: Participant) -> ForwardVerdict {
        if publisher.id != subscriber.id, let roles = role(of: subscriber).watches,
            !roles.contains(publisher.role)
        {
            return .closed(.role)
        }
        guard subscriber.admitted, subscriber.mode != .signallingOnly else { return .closed(nil) }
        // Before a live event is `ongoing`, only its hosts receive its media.
        if settings.kind.isLiveEvent, state != .ongoing, subscriber.role != Role.moderatorName {
            return .closed(nil)
        }
        return .open
    }

    /// Whether a moderator's mute applies.
    private func isMuted(_ participant: Participant, _ kind: MediaKind) -> Bool {
        participant.hardMuted.contains(kind) || kind == .audio && isSilenced(participant)
    }

    /// Returns the kinds that moderators have muted, with the participant or with the room.
    func mutedKinds(of participant: Participant) -> Set<MediaKind> {
        isSilenced(participant) ? participant.hardMuted.union([.audio]) : participant.hardMuted
    }
}
