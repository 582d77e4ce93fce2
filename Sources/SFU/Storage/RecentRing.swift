/// Ring of the newest elements of a series, at most `capacity`.
///
/// It allocates no memory before its first element and grows as it fills: most series are short.
@safe
struct RecentRing<Element: BitwiseCopyable>: ~Copyable {
    private var places: UnsafeMutablePointer<Element>?
    private let limit: Int32
    /// Number of places, once they are allocated; a power of two.
    private var capacity: Int32
    private var added: Int32 = 0

    init(capacity: Int) {
        precondition(capacity.nonzeroBitCount == 1, "capacity must be a power of two")
        limit = Int32(capacity)
        self.capacity = min(limit, 8)
    }

    deinit { unsafe places?.deallocate() }

    /// Number of elements kept.
    var count: Int { Int(min(added, capacity)) }

    /// Element added as the `age`-th from the end; the newest has age 1.
    subscript(age age: Int) -> Element? {
        guard age >= 1, age <= count, let places = unsafe places else { return nil }
        return unsafe places[Int((added - Int32(age)) & (capacity - 1))]
    }

    /// Appends an element; the oldest is overwritten if the ring is full at its limit.
    mutating func append(_ element: Element) {
        if added == capacity, capacity < limit { grow() }
        let start = unsafe places ?? .allocate(capacity: Int(capacity))
        unsafe (start + Int(added & (capacity - 1))).initialize(to: element)
        unsafe places = start
        added += 1
        // Keep the counter small: only its position in the ring and a full ring matter.
        if added == 2 * capacity { added = capacity }
    }

    /// Doubles the ring when it has just become full for the first time, while it lies in order.
    private mutating func grow() {
        guard let old = unsafe places else { return }
        let larger = UnsafeMutablePointer<Element>.allocate(capacity: 2 * Int(capacity))
        unsafe larger.moveInitialize(from: old, count: Int(capacity))
        unsafe old.deallocate()
        unsafe places = larger
        capacity *= 2
    }
}
