import RTP
import WorkerInterface

/// Recent packets of one encoding, shared by all its subscribers.
///
/// Video is kept for retransmission (RFC 4588 §4), audio for replay to listeners of a new speaker.
/// The packets occupy pool places, which are released after `retentionMilliseconds`.
struct History: ~Copyable {
    /// Retention of audio from a participant who is not a candidate speaker.
    ///
    /// Speech is back-dated by no more than the detector's own history.
    static let quietMilliseconds: Int64 = 80
    /// Retention of audio that may soon be promoted to an active speaker.
    static let prerollMilliseconds: Int64 = 400

    private var places: Ring<OptionalIndex<HandleKind.Packet>>
    private let capacity: Int
    var retentionMilliseconds: Int64
    /// Range of the stored numbers, from `oldest` up to `end`, with wraps counted.
    private var oldest = 0
    private var end = 0

    init(of kind: MediaKind) {
        switch kind {
        case .audio: (capacity, retentionMilliseconds) = (64, Self.quietMilliseconds)
        case .video: (capacity, retentionMilliseconds) = (1_024, 1_500)
        }
        places = Ring(capacity: capacity, filledWith: .none)
    }

    /// Range of the stored numbers, some of which may be missing.
    var numbers: Range<Int> { oldest..<end }

    /// Stores a packet.
    ///
    /// Returns `false` if it is too old or already stored; the place then stays with the caller.
    mutating func insert(
        _ place: PacketPlace,
        number: Int,
        at now: Instant,
        pool: inout PacketPool
    ) -> Bool {
        if oldest == end || number >= end &+ capacity || number < oldest {
            guard oldest == end || number >= oldest else { return false }
            removeAll(from: &pool)
            oldest = number
            end = number
        }
        while end <= number {
            if end &- oldest >= capacity { removeOldest(from: &pool) }
            places[end] = .none
            end &+= 1
        }
        guard places[number] == .none else { return false }
        places[number] = OptionalIndex(place)
        trim(at: now, pool: &pool)
        return true
    }

    /// Returns the pool place of a packet, or `nil` if it is not stored.
    func place(of number: Int) -> PacketPlace? {
        guard number >= oldest, number < end else { return nil }
        return places[number].value
    }

    /// Releases packets past their retention.
    mutating func trim(at now: Instant, pool: inout PacketPool) {
        while oldest < end {
            if let place = places[oldest].value {
                let age = now.milliseconds(since: pool[place].arrival)
                guard age >= retentionMilliseconds else { return }
            }
            removeOldest(from: &pool)
        }
    }

    /// Releases all packets.
    mutating func removeAll(from pool: inout PacketPool) {
        while oldest < end { removeOldest(from: &pool) }
    }

    private mutating func removeOldest(from pool: inout PacketPool) {
        if let place = places[oldest].value { pool.retire(place) }
        places[oldest] = .none
        oldest &+= 1
    }
}
