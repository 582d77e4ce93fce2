import RTP
import WorkerInterface

// Active-speaker list of a room and its announcements.

extension Room {
    /// Entry of the active-speaker list.
    package struct Talker: Hashable, Sendable, Codable {
        package var participant: String
        /// Stream to show for the participant; a pinned participant may have none.
        package var stream: String?
        package var isTalking: Bool
        package var isPinned: Bool
    }

    /// Active-speaker lists of all receivers.
    ///
    /// Nearly all share one list. Each participant on it has a list of its own, which leaves out
    /// itself.
    struct SpeakerLists: Hashable, Sendable {
        var common: [Talker] = []
        var own: [String: [Talker]] = [:]

        func list(for receiver: String) -> [Talker] { own[receiver] ?? common }
    }

    /// Active-speaker state: ranking, lists, announcements and followers.
    struct ActiveSpeakers: Sendable {
        var ranking = ActiveSpeakerRanking()
        /// Whether the lists must be rebuilt.
        var isStale = false
        /// Present lists; following slots use these.
        var lists = SpeakerLists()
        /// Lists as last announced.
        var announced = SpeakerLists()
        var announcedAt: Instant?
        /// Time at which changes since the last announcement are due.
        var due: Instant?
        /// Callers that have changed the lists since the last announcement; `nil` among them for
        /// the media or a call of the signalling server itself.
        var causes: Set<String?> = []
        /// Talking participants as last noted in recordings.
        var noted: [String] = []
        var followers = Followers()
    }

    /// Minimum interval between two announcements: at most three lists a second.
    ///
    /// In a noisy room the list changes faster than anyone can read. Forwarding does not wait for
    /// the announcement.
    static let talkersMilliseconds: Int64 = 334

    /// Active-speaker list without a particular receiver.
    package var speakerList: [Talker] { speakers.lists.common }

    /// Applies a worker's report of speech.
    ///
    /// Screen audio makes nobody an active speaker. Reports for a closed gate are ignored; they
    /// were under way when it closed.
    mutating func recordSpeech(_ what: SpeechChange, of place: WorkerResource) {
        guard let id = placement.owner(of: place),
            case .publication(let worker, let publication) = place,
            let transports = participants[id]?.transports
        else { return }
        for (index, transport) in transports.enumerated() where transport.place.worker == worker {
            guard let number = transport.tracks.firstIndex(where: { $0.publication == publication })
            else { continue }
            let track = transport.tracks[number]
            guard track.kind == .audio, track.gate == true else { return }
            var speaking: Instant?
            if case .began(let start) = what { speaking = start }
            participants[id]?.transports[index].tracks[number].speaking = speaking
            return rank(id)
        }
    }

    /// Updates a participant's rank from the state of its microphones.
    mutating func rank(_ id: String) {
        let tracks = participants[id]?.transports.flatMap(\.tracks) ?? []
        let voices = tracks.filter { $0.isVoice && $0.gate == true }
        if voices.isEmpty {
            speakers.ranking.remove(id)
        } else if voices.contains(where: { $0.speaking != nil }) {
            speakers.ranking.started(id)
        } else {
            speakers.ranking.stopped(id)
        }
        speakers.isStale = true
    }

    /// Rebuilds stale lists, reassigns following slots and announces changes.
    mutating func reconcileSpeakers(_ transaction: inout RoomTransaction) {
        guard !isClosed else { return }
        if speakers.isStale {
            speakers.isStale = false
            let before = speakers.lists
            speakers.lists = makeSpeakerLists()
            if speakers.lists != before { speakers.causes.insert(transaction.actor) }
            noteFollowers(of: before)
            feature(from: before, &transaction)
        }
        reconcileFollowers(&transaction)
        announceSpeakers(at: transaction.shared.now, &transaction)
    }

    /// Builds the lists: one for each participant on the common list, and the common one for the
    /// rest.
    ///
    /// Their number does not grow with the room.
    func makeSpeakerLists() -> SpeakerLists {
        var lists = SpeakerLists()
        lists.common = talkers(excluding: nil)
        for talker in lists.common {
            lists.own[talker.participant] = talkers(excluding: talker.participant)
        }
        return lists
    }

