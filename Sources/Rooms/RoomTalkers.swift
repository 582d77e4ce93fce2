package import RTP
import WorkerInterface

// Who is heard and seen: the list of active talkers (EnableX, E-33 to E-36), and its news.

extension Room {
    /// One place in the list of active talkers.
    package struct Talker: Hashable, Sendable {
        package var participant: String
        /// What to watch of it; a pinned participant may have none.
        package var stream: String?
        package var isTalking: Bool
        package var isPinned: Bool
    }

    /// The lists of all receivers: one for nearly all, and for those on it one each, without
    /// themselves (E-33).
    struct TalkerLists: Hashable, Sendable {
        var common: [Talker] = []
        var own: [String: [Talker]] = [:]

        func list(for receiver: String) -> [Talker] { own[receiver] ?? common }
    }

    /// Who has spoken, what receivers were told of it, and whose slots follow it.
    struct Talkers: Sendable {
        var ranking = TalkerRanking()
        /// Something has changed that lists are made of.
        var isStale = false
        /// As they are; slots follow these.
        var lists = TalkerLists()
        /// As receivers were told last.
        var told = TalkerLists()
        var toldAt: Instant?
        /// When receivers are to be told what has changed since.
        var due: Instant?
        /// Who talked, as the records of the room have it.
        var noted: [String] = []
        var followers = Followers()
    }

    /// Between two tellings, so that nobody hears of more than three lists a second.
    ///
    /// In a noisy room the list changes more often than anyone can read. What is forwarded does not
    /// wait for that.
    static let talkersMilliseconds: Int64 = 334

    /// The list for nobody in particular.
    package var talkerList: [Talker] { talkers.lists.common }

    /// When `expire` has something to do, if ever.
    package var deadline: Instant? { talkers.due }

    /// Does what is due; `shared.now` says what time it is.
    package mutating func expire(_ shared: inout Shared) -> Change {
        var change = Change()
        settleTalkers(&shared, &change)
        settleTaps(&shared, &change)
        settleRelays(&change)
        return change
    }

    /// Takes up what a worker has heard.
    ///
    /// The sound of a shared screen is no talker (E-34), and who may not be heard is none either:
    /// what was on its way when the gate closed comes to nothing.
    mutating func hear(_ what: SpeechChange, of place: Place) {
        guard let id = owners[place], case .publication(let worker, let publication) = place,
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

    /// Brings a participant's place in the ranking to what its microphones say.
    mutating func rank(_ id: String) {
        let tracks = participants[id]?.transports.flatMap(\.tracks) ?? []
        let voices = tracks.filter { $0.isVoice && $0.gate == true }
        if voices.isEmpty {
            talkers.ranking.remove(id)
        } else if voices.contains(where: { $0.speaking != nil }) {
            talkers.ranking.started(id)
        } else {
            talkers.ranking.stopped(id)
        }
        talkers.isStale = true
    }

    /// Makes the lists anew where need be, turns the slots that follow them, and tells receivers.
    mutating func settleTalkers(_ shared: inout Shared, _ change: inout Change) {
        guard !isClosed else { return }
        if talkers.isStale {
            talkers.isStale = false
            let before = talkers.lists
            talkers.lists = talkerLists()
            noteFollowers(of: before)
            feature(from: before, &change)
        }
        settleFollowers(&shared, &change)
        tellTalkers(at: shared.now, &change)
    }

    /// Only who is on the common list has another one: the rest of a room of any size shares it.
    private func talkerLists() -> TalkerLists {
        var lists = TalkerLists()
        lists.common = talkers(excluding: nil)
        for talker in lists.common {
            lists.own[talker.participant] = talkers(excluding: talker.participant)
        }
        return lists
    }

    private func talkers(excluding receiver: String?) -> [Talker] {
        let entries = talkers.ranking.list(
            limit: settings.maxActiveTalkers,
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

    /// The stream of a participant that is no screen, one with a microphone before others.
    private func voice(of participant: String) -> Stream? {
        let own = (participants[participant]?.streams ?? []).compactMap { streams[$0] }
            .filter { !$0.isScreen }
        return own.first { $0.audio != nil } ?? own.first
    }

    /// Tells each list that is new to those whose it is, unless they have been told just now.
    private mutating func tellTalkers(at now: Instant, _ change: inout Change) {
        guard talkers.told != talkers.lists else {
            talkers.due = nil
            return
        }
        if let last = talkers.toldAt {
            let next = last.advanced(milliseconds: Self.talkersMilliseconds)
            guard next <= now else {
                talkers.due = next
                return
            }
        }
        let told = talkers.told
        let lists = talkers.lists
        talkers.told = lists
        talkers.due = nil

        let special = Set(told.own.keys).union(lists.own.keys)
        var audiences: [[Talker]: [String]] = [:]
        for id in special.sorted() where participants[id]?.admitted == true {
            guard told.list(for: id) != lists.list(for: id) else { continue }
            audiences[lists.list(for: id), default: []].append(id)
        }
        if told.common != lists.common {
            let others = participants.listedNames.filter { !special.contains($0) }
            if !others.isEmpty { audiences[lists.common, default: []] += others }
        }
        // The list of most comes first, the others in the order of who gets them.
        let ordered = audiences.sorted { left, right in
            if left.value.count != right.value.count { return left.value.count > right.value.count }
            return left.value[0] < right.value[0]
        }
        for (list, audience) in ordered {
            change.announce(.talkersChanged(list), to: .only(audience))
        }
        // What nobody hears of takes nobody's turn.
        if !ordered.isEmpty { talkers.toldAt = now }
    }
}

extension Room.Track {
    /// A microphone's: a screen's sound makes nobody a talker.
    var isVoice: Bool { kind == .audio && source != .screen }
}
