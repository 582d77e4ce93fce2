/// Who of a room has spoken, the newest first; and whom a receiver should hear and see.
///
/// It knows starts and ends of speech by the order in which it is told. What it costs to tell it
/// something, or to make a list, does not grow with the room: only talkers, pins and the limit
/// count.
package struct TalkerRanking: Sendable {
    /// One place of a list.
    package struct Entry: Hashable, Sendable {
        package var participant: String
        package var isTalking: Bool
        package var isPinned: Bool

        package init(participant: String, isTalking: Bool, isPinned: Bool) {
            self.participant = participant
            self.isTalking = isTalking
            self.isPinned = isPinned
        }
    }

    /// The newest start of somebody's speech; all starts of the room are numbered.
    private struct Start: Sendable {
        var number: Int
        var participant: String
    }

    private struct Speaker: Sendable {
        var number: Int
        var isTalking: Bool
    }

    private var speakers: [String: Speaker] = [:]
    /// Those who talk and those who fell silent, each with the newest start last.
    private var talking: [Start] = []
    private var silent: [Start] = []
    private var starts = 0

    package init() {}

    /// Puts whoever begins to talk before all others; who talks already stays where it is.
    package mutating func started(_ participant: String) {
        if let speaker = speakers[participant] {
            guard !speaker.isTalking else { return }
            Self.remove(speaker.number, from: &silent)
        }
        starts += 1
        speakers[participant] = Speaker(number: starts, isTalking: true)
        talking.append(Start(number: starts, participant: participant))
    }

    /// Somebody falls silent, and keeps the place until another needs it.
    package mutating func stopped(_ participant: String) {
        guard let speaker = speakers[participant], speaker.isTalking else { return }
        Self.remove(speaker.number, from: &talking)
        let start = Start(number: speaker.number, participant: participant)
        silent.insert(start, at: Self.position(of: speaker.number, in: silent))
        speakers[participant]?.isTalking = false
    }

    /// Forgets somebody who was muted, lost the right to speak, or left.
    package mutating func remove(_ participant: String) {
        guard let speaker = speakers.removeValue(forKey: participant) else { return }
        if speaker.isTalking {
            Self.remove(speaker.number, from: &talking)
        } else {
            Self.remove(speaker.number, from: &silent)
        }
    }

    /// The list for one receiver, or with `receiver` nil for nobody in particular (EnableX, E-33).
    ///
    /// Members are the pinned, then those who talk, then those who talked, the newest first; the
    /// order is that of the newest starts of speech, and behind them the pinned who are silent, as
    /// they were pinned. Whoever is not on nobody's list gets just that one.
    ///
    /// The pinned count against the limit, and of more pins than that the first ones are taken.
    /// `pins` are in the order in which they were pinned; `receiver` never is on its own list,
    /// because nobody hears itself.
    package func list(limit: Int, pins: [String], excluding receiver: String?) -> [Entry] {
        var pinned: [String] = []
        for pin in pins where pin != receiver && pinned.count < limit && !pinned.contains(pin) {
            pinned.append(pin)
        }
        let isFree = { (start: Start) in
            start.participant != receiver && !pinned.contains(start.participant)
        }
        let places = max(0, limit) - pinned.count
        var members = Self.newest(places, of: talking, where: isFree)
        members += Self.newest(places - members.count, of: silent, where: isFree)
        for pin in pinned {
            guard let speaker = speakers[pin], speaker.isTalking else { continue }
            members.append(Start(number: speaker.number, participant: pin))
        }
        members.sort { $0.number > $1.number }

        var list = members.map { member in
            let name = member.participant
            return Entry(
                participant: name,
                isTalking: speakers[name]?.isTalking == true,
                isPinned: pinned.contains(name)
            )
        }
        for pin in pinned where speakers[pin]?.isTalking != true {
            list.append(Entry(participant: pin, isTalking: false, isPinned: true))
        }
        return list
    }

    private static func newest(
        _ count: Int,
        of starts: [Start],
        where isWanted: (Start) -> Bool
    ) -> [Start] {
        var found: [Start] = []
        for start in starts.reversed() {
            guard found.count < count else { break }
            if isWanted(start) { found.append(start) }
        }
        return found
    }

    private static func remove(_ number: Int, from starts: inout [Start]) {
        let place = position(of: number, in: starts)
        guard place < starts.count, starts[place].number == number else { return }
        starts.remove(at: place)
    }

    /// Where a start with this number is, or would be.
    private static func position(of number: Int, in starts: [Start]) -> Int {
        var (low, high) = (0, starts.count)
        while low < high {
            let middle = (low + high) / 2
            if starts[middle].number < number { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
