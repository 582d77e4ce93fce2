import RTP

/// Missing packets of a stream, with the times of their NACKs (RFC 4585 §6.2.1).
struct LossTracker: ~Copyable {
    /// Not private: Swift 6.3.1 fails to link a private element of a generic owner.
    struct Missing: BitwiseCopyable {
        var number: Int
        var askAt: Instant
        var since: Instant
        var tries: UInt8
    }

    /// Missing packets tracked at once; a larger gap is left to a keyframe.
    static let capacity = 256
    /// Delay before the first NACK, as packets are often only reordered.
    static let reorderMilliseconds: Int64 = 5
    /// Age after which a packet is too late to be shown.
    static let patienceMilliseconds: Int64 = 1_000
    static let maximumTries: UInt8 = 10
    /// Number of missing packets from which a gap counts as an outage, if it follows a silence
    /// longer than `patienceMilliseconds`; a slow screen share does not lose so many at once.
    static let outageGap = 10

    private var missing = UncountedArray<Missing>(capacity: 16)
    /// Packets given up; an increase means that a keyframe is needed.
    private(set) var abandoned: UInt64 = 0

    var isEmpty: Bool { missing.isEmpty }

    /// Records `gap` numbers before `newest` as missing; `silence` is the time since the last
    /// packet before them, in milliseconds.
    ///
    /// Packets lost in an outage are not requested: they would arrive too late to be shown, and
    /// inflate the delay estimate of subscribers' jitter buffers.
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

    /// Removes a number that has arrived late.
    mutating func found(_ number: Int) {
        for index in 0..<missing.count where missing[index].number == number {
            missing.remove(swappingAt: index)
            return
        }
    }

    mutating func removeAll() { missing.removeAll() }

    /// Time of the next NACK; `nil` if no packet is missing.
    var deadline: Instant? {
        guard !missing.isEmpty else { return nil }
        var earliest = missing[0].askAt
        for index in 1..<max(missing.count, 1) where missing[index].askAt < earliest {
            earliest = missing[index].askAt
        }
        return earliest
    }

    /// Appends the numbers to request now, in ascending order, and gives up the hopeless ones.
    mutating func collect(
        dueAt now: Instant,
        retryMilliseconds: Int64,
        into due: inout UncountedArray<SequenceNumber>
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

    /// Sorts by age; insertion sort suits few elements that are mostly in order.
    private func sort(_ due: inout UncountedArray<SequenceNumber>, from start: Int) {
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
