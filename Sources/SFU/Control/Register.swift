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
    private struct Place: Sendable {
        var birth: UInt64
        var name: String
        var isListed: Bool
    }

    private var elements: [String: Element] = [:]
    private var order: [Place] = []
    private var changed: Set<String> = []

    package var count: Int { elements.count }
    package var isEmpty: Bool { elements.isEmpty }
    package var keys: Dictionary<String, Element>.Keys { elements.keys }
    package var values: Dictionary<String, Element>.Values { elements.values }

    /// In order.
    package var listed: [Element] { listedNames.compactMap { elements[$0] } }
    /// Those that are not listed, in order.
    package var unlisted: [Element] {
        order.lazy.filter { !$0.isListed }.compactMap { elements[$0.name] }
    }
    package var listedNames: [String] { order.lazy.filter(\.isListed).map(\.name) }

    package subscript(name: String) -> Element? {
        get { elements[name] }
        _modify {
            let before = place(of: name)
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

    private func place(of name: String) -> Place? {
        elements[name].map { Place(birth: $0.birth, name: name, isListed: $0.isListed) }
    }

    /// Brings order and changes to what `name` now is.
    private mutating func settle(_ name: String, _ before: Place?) {
        changed.insert(name)
        let after = place(of: name)
        if let before, before.birth == after?.birth, before.isListed == after?.isListed { return }
        if let before { order.remove(at: index(of: before.birth)) }
        if let after { order.insert(after, at: index(of: after.birth)) }
    }

    /// Where a birth is, or would be.
    private func index(of birth: UInt64) -> Int {
        var low = 0
        var high = order.count
        while low < high {
            let middle = (low + high) / 2
            if order[middle].birth < birth { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
