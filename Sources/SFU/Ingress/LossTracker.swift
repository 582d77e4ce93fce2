import RTP

/// What is missing of a stream, and when to ask the publisher for it (RFC 4585 §6.2.1).
struct LossTracker: ~Copyable {
    /// Not private: Swift 6.3.1 fails to link a private element of a generic owner.
    struct Missing: BitwiseCopyable {
        var number: Int
        var askAt: Instant
        var since: Instant
        var tries: UInt8
    }

    /// Numbers waited for at once; a larger hole is a case for a keyframe.
    static let capacity = 256
    /// A packet is often merely late.
    static let reorderMilliseconds: Int64 = 5
    /// After that nobody would show it any more.
    static let patienceMilliseconds: Int64 = 1_000
    static let maximumTries: UInt8 = 10
    /// Numbers missing after a silence longer than that patience from which on it was an outage: of
    /// a slow screen share so many are not lost at once.
    static let outageGap = 10

    private var missing = List<Missing>(capacity: 16)
    /// Numbers given up; a sign that a keyframe is needed.
    private(set) var abandoned: UInt64 = 0

    var isEmpty: Bool { missing.isEmpty }

    /// Notes `gap` numbers before `newest` as missing; `silence` is how long ago the last packet
    /// came before them, in milliseconds.
    ///
    /// What an outage has lost is not waited for: it would come too late to be shown, and have a
    /// viewer's jitter buffer believe that the path delays like that.
    mutating func expect(gap: Int, before newest: Int, silence: Int64, at now: Instant) {
        guard gap > 0 else { return }
        let isOutage = gap >= Self.outageGap && silence > Self.patienceMilliseconds
        guard !isOutage, missing.count + gap <= Self.capacity else {
            abandoned &+= UInt64(missing.count + gap)
            missing.removeAll()
            return
        }
        let askAt = now.advanced(milliseconds: Self.reorderMilliseconds)
        for number in (newest &- gap)..<newest {
            missing.append(Missing(number: number, askAt: askAt, since: now, tries: 0))
        }
    }

    /// It came after all.
    mutating func found(_ number: Int) {
        for index in 0..<missing.count where missing[index].number == number {
            missing.remove(swappingAt: index)
            return
        }
    }

    mutating func removeAll() { missing.removeAll() }

    /// When the next request is due.
    var deadline: Instant? {
        guard !missing.isEmpty else { return nil }
        var earliest = missing[0].askAt
        for index in 1..<max(missing.count, 1) where missing[index].askAt < earliest {
            earliest = missing[index].askAt
        }
        return earliest
    }

    /// Appends the numbers to ask for now, ascending, and gives up those past hope.
    mutating func collect(
        dueAt now: Instant,
        retryMilliseconds: Int64,
        into due: inout List<SequenceNumber>
    ) {
        let start = due.count
        var index = 0
        while index < missing.count {
            var entry = missing[index]
            let isHopeless =
                entry.tries >= Self.maximumTries
                || now.milliseconds(since: entry.since) >= Self.patienceMilliseconds
            if isHopeless {
                missing.remove(swappingAt: index)
                abandoned &+= 1
                continue
            }
            if entry.askAt <= now {
                entry.tries += 1
                entry.askAt = now.advanced(milliseconds: retryMilliseconds)
                missing[index] = entry
                due.append(SequenceNumber(truncating: entry.number))
            }
            index += 1
        }
        sort(&due, from: start)
    }

    /// Insertion sort by age: few elements, mostly in order already.
    private func sort(_ due: inout List<SequenceNumber>, from start: Int) {
        guard due.count - start > 1 else { return }
        for index in (start + 1)..<due.count {
            let number = due[index]
            var hole = index
            while hole > start, due[hole - 1].distance(from: number) > 0 {
                due[hole] = due[hole - 1]
                hole -= 1
            }
            due[hole] = number
        }
    }
}
