/// Elements in ascending order; the first one is removed in constant time on average.
struct SortedQueue<Element: Comparable> {
    private var elements: [Element] = []
    /// Index of the first element; those before it have been removed.
    private var head = 0

    var count: Int { elements.count &- head }
    var first: Element? { head < elements.count ? elements[head] : nil }

    mutating func insert(_ element: Element) {
        var low = head
        var high = elements.count
        // Most come in order.
        if let last = elements.last, last < element { low = high }
        while low < high {
            let middle = low &+ (high &- low) / 2
            if elements[middle] < element { low = middle &+ 1 } else { high = middle }
        }
        elements.insert(element, at: low)
    }

    mutating func removeFirst() {
        guard head < elements.count else { return }
        head &+= 1
        // Only once they exceed half of the array, so that an element moves once on average.
        if head > elements.count / 2 { compact() }
    }

    mutating func removeAll(where isRemoved: (Element) -> Bool) {
        compact()
        elements.removeAll(where: isRemoved)
    }

    private mutating func compact() {
        elements.removeSubrange(..<head)
        head = 0
    }
}
