/// The newest elements of a series, as many as `capacity`.
///
/// It takes no memory before its first element, and grows as it fills: most series are short.
@safe
struct Trail<Element: BitwiseCopyable>: ~Copyable {
    private var places: UnsafeMutablePointer<Element>?
    private let limit: Int32
    /// Places that there are, a power of two.
    private var capacity: Int32
    private var added: Int32 = 0

    init(capacity: Int) {
        precondition(capacity.nonzeroBitCount == 1, "capacity must be a power of two")
        limit = Int32(capacity)
        self.capacity = min(limit, 8)
    }

    deinit { unsafe places?.deallocate() }

    /// Elements that are kept.
    var count: Int { Int(min(added, capacity)) }

    /// The element that was added as the `age`-th from the end; the newest has age 1.
    subscript(age age: Int) -> Element? {
        guard age >= 1, age <= count, let places = unsafe places else { return nil }
        return unsafe places[Int((added - Int32(age)) & (capacity - 1))]
    }

    /// Adds an element; where it is one too many, the oldest goes.
    mutating func append(_ element: Element) {
        if added == capacity, capacity < limit { grow() }
        let start = unsafe places ?? .allocate(capacity: Int(capacity))
        unsafe (start + Int(added & (capacity - 1))).initialize(to: element)
        unsafe places = start
        added += 1
        // Only where it is in the circle counts, and that it is full.
        if added == 2 * capacity { added = capacity }
    }

    /// Doubles what has just become full for the first time, so that all lies in order.
    private mutating func grow() {
        guard let old = unsafe places else { return }
        let larger = UnsafeMutablePointer<Element>.allocate(capacity: 2 * Int(capacity))
        unsafe larger.moveInitialize(from: old, count: Int(capacity))
        unsafe old.deallocate()
        unsafe places = larger
        capacity *= 2
    }
}
