/// Ranking of a room's speakers, the most recent first, and the list of active speakers for each
/// receiver.
///
/// Starts and ends of speech count in the order of the calls. The cost of an update or a list
/// depends on the number of speakers, pins and the limit, not on the size of the room.
package struct ActiveSpeakerRanking: Sendable {
    /// Entry of an active speaker list.
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

    /// Most recent start of a participant's speech; all starts in the room are numbered.
    private struct Start: Sendable {
        var number: Int
        var participant: String
    }

    private struct Speaker: Sendable {
        var number: Int
        var isTalking: Bool
    }

    private var speakers: [String: Speaker] = [:]
    /// Participants who talk, and those who have stopped; the most recent start is last.
    private var talking: [Start] = []
    private var silent: [Start] = []
    private var starts = 0

    package init() {}

    /// Moves a participant who starts to talk to the front; one who already talks keeps the
    /// position.
    package mutating func started(_ participant: String) {
        if let speaker = speakers[participant] {
            guard !speaker.isTalking else { return }
            Self.remove(speaker.number, from: &silent)
        }
        starts += 1
        speakers[participant] = Speaker(number: starts, isTalking: true)
        talking.append(Start(number: starts, participant: participant))
    }

    /// Marks a participant as silent; the position is kept until another participant needs it.
    package mutating func stopped(_ participant: String) {
        guard let speaker = speakers[participant], speaker.isTalking else { return }
        Self.remove(speaker.number, from: &talking)
        let start = Start(number: speaker.number, participant: participant)
        silent.insert(start, at: Self.position(of: speaker.number, in: silent))
        speakers[participant]?.isTalking = false
    }

    /// Removes a participant who was muted, lost the right to speak, or left.
    package mutating func remove(_ participant: String) {
        guard let speaker = speakers.removeValue(forKey: participant) else { return }
        if speaker.isTalking {
            Self.remove(speaker.number, from: &talking)
        } else {
            Self.remove(speaker.number, from: &silent)
        }
    }

    /// Returns the active speaker list for one receiver, or the general list if `receiver` is
    /// `nil`.
    ///
    /// Members are the pinned participants, then those who talk, then those who talked before, the
    /// most recent first. They are ordered by their latest start of speech; silent pinned
    /// participants follow in the order of their pins. A receiver that is not on the general list
    /// gets exactly that list.
    ///
    /// Pins count against the limit; if there are more, the first ones are taken. `pins` are in the
    /// order in which they were pinned. `receiver` is never on its own list, because no participant
    /// receives its own media.
    package func list(limit: Int, pins: [String], excluding receiver: String?) -> [Entry] {
        var pinned: [String] = []
        var isPinned: Set<String> = []
        for pin in pins where pin != receiver && pinned.count < limit {
            if isPinned.insert(pin).inserted { pinned.append(pin) }
        }
        let isFree = { (start: Start) in
            start.participant != receiver && !isPinned.contains(start.participant)
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
                isPinned: isPinned.contains(name)
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

    /// Returns the index of the start with this number, or its insertion index.
    private static func position(of number: Int, in starts: [Start]) -> Int {
        var (low, high) = (0, starts.count)
        while low < high {
            let middle = (low + high) / 2
            if starts[middle].number < number { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
