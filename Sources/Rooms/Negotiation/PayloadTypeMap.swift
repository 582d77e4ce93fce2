import WorkerInterface

/// Map from payload types to formats, with RTX formats marked.
struct PayloadTypeMap: Sendable {
    private struct Meaning: Equatable {
        var format: MediaFormat
        var isRepair: Bool
    }

    private var meanings = [Meaning?](repeating: nil, count: 128)

    init() {}

    init(_ mappings: [FormatMapping]) {
        for mapping in mappings {
            meanings[Int(mapping.payloadType & 127)] =
                Meaning(format: mapping.format, isRepair: false)
            guard let repair = mapping.rtxPayloadType else { continue }
            meanings[Int(repair & 127)] = Meaning(format: mapping.format, isRepair: true)
        }
    }

    /// Merges another map; returns a payload type that has different meanings in both, if any.
    mutating func merge(_ others: Self) -> Int? {
        for payloadType in meanings.indices {
            guard let other = others.meanings[payloadType] else { continue }
            guard meanings[payloadType] == nil || meanings[payloadType] == other else {
                return payloadType
            }
            meanings[payloadType] = other
        }
        return nil
    }
}
