import RTP
import WorkerInterface

// A room in parts that are saved one by one, so that a call saves only what it has changed.

extension Room {
    /// Room without its participants, streams and subscriptions, as it is saved.
    ///
    /// It holds nothing that grows with the number of participants, except for lists of those who
    /// wait for something.
    package struct Saved: Codable, Sendable {
        package let name: String
        let settings: Settings
        let lifecycle: Lifecycle
        let moderation: Moderation
        let speakers: SavedSpeakers
        let taps: Taps
        let firstWorker: Int
        /// Mirrors; all else about them follows from the publications and the slots.
        let mirrors: [SavedMirror]
    }

    /// Participant with its following slots, as it is saved.
    package struct SavedParticipant: Codable, Sendable {
        let participant: Participant
        let following: Following?

        package var id: String { participant.id }
    }

    /// Active speakers as listeners see them; who talks is measured anew.
    struct SavedSpeakers: Codable, Sendable {
        /// Common list, and behind it those who are on the lists of some.
        let talkers: [Talker]
        let announcedAt: Instant?
        /// Whether a change of the lists was still to be announced.
        let isDue: Bool
    }

    /// Handle of a publication's mirror.
    struct SavedMirror: Codable, Hashable, Sendable {
        let home: RelayTarget
        let mirror: RelayTarget
    }

    /// Parts that have changed; `nil` stands for one that is gone.
    package struct UnsavedParts: Sendable {
        package var participants: [String: SavedParticipant?] = [:]
        package var streams: [String: Stream?] = [:]
        package var subscriptions: [UInt64: Subscription?] = [:]
    }

    package var saved: Saved {
        Saved(
            name: name,
            settings: settings,
            lifecycle: lifecycle,
            moderation: moderation,
            speakers: speakers.saved,
            taps: taps,
            firstWorker: placement.firstWorker,
            mirrors: placement.relays.flatMap { home, relay in
                relay.mirrors.map { worker, mirror in
                    let target = RelayTarget(worker: worker, publication: mirror.id)
                    return SavedMirror(home: home, mirror: target)
                }
            }
            .sorted {
                ($0.mirror.worker, $0.mirror.publication.index)
                    < ($1.mirror.worker, $1.mirror.publication.index)
            }
        )
    }

    /// Returns a participant as it is saved; `nil` if it has left.
    package func saved(participant id: String) -> SavedParticipant? {
        participants[id].map {
            SavedParticipant(participant: $0, following: speakers.followers[id])
        }
    }

    /// Returns the participants, streams and subscriptions that have changed since the last call.
    package mutating func takeUnsavedParts() -> UnsavedParts {
        var parts = UnsavedParts()
        for id in participants.takeUnsaved().union(speakers.followers.takeUnsaved()) {
            parts.participants[id] = .some(saved(participant: id))
        }
        for id in streams.takeUnsaved() { parts.streams[id] = .some(streams[id]) }
        for number in subscriptions.takeChanged() {
            parts.subscriptions[number] = .some(subscriptions[number])
        }
        return parts
    }
}

extension Room.ActiveSpeakers {
    fileprivate var saved: Room.SavedSpeakers {
        var talkers = lists.common
        // Each list of a talker's own has at most one that the common one has no place for.
        for talker in lists.common {
            for other in lists.own[talker.participant] ?? []
            where !talkers.contains(where: { $0.participant == other.participant }) {
                talkers.append(other)
            }
        }
        return Room.SavedSpeakers(
            talkers: talkers,
            announcedAt: announcedAt,
            isDue: announced != lists
        )
    }
}
