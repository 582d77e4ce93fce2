extension Dictionary where Key: Comparable {
    /// Returns the wanted entries by key.
    ///
    /// Each process has its own order of dictionaries. Where messages or requests depend on the
    /// order, the same history shall give the same ones each time.
    func inOrder(where isWanted: (Value) -> Bool = { _ in true }) -> [Element] {
        filter { isWanted($0.value) }.sorted { $0.key < $1.key }
    }
}
