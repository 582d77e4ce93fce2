/// Dictionary that notes the keys of values that were added, removed or accessed for a change.
///
/// All changes pass through it, so that none is forgotten when they are saved.
package struct TrackedDictionary<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private var elements: [Key: Value] = [:]
    private var changed: Set<Key> = []

    package init() {}

    package var count: Int { elements.count }
    package var isEmpty: Bool { elements.isEmpty }
    package var keys: Dictionary<Key, Value>.Keys { elements.keys }
    package var values: Dictionary<Key, Value>.Values { elements.values }

    package subscript(key: Key) -> Value? {
        get { elements[key] }
        _modify {
            changed.insert(key)
            yield &elements[key]
        }
    }

    /// Reads or changes a value in place; returns `nil` if there is none.
    package mutating func withValue<Result, Failure: Error>(
        of key: Key,
        _ body: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result? {
        guard let index = elements.index(forKey: key) else { return nil }
        changed.insert(key)
        return try body(&elements.values[index])
    }

    package mutating func removeValue(forKey key: Key) -> Value? {
        changed.insert(key)
        return elements.removeValue(forKey: key)
    }

    /// Leaves out a change that is none to be noted.
    package mutating func forgetChange(of key: Key) { changed.remove(key) }

    /// Returns the keys of the changes since the last call.
    package mutating func takeChanged() -> Set<Key> {
        var taken: Set<Key> = []
        swap(&taken, &changed)
        return taken
    }
}
