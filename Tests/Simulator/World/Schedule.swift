import RTP

/// A queue of future events by time; simultaneous events keep their order of insertion.
struct Schedule<ScheduledEvent> {
    /// A heap entry, kept small as it moves often.
    private struct Entry {
        var time: Int64
        var order: UInt64
        /// Index in `happenings`.
        var place: Int

        func comes(before other: Self) -> Bool {
            time < other.time || (time == other.time && order < other.order)
        }
    }

    /// A binary heap.
    private var entries: [Entry] = []
    private var happenings: [ScheduledEvent?] = []
    private var free: [Int] = []
    private var lastOrder: UInt64 = 0

    var count: Int { entries.count }

    /// Time of the next event, if any.
    var next: Instant? { entries.first.map { Instant(nanoseconds: $0.time) } }

    mutating func add(_ happening: ScheduledEvent, at time: Instant) {
        lastOrder += 1
        let home = free.popLast() ?? happenings.count
        if home == happenings.count {
            happenings.append(happening)
        } else {
            happenings[home] = happening
        }
        entries.append(Entry(time: time.nanoseconds, order: lastOrder, place: home))
        var place = entries.count - 1
        while place > 0, entries[place].comes(before: entries[(place - 1) / 2]) {
            entries.swapAt(place, (place - 1) / 2)
            place = (place - 1) / 2
        }
    }

    mutating func takeNext() -> (time: Instant, happening: ScheduledEvent)? {
        guard let first = entries.first, let happening = happenings[first.place].take() else {
            return nil
        }
        free.append(first.place)
        let last = entries.removeLast()
        if !entries.isEmpty {
            entries[0] = last
            sink()
        }
        return (Instant(nanoseconds: first.time), happening)
    }

    private mutating func sink() {
        var place = 0
        while true {
            var least = place
            for child in [2 * place + 1, 2 * place + 2] where child < entries.count {
                if entries[child].comes(before: entries[least]) { least = child }
            }
            guard least != place else { return }
            entries.swapAt(place, least)
            place = least
        }
    }
}
