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

    package mutating func removeValue(forKey key: Key) -> Value? {
        changed.insert(key)
        return elements.removeValue(forKey: key)
    }

    /// Returns the keys of the changes since the last call.
    package mutating func takeChanged() -> Set<Key> {
        var taken: Set<Key> = []
        swap(&taken, &changed)
        return taken
    }
}
