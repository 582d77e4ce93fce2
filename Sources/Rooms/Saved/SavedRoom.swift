import RTP
package import WorkerInterface

// A room in parts that are saved one by one, so that a call saves only what it has changed.

extension Room {
    /// Room as it is saved, without its settings and without what has records of its own.
    ///
    /// It holds nothing that grows with the number of participants, except for lists of those who
    /// wait for something.
    package struct Saved: Codable, Sendable {
        package let name: String
        let lifecycle: Lifecycle
        let moderation: Moderation
        let speakers: SavedSpeakers
        let taps: Taps
        let firstWorker: Int
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

    /// Outcome of a transport's offers, as it is saved.
    package struct SavedNegotiation: Codable, Sendable {
        package let transport: TransportLocation
        let state: NegotiatedState
    }

    /// Handles of a publication's mirrors; all else about them follows from the publications and
    /// the slots.
    package struct SavedMirrors: Codable, Sendable {
        package let home: RelayTarget
        package let mirrors: [RelayTarget]

        package init(home: RelayTarget, mirrors: [RelayTarget]) {
            self.home = home
            self.mirrors = mirrors
        }
    }

    /// Parts that have changed; `nil` stands for one that is gone.
    package struct UnsavedParts: Sendable {
        package var participants: [String: SavedParticipant?] = [:]
        package var streams: [String: Stream?] = [:]
        package var subscriptions: [UInt64: Subscription?] = [:]
        /// Negotiations by a name of their transport.
        package var negotiations: [String: SavedNegotiation?] = [:]
        /// Mirrors by a name of their home.
        package var mirrors: [String: SavedMirrors?] = [:]
    }

    package var saved: Saved {
        Saved(
            name: name,
            lifecycle: lifecycle,
            moderation: moderation,
            speakers: speakers.saved,
            taps: taps,
            firstWorker: placement.firstWorker
        )
    }

    /// Returns a participant as it is saved; `nil` if it has left.
    package func saved(participant id: String) -> SavedParticipant? {
        participants[id].map {
            SavedParticipant(participant: $0, following: speakers.followers[id])
        }
    }

    /// Returns the outcome of a transport's offers as it is saved.
    package func savedNegotiation(of transport: TransportLocation) -> SavedNegotiation? {
        placement.negotiated[transport].map { SavedNegotiation(transport: transport, state: $0) }
    }

    /// Returns the parts that have changed since the last call.
    package mutating func takeUnsavedParts() -> UnsavedParts {
        var parts = UnsavedParts()
        for id in participants.takeUnsaved().union(speakers.followers.takeUnsaved()) {
            parts.participants[id] = .some(saved(participant: id))
        }
        for id in streams.takeUnsaved() { parts.streams[id] = .some(streams[id]) }
        for number in subscriptions.takeChanged() {
            parts.subscriptions[number] = .some(subscriptions[number])
        }
        for transport in placement.negotiated.takeChanged() {
            let saved = placement.negotiated[transport].map { state in
                SavedNegotiation(transport: transport, state: state)
            }
            parts.negotiations[transport.id.savedName(in: transport.worker)] = .some(saved)
        }
        for home in placement.relays.takeChanged() {
            let mirrors = placement.relays[home].map { relay in
                SavedMirrors(home: home, mirrors: relay.targets)
            }
            parts.mirrors[home.publication.savedName(in: home.worker)] = .some(mirrors)
        }
        return parts
    }
}

extension Handle {
    /// Name of a record about this object, which no other object of its kind ever has.
    fileprivate func savedName(in worker: Int) -> String { "\(worker).\(index).\(generation)" }
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
