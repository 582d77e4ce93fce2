/// Growing array of plain values without reference counts: unlike `Array`, iterating needs no
/// retain.
///
/// It grows on the control path only; nothing in the packet path appends past `reserve`.
@safe
struct UncountedArray<Element: BitwiseCopyable>: ~Copyable {
    private var slots: UnsafeMutablePointer<Element>
    private var capacity: Int
    private(set) var count = 0

    init(capacity: Int = 4) {
        self.capacity = max(capacity, 1)
        unsafe slots = .allocate(capacity: self.capacity)
    }

    deinit { unsafe slots.deallocate() }

    var isEmpty: Bool { count == 0 }
    var last: Element? { isEmpty ? nil : self[count - 1] }
    var first: Element? { isEmpty ? nil : self[0] }

    subscript(index: Int) -> Element {
        get {
            precondition(index >= 0 && index < count)
            return unsafe slots[index]
        }
        set {
            precondition(index >= 0 && index < count)
            unsafe slots[index] = newValue
        }
    }

    /// Borrowed view of the elements.
    var span: Span<Element> {
        @_lifetime(borrow self)
        get {
            let span = unsafe Span(_unsafeStart: UnsafePointer(slots), count: count)
            return unsafe _overrideLifetime(span, borrowing: self)
        }
    }

    mutating func append(_ element: Element) {
        if count == capacity { grow() }
        unsafe (slots + count).initialize(to: element)
        count += 1
    }

    /// Removes an element; the last one moves into its place.
    mutating func remove(swappingAt index: Int) {
        precondition(index >= 0 && index < count)
        count -= 1
        unsafe slots[index] = slots[count]
    }

    mutating func removeLast() -> Element {
        precondition(count > 0)
        count -= 1
        return unsafe slots[count]
    }

    mutating func removeAll() { count = 0 }

    /// Removes all elements from `index` on.
    mutating func removeAll(from index: Int) {
        precondition(index >= 0 && index <= count)
        count = index
    }

    /// Reserves capacity for `minimum` elements in all.
    mutating func reserve(_ minimum: Int) {
        while capacity < minimum { grow() }
    }

    private mutating func grow() {
        let larger = UnsafeMutablePointer<Element>.allocate(capacity: capacity * 2)
        unsafe larger.moveInitialize(from: slots, count: count)
        unsafe slots.deallocate()
        unsafe slots = larger
        capacity *= 2
    }
}

extension UncountedArray where Element: Comparable {
    /// Inserts `element` into a sorted list.
    mutating func insert(sorted element: Element) {
        let place = place(ofSorted: element)
        append(element)
        var index = count - 1
        while index > place {
            self[index] = self[index - 1]
            index -= 1
        }
        self[place] = element
    }

    /// Removes `element` from a sorted list, if it is present.
    mutating func remove(sorted element: Element) {
        let place = place(ofSorted: element)
        guard place < count, self[place] == element else { return }
        for index in place..<count - 1 { self[index] = self[index + 1] }
        _ = removeLast()
    }

    /// Returns the index of `element`, or the index at which it would be inserted.
    private func place(ofSorted element: Element) -> Int {
        var low = 0
        var high = count
        while low < high {
            let middle = (low + high) / 2
            if self[middle] < element { low = middle + 1 } else { high = middle }
        }
        return low
    }
}

extension UncountedArray where Element: Equatable {
    /// Removes `element`, if it is present; the last one moves into its place.
    mutating func remove(_ element: Element) {
        for index in 0..<count where self[index] == element {
            remove(swappingAt: index)
            return
        }
    }

    func contains(_ element: Element) -> Bool {
        for index in 0..<count where self[index] == element { return true }
        return false
    }
}