    private func talkers(excluding receiver: String?) -> [Talker] {
        let entries = speakers.ranking.list(
            limit: speakerLimit,
            pins: pins,
            excluding: receiver
        )
        return entries.map { entry in
            Talker(
                participant: entry.participant,
                stream: voice(of: entry.participant)?.id,
                isTalking: entry.isTalking,
                isPinned: entry.isPinned
            )
        }
    }

    /// Returns a participant's camera or microphone stream, preferring one with audio.
    private func voice(of participant: String) -> Stream? {
        let own = (participants[participant]?.streams ?? []).compactMap { streams[$0] }
            .filter { !$0.isScreen }
        return own.first { $0.audio != nil } ?? own.first
    }

    /// Announces each changed list to its receivers, unless the last announcement is too recent.
    private mutating func announceSpeakers(at now: Instant, _ transaction: inout RoomTransaction) {
        guard speakers.announced != speakers.lists else {
            speakers.due = nil
            speakers.causes = []
            return
        }
        if let last = speakers.announcedAt {
            let next = last.advanced(milliseconds: Self.talkersMilliseconds)
            guard next <= now else {
                speakers.due = next
                return
            }
        }
        let announced = speakers.announced
        let lists = speakers.lists
        speakers.announced = lists
        speakers.due = nil
        let cause = speakers.causes.count == 1 ? speakers.causes.first ?? nil : nil
        speakers.causes = []

        let special = Set(announced.own.keys).union(lists.own.keys)
        var audiences: [[Talker]: [String]] = [:]
        for id in special.sorted() where participants[id]?.admitted == true {
            guard announced.list(for: id) != lists.list(for: id) else { continue }
            audiences[lists.list(for: id), default: []].append(id)
        }
        let present = special.filter { participants[$0]?.admitted == true }
        if announced.common != lists.common, participants.listedNames.count > present.count {
            // One event for the many, whose audience stays short in a room of any size.
            let named = audiences.removeValue(forKey: lists.common) ?? []
            let others = present.subtracting(named).sorted()
            let audience: Audience = others.isEmpty ? .everyone : .except(others)
            transaction.announce(.talkersChanged(lists.common), to: audience, by: cause)
            speakers.announcedAt = now
        }
        // The list with the largest audience first, ties in the order of their receivers.
        let ordered = audiences.sorted { left, right in
            if left.value.count != right.value.count { return left.value.count > right.value.count }
            return left.value[0] < right.value[0]
        }
        for (list, audience) in ordered {
            transaction.announce(.talkersChanged(list), to: .only(audience), by: cause)
        }
        // Start the announcement interval only if someone was notified.
        if !ordered.isEmpty { speakers.announcedAt = now }
    }
}

extension Room.Track {
    /// Whether the track is a microphone; screen audio makes nobody an active speaker.
    var isVoice: Bool { kind == .audio && source != .screen }
}

// Load-shedding priority of videos: active speakers and pinned participants are shed last.

extension Room {
    /// Updates the workers if the participants whose video is shed last have changed.
    mutating func feature(from before: SpeakerLists, _ transaction: inout RoomTransaction) {
        let old = Set(before.common.map(\.participant))
        let new = Set(speakers.lists.common.map(\.participant))
        for id in old.symmetricDifference(new).sorted() {
            feature(id, new.contains(id), &transaction)
        }
    }

    /// Whether the participant is on the common active-speaker list.
    func isFeatured(_ id: String) -> Bool {
        speakers.lists.common.contains { $0.participant == id }
    }

    private mutating func feature(
        _ id: String,
        _ isFeatured: Bool,
        _ transaction: inout RoomTransaction
    ) {
        guard var owner = participants[id] else { return }
        for index in owner.transports.indices {
            let transport = owner.transports[index]
            for (number, track) in transport.tracks.enumerated()
            where track.kind == .video && track.configuration.isFeatured != isFeatured {
                owner.transports[index].tracks[number].configuration.isFeatured = isFeatured
                transaction.tell(transport.place.worker, .feature(track.publication, isFeatured))
                transaction.touch(transport.home(of: track))
            }
        }
        participants[id] = owner
    }
}
