/// Requests of a type that was decoded with all, none and one of its optional members.
struct Probes<T: Decodable> {
    let full: SchemaDecoder
    /// Members in the order in which they are read.
    private(set) var members: [SchemaDecoder.Member] = []
    /// Smallest value that the type takes, if it takes any of those offered.
    private(set) var least: T?
    /// Optional members of which one is needed, and one only.
    private(set) var alternatives: [String] = []

    init(of type: T.Type, _ builder: SchemaBuilder) {
        full = SchemaDecoder(builder: builder, presence: .all)
        // The type may want another combination; by then it has asked for something.
        let most = try? T(from: full)
        merge(full.members)
        let none = SchemaDecoder(builder: builder, presence: .none)
        least = try? T(from: none)
        merge(none.members)
        guard least == nil else { return }
        for name in members.filter(\.isOptional).map(\.name) {
            let one = SchemaDecoder(builder: builder, presence: .only(name))
            let value = try? T(from: one)
            merge(one.members)
            guard let value else { continue }
            least = least ?? value
            if most == nil { alternatives.append(name) }
        }
        least = least ?? most
        for name in alternatives {
            let others = Set(alternatives).subtracting([name])
            let most = SchemaDecoder(builder: builder, presence: .allBut(others))
            _ = try? T(from: most)
            merge(most.members)
        }
    }

    /// Adds members of another decoding, each after the one that was read before it.
    private mutating func merge(_ others: [SchemaDecoder.Member]) {
        var place = 0
        for other in others {
            if let index = members.firstIndex(where: { $0.name == other.name }) {
                if other.isOptional { members[index].isOptional = true }
                // One that was only looked for has no type yet.
                if members[index].decoder.isUnread { members[index] = other }
                place = index + 1
            } else {
                members.insert(other, at: place)
                place += 1
            }
        }
    }
}
