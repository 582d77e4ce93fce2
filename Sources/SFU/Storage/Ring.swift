/// Fixed ring buffer on the heap, indexed by an ever-growing number.
///
/// Not an `InlineArray`: reading one through a borrowed `self` copies all of it (Swift 6.3).
@safe
struct Ring<Element: BitwiseCopyable>: ~Copyable {
    private let slots: UnsafeMutablePointer<Element>
    private let mask: Int

    init(capacity: Int, filledWith element: Element) {
        precondition(capacity.nonzeroBitCount == 1, "capacity must be a power of two")
        unsafe slots = .allocate(capacity: capacity)
        unsafe slots.initialize(repeating: element, count: capacity)
        mask = capacity - 1
    }

    deinit { unsafe slots.deallocate() }

    var capacity: Int { mask + 1 }

    /// Element for a hash; safe for every value, as with an index.
    subscript(hash: UInt64) -> Element {
        get { unsafe slots[Int(truncatingIfNeeded: hash) & mask] }
        set { unsafe slots[Int(truncatingIfNeeded: hash) & mask] = newValue }
    }

    /// Element for an index; safe for every value, as the mask keeps it inside the allocation.
    subscript(index: Int) -> Element {
        get { unsafe slots[index & mask] }
        set { unsafe slots[index & mask] = newValue }
    }
}
