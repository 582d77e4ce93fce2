import RTP
import WorkerInterface

/// The newest packets of one encoding, for all of its viewers: of video what may be asked for again
/// (RFC 4588 §4), of audio what a listener who comes to it is to hear of the words just begun.
///
/// It holds pool places; what is older than `retentionMilliseconds` is given back.
struct History: ~Copyable {
    /// Of who is silent: a detector dates the start of speech back by no more than it looked at.
    static let quietMilliseconds: Int64 = 80
    /// Of who may be promoted soon.
    static let prerollMilliseconds: Int64 = 400

    private var places: Ring<Int32>
    private let capacity: Int
    var retentionMilliseconds: Int64
    /// Kept are the numbers from `oldest` up to `end`, wraps counted.
    private var oldest = 0
    private var end = 0

    init(of kind: MediaKind) {
        switch kind {
        case .audio: (capacity, retentionMilliseconds) = (64, Self.quietMilliseconds)
        case .video: (capacity, retentionMilliseconds) = (1_024, 1_500)
        }
        places = Ring(capacity: capacity, filledWith: -1)
    }

    /// The numbers that are looked at, some of which may not be there.
    var numbers: Range<Int> { oldest..<end }

    /// Keeps a packet; `false` where it is too old or there already, and stays the caller's.
    mutating func insert(
        _ place: Int32,
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
            places[end] = -1
            end &+= 1
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
                guard age >= retentionMilliseconds else { return }
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
        oldest &+= 1
    }
}
