import WorkerInterface

/// Per-second rate limiter by source address, for sources without any other state.
///
/// A fixed hash table with a keyed hash. A source that collides with another restarts that slot's
/// count, so no source is refused for another's traffic. An attacker who evades the limit with many
/// addresses meets the transport's own limit.
struct SourceRateLimiter: ~Copyable {
    struct Place: BitwiseCopyable {
        var source: UInt64
        var second: Int64
        var count: Int32
    }

    private static let places = 1_024
    private var table = Ring<Place>(
        capacity: places,
        filledWith: Place(source: 0, second: .min, count: 0)
    )
    private let seed: UInt64

    init(seed: UInt64) { self.seed = seed }

    /// Counts one packet from `address`; returns whether it is within `limit` for this second.
    mutating func admit(_ address: Address, limit: Int, second: Int64) -> Bool {
        let source = hash(address)
        var place = table[source]
        if place.source != source || place.second != second {
            place = Place(source: source, second: second, count: 0)
        }
        guard Int(place.count) < limit else { return false }
        place.count += 1
        table[source] = place
        return true
    }

    private func hash(_ address: Address) -> UInt64 {
        var value = address.high ^ seed
        value = (value ^ value >> 32) &* 0x9e37_79b9_7f4a_7c15
        value ^= address.low &+ UInt64(address.port) << 48
        value = (value ^ value >> 29) &* 0xbf58_476d_1ce4_e5b9
        return value ^ value >> 32
    }
}
