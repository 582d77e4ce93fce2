import RTP
import WorkerInterface

/// Deadlines of transports, in a binary heap.
///
/// A transport that moves its deadline forward is entered again. The later entry finds nothing due
/// when its time comes, which costs less than removing it would.
struct TimerQueue: ~Copyable {
    struct Entry: BitwiseCopyable {
        var deadline: Instant
        var transport: TransportID
    }

    private var heap = UncountedArray<Entry>(capacity: 64)

    var first: Instant? { heap.isEmpty ? nil : heap[0].deadline }

    mutating func insert(_ transport: TransportID, at deadline: Instant) {
        heap.append(Entry(deadline: deadline, transport: transport))
        var child = heap.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard heap[child].deadline < heap[parent].deadline else { return }
            exchange(child, parent)
            child = parent
        }
    }

    /// Removes and returns the first entry, if it is due.
    mutating func pop(dueAt now: Instant) -> Entry? {
        guard !heap.isEmpty, heap[0].deadline <= now else { return nil }
        let first = heap[0]
        heap.remove(swappingAt: 0)
        var parent = 0
        while true {
            var least = parent
            for child in (2 * parent + 1)...(2 * parent + 2) where child < heap.count {
                if heap[child].deadline < heap[least].deadline { least = child }
            }
            guard least != parent else { return first }
            exchange(parent, least)
            parent = least
        }
    }

    private mutating func exchange(_ left: Int, _ right: Int) {
        let entry = heap[left]
        heap[left] = heap[right]
        heap[right] = entry
    }
}
