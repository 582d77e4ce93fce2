/// Element of a `Roster`.
package protocol RosterElement: Sendable {
    /// Creation order within the room; never changes.
    var birth: UInt64 { get }
    /// Whether listings include it; participants awaiting approval are listed separately.
    var isListed: Bool { get }
    /// Whether the element is among those that are looked up often, such as moderators.
    var isMarked: Bool { get }
}

extension RosterElement {
    package var isMarked: Bool { false }
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

        /// Returns the names born after `birth`, with the creation number of each.
        func names(after birth: UInt64) -> Zip2Sequence<ArraySlice<String>, ArraySlice<UInt64>> {
            let (next, overflow) = birth.addingReportingOverflow(1)
            let start = overflow ? births.count : place(of: next)
            return zip(names[start...], births[start...])
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
    private var marked = Order()
    private var changed: Set<String> = []
    /// Names of the elements that have changed since they were saved.
    private var unsaved: Set<String> = []
    /// Number of changes of the listed names.
    package private(set) var listVersion: UInt64 = 0
    /// Names of the last of these changes, oldest first.
    private var listChanges: [String] = []

    package var count: Int { elements.count }
    package var isEmpty: Bool { elements.isEmpty }
    package var keys: Dictionary<String, Element>.Keys { elements.keys }
    package var values: Dictionary<String, Element>.Values { elements.values }

    /// The listed elements, in creation order.
    package var listed: [Element] { inList.names.compactMap { elements[$0] } }
    /// The unlisted elements, in creation order.
    package var unlisted: [Element] { apart.names.compactMap { elements[$0] } }
    package var listedNames: [String] { inList.names }
    /// Names of the marked elements, in creation order.
    package var markedNames: [String] { marked.names }
    package var listedCount: Int { inList.names.count }
    package var unlistedCount: Int { apart.names.count }

    /// Returns names with their creation numbers, in creation order, from the one after `birth`.
    package func names(
        listed: Bool,
        after birth: UInt64 = 0
    ) -> Zip2Sequence<ArraySlice<String>, ArraySlice<UInt64>> {
        (listed ? inList : apart).names(after: birth)
    }

    /// Returns the names of all, listed or not, with their creation numbers, in creation order,
    /// from the one after `birth`.
    package func allNames(after birth: UInt64) -> [(name: String, birth: UInt64)] {
        let all = Array(inList.names(after: birth)) + Array(apart.names(after: birth))
        return all.sorted { $0.1 < $1.1 }.map { (name: $0.0, birth: $0.1) }
    }

    package subscript(name: String) -> Element? {
        get { elements[name] }
        _modify {
            let before = elements[name].map(Place.init)
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

    /// Returns the names added, removed or modified since the last call, to be saved.
    mutating func takeUnsaved() -> Set<String> {
        var taken: Set<String> = []
        swap(&taken, &unsaved)
        return taken
    }

    /// Returns the names that were added to the list or removed from it since a version, some of
    /// them repeatedly; `nil` if there were about as many changes as there are elements.
    package func listChanges(since version: UInt64) -> ArraySlice<String>? {
        let missed = listVersion &- version
        guard missed <= UInt64(listChanges.count) else { return nil }
        return listChanges.suffix(Int(missed))
    }

    /// Part of an element that decides in which orders it is.
    private struct Place: Equatable {
        var birth: UInt64
        var isListed: Bool
        var isMarked: Bool

        init(_ element: Element) {
            birth = element.birth
            isListed = element.isListed
            isMarked = element.isMarked
        }
    }

    /// Updates the orders and the change set after an access to `name`.
    private mutating func reconcile(_ name: String, _ before: Place?) {
        changed.insert(name)
        unsaved.insert(name)
        let after = elements[name].map(Place.init)
        guard before != after else { return }
        if before?.birth != after?.birth || before?.isListed != after?.isListed {
            noteListChange(of: name)
            move(name, from: before, to: after)
        }
        if let before, before.isMarked { marked.remove(born: before.birth) }
        if let after, after.isMarked { marked.insert(name, born: after.birth) }
    }

    private mutating func move(_ name: String, from before: Place?, to after: Place?) {
        if let before, before.isListed {
            inList.remove(born: before.birth)
        } else if let before {
            apart.remove(born: before.birth)
        }
        if let after, after.isListed {
            inList.insert(name, born: after.birth)
        } else if let after {
            apart.insert(name, born: after.birth)
        }
    }

    private mutating func noteListChange(of name: String) {
        listVersion &+= 1
        listChanges.append(name)
        let limit = max(64, elements.count)
        // Compact rarely, because all remaining entries move.
        if listChanges.count > 2 * limit { listChanges.removeFirst(listChanges.count - limit) }
    }
}
