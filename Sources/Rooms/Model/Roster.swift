/// Element of a `Roster`.
package protocol RosterElement: Sendable {
    /// Creation order within the room; never changes.
    var birth: UInt64 { get }
    /// Whether listings include it; participants awaiting approval are listed separately.
    var isListed: Bool { get }
}

/// Dictionary with creation order and change tracking.
///
/// Every join returns the whole room. Sorting and encoding its lists for each join would make the
/// cost of joining quadratic in the number of participants.
package struct Roster<Element: RosterElement>: Sendable {
    /// Names sorted by the creation order of their elements.
    private struct Order: Sendable {
        private(set) var names: [String] = []
        private var births: [UInt64] = []

        mutating func insert(_ name: String, born birth: UInt64) {
            let place = place(of: birth)
            names.insert(name, at: place)
            births.insert(birth, at: place)
        }

        mutating func remove(born birth: UInt64) {
            let place = place(of: birth)
            names.remove(at: place)
            births.remove(at: place)
        }

        /// Returns the index of a creation number, or its insertion index.
        private func place(of birth: UInt64) -> Int {
            var low = 0
            var high = births.count
            while low < high {
                let middle = (low + high) / 2
                if births[middle] < birth { low = middle + 1 } else { high = middle }
            }
            return low
        }
    }

    private var elements: [String: Element] = [:]
    private var inList = Order()
    private var apart = Order()
    private var changed: Set<String> = []

    package var count: Int { elements.count }
    package var isEmpty: Bool { elements.isEmpty }
    package var keys: Dictionary<String, Element>.Keys { elements.keys }
    package var values: Dictionary<String, Element>.Values { elements.values }

    /// The listed elements, in creation order.
    package var listed: [Element] { inList.names.compactMap { elements[$0] } }
    /// The unlisted elements, in creation order.
    package var unlisted: [Element] { apart.names.compactMap { elements[$0] } }
    package var listedNames: [String] { inList.names }

    package subscript(name: String) -> Element? {
        get { elements[name] }
        _modify {
            let before = elements[name].map { ($0.birth, $0.isListed) }
            defer { reconcile(name, before) }
            yield &elements[name]
        }
    }

    /// Returns the names added, removed or modified since the last call.
    mutating func takeChanged() -> Set<String> {
        var taken: Set<String> = []
        swap(&taken, &changed)
        return taken
    }

    /// Updates the ordering and the change set after an access to `name`.
    private mutating func reconcile(_ name: String, _ before: (birth: UInt64, isListed: Bool)?) {
        changed.insert(name)
        let after = elements[name].map { (birth: $0.birth, isListed: $0.isListed) }
        if let before, let after, before == after { return }
        if let before {
            if before.isListed {
                inList.remove(born: before.birth)
            } else {
                apart.remove(born: before.birth)
            }
        }
        guard let after else { return }
        if after.isListed {
            inList.insert(name, born: after.birth)
        } else {
            apart.insert(name, born: after.birth)
        }
    }
}
