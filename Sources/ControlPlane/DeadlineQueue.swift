import RTP

/// Deadlines by name, of which the earliest is found at once.
///
/// A binary heap whose outdated entries are removed when they come to the top. Setting or removing
/// a deadline costs O(log n).
struct DeadlineQueue {
    private struct Entry {
        var deadline: Instant
        var name: String
    }

    private var deadlines: [String: Instant] = [:]
    /// Every present deadline, among entries that are out of date; the top is a present one.
    private var heap: [Entry] = []

    var count: Int { deadlines.count }
    var first: Instant? { heap.first?.deadline }

    /// Sets a deadline, or removes it (`nil`).
    mutating func set(_ deadline: Instant?, of name: String) {
        guard deadlines[name] != deadline else { return }
        deadlines[name] = deadline
        if let deadline {
            heap.append(Entry(deadline: deadline, name: name))
            moveUp(heap.count - 1)
        }
        removeOutdated()
    }

    /// Returns the names whose deadlines have passed, in order, so that runs are reproducible.
    ///
    /// They keep their deadlines until others are set.
    mutating func due(at now: Instant) -> [String] {
        var due: [Entry] = []
        while let entry = heap.first, entry.deadline <= now {
            due.append(entry)
            removeTop()
            removeOutdated()
        }
        for entry in due {
            heap.append(entry)
            moveUp(heap.count - 1)
        }
        return Set(due.map(\.name)).sorted()
    }

    private mutating func removeOutdated() {
        while let entry = heap.first, deadlines[entry.name] != entry.deadline { removeTop() }
        // Deadlines that are postponed again and again leave entries below the top.
        guard heap.count > 64, heap.count > deadlines.count * 4 else { return }
        heap = deadlines.map { Entry(deadline: $0.value, name: $0.key) }
        heap.sort { $0.deadline < $1.deadline }
    }

    private mutating func removeTop() {
        guard let last = heap.popLast(), !heap.isEmpty else { return }
        heap[0] = last
        moveDown()
    }

    private mutating func moveUp(_ start: Int) {
        var child = start
        while child > 0 {
            let parent = (child - 1) / 2
            guard heap[child].deadline < heap[parent].deadline else { return }
            heap.swapAt(child, parent)
            child = parent
        }
    }

    private mutating func moveDown() {
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2]
            where child < heap.count && heap[child].deadline < heap[least].deadline {
                least = child
            }
            guard least != parent else { return }
            heap.swapAt(parent, least)
            parent = least
        }
    }
}
