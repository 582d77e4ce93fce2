/// What a `Register` holds.
package protocol Registered: Sendable {
    /// Orders what a room has by when it came; never changes.
    var birth: UInt64 { get }
    /// Whether listings name it; those that wait to be let in are listed apart.
    var isListed: Bool { get }
}

/// Things by their names, in the order in which they came, and which of them have changed.
///
/// A room is shown at every join. Were its lists sorted and written anew each time, a thousand
/// joins would cost what a million participants do.
package struct Register<Element: Registered>: Sendable {
    /// Names in the order in which what they name came.
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

        /// Where a birth is, or would be.
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

    /// In order.
    package var listed: [Element] { inList.names.compactMap { elements[$0] } }
    /// Those that are not listed, in order.
    package var unlisted: [Element] { apart.names.compactMap { elements[$0] } }
    package var listedNames: [String] { inList.names }

    package subscript(name: String) -> Element? {
        get { elements[name] }
        _modify {
            let before = elements[name].map { ($0.birth, $0.isListed) }
            defer { settle(name, before) }
            yield &elements[name]
        }
    }

    /// The names of what has come, gone or been touched since the last call.
    mutating func takeChanged() -> Set<String> {
        var taken: Set<String> = []
        swap(&taken, &changed)
        return taken
    }

    /// Brings order and changes to what `name` now is.
    private mutating func settle(_ name: String, _ before: (birth: UInt64, isListed: Bool)?) {
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
