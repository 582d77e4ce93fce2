import RTP

/// What is to happen, soonest first; of what is to happen at one time, in the order it was said.
struct Schedule<Happening> {
    private struct Entry {
        var time: Int64
        var order: UInt64
        var happening: Happening

        func comes(before other: Self) -> Bool {
            (time, order) < (other.time, other.order)
        }
    }

    /// A binary heap.
    private var entries: [Entry] = []
    private var lastOrder: UInt64 = 0

    var count: Int { entries.count }

    /// When the next thing happens, if any.
    var next: Instant? { entries.first.map { Instant(nanoseconds: $0.time) } }

    mutating func add(_ happening: Happening, at time: Instant) {
        lastOrder += 1
        let entry = Entry(time: time.nanoseconds, order: lastOrder, happening: happening)
        entries.append(entry)
        var place = entries.count - 1
        while place > 0, entries[place].comes(before: entries[(place - 1) / 2]) {
            entries.swapAt(place, (place - 1) / 2)
            place = (place - 1) / 2
        }
    }

    mutating func takeNext() -> (time: Instant, happening: Happening)? {
        guard let first = entries.first else { return nil }
        let last = entries.removeLast()
        if !entries.isEmpty {
            entries[0] = last
            sink()
        }
        return (Instant(nanoseconds: first.time), first.happening)
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
