/// The newest elements of a series, as many as `capacity`.
///
/// It takes no memory before its first element: most series never have one.
@safe
struct Trail<Element: BitwiseCopyable>: ~Copyable {
    private var places: UnsafeMutablePointer<Element>?
    private let capacity: Int32
    private var added: Int32 = 0

    init(capacity: Int) {
        precondition(capacity.nonzeroBitCount == 1, "capacity must be a power of two")
        self.capacity = Int32(capacity)
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
        let start = unsafe places ?? .allocate(capacity: Int(capacity))
        unsafe (start + Int(added & (capacity - 1))).initialize(to: element)
        unsafe places = start
        added += 1
        // Only where it is in the circle counts, and that it is full.
        if added == 2 * capacity { added = capacity }
    }
}
