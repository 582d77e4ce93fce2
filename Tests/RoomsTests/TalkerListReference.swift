@testable import Rooms

/// Reference implementation of E-33 with its ruling, word by word: sets, slow and simple.
struct TalkerListReference {
    /// Number of the newest start of speech of each speaker who was not removed.
    private var newestStart: [String: Int] = [:]
    private var talking: Set<String> = []
    private var time = 0

    mutating func started(_ participant: String) {
        time += 1
        if talking.contains(participant) { return }
        talking.insert(participant)
        newestStart[participant] = time
    }

    mutating func stopped(_ participant: String) { talking.remove(participant) }

    mutating func remove(_ participant: String) {
        talking.remove(participant)
        newestStart[participant] = nil
    }

    func list(
        limit: Int,
        pins: [String],
        excluding receiver: String?
    ) -> [ActiveSpeakerRanking.Entry] {
        // P = pins ∖ r (if there are more pins than places, the first ones); T = speakers so far ∖
        // r.
        let pinned = pins.filter { $0 != receiver }.prefix(max(0, limit))
        let spoken = Set(newestStart.keys).subtracting([receiver].compactMap { $0 })
        // S = P ∪ the first N − |P| of T ∖ P: talkers first, newest starts first.
        let others = spoken.subtracting(pinned).sorted { left, right in
            if talking.contains(left) != talking.contains(right) { return talking.contains(left) }
            return start(left) > start(right)
        }
        let members = Set(pinned).union(others.prefix(max(0, limit - pinned.count)))
        // Unpinned members and pinned talkers by newest start, then silent pins in their order.
        let isLast = { (name: String) in pinned.contains(name) && !talking.contains(name) }
        let first = members.filter { !isLast($0) }.sorted { start($0) > start($1) }
        return (first + pinned.filter(isLast)).map { name in
            ActiveSpeakerRanking.Entry(
                participant: name,
                isTalking: talking.contains(name),
                isPinned: pinned.contains(name)
            )
        }
    }

    private func start(_ participant: String) -> Int { newestStart[participant] ?? 0 }
}
