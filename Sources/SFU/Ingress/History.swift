internal import RTP

/// The newest packets of one encoding, for all of its viewers (RFC 4588 §4).
///
/// It holds pool places; what is older than `retentionMilliseconds` is given back.
struct History: ~Copyable {
    static let capacity = 1_024
    static let retentionMilliseconds: Int64 = 1_500

    private var places: Ring<Int32>
    private let isEnabled: Bool
    /// Kept are the numbers from `oldest` up to `end`, wraps counted.
    private var oldest = 0
    private var end = 0

    init(isEnabled: Bool) {
        self.isEnabled = isEnabled
        places = Ring(capacity: isEnabled ? Self.capacity : 1, filledWith: -1)
    }

    /// Keeps a packet; `false` where this encoding keeps none and the caller stays its owner.
    mutating func insert(
        _ place: Int32,
        number: Int,
        at now: Instant,
        pool: inout PacketPool
    ) -> Bool {
        guard isEnabled else { return false }
        if oldest == end || number >= end + Self.capacity || number < oldest {
            guard oldest == end || number >= oldest else { return false }
            removeAll(from: &pool)
            oldest = number
            end = number
        }
        while end <= number {
            if end - oldest >= Self.capacity { removeOldest(from: &pool) }
            places[end] = -1
            end += 1
        }
        guard places[number] < 0 else { return false }
        places[number] = place
        trim(at: now, pool: &pool)
        return true
    }

    /// The place of a packet that is still kept, or -1.
    func place(of number: Int) -> Int32 {
        guard number >= oldest, number < end else { return -1 }
        return places[number]
    }

    /// Gives back what nobody will ask for any more.
    mutating func trim(at now: Instant, pool: inout PacketPool) {
        while oldest < end {
            let place = places[oldest]
            if place >= 0 {
                let age = now.milliseconds(since: pool[place].arrival)
                guard age >= Self.retentionMilliseconds else { return }
            }
            removeOldest(from: &pool)
        }
    }

    /// Gives everything back.
    mutating func removeAll(from pool: inout PacketPool) {
        while oldest < end { removeOldest(from: &pool) }
    }

    private mutating func removeOldest(from pool: inout PacketPool) {
        let place = places[oldest]
        if place >= 0 { pool.retire(place) }
        places[oldest] = -1
        oldest += 1
    }
}
