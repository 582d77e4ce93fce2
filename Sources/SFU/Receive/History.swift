import RTP
import WorkerInterface

/// Recent packets of one encoding, shared by all its subscribers.
///
/// Video is kept for retransmission (RFC 4588 §4), audio for replay to listeners of a new speaker.
/// The packets occupy pool places, which are released after `retentionMilliseconds`; those of a
/// warm picture when it ends.
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
    ///
    /// Of those before `recent`, only the packets of the warm picture are left.
    private var oldest = 0
    private var recent = 0
    private var end = 0
    private(set) var warm: WarmPicture?

    init(of kind: MediaKind) {
        switch kind {
        case .audio: (capacity, retentionMilliseconds) = (64, Self.quietMilliseconds)
        case .video: (capacity, retentionMilliseconds) = (1_024, 1_500)
        }
        places = Ring(capacity: capacity, filledWith: .none)
    }

    /// Range of the stored numbers, some of which may be missing.
    var numbers: Range<Int> { oldest..<end }

    /// Stores a packet, with which a warm picture may begin.
    ///
    /// Returns `false` if it is too old or already stored; the place then stays with the caller.
    mutating func insert(
        _ place: PacketPlace,
        number: Int,
        at now: Instant,
        beginsPicture: Bool = false,
        pool: inout PacketPool
    ) -> Bool {
        if oldest == end || number >= end &+ capacity || number < oldest {
            guard oldest == end || number >= oldest else { return false }
            removeAll(from: &pool)
            oldest = number
            recent = number
            end = number
        }
        if beginsPicture { beginWarmPicture(with: pool[place], number: number, pool: &pool) }
        let isWarm = warm != nil && countWarm(pool[place], number: number, at: now, pool: &pool)
        guard number >= recent || isWarm else { return false }
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

    /// Returns the pool place of a packet to send again: one within its retention, or of a warm
    /// picture that the subscriber was sent lately.
    func place(toRepeat number: Int, isWarm: Bool) -> PacketPlace? {
        number >= recent || isWarm ? place(of: number) : nil
    }

    /// Whether a packet was stored and cannot be sent again any more.
    func hasLost(_ number: Int, isWarm: Bool) -> Bool {
        number < recent && place(toRepeat: number, isWarm: isWarm) == nil
    }

    /// Releases packets past their retention.
    mutating func trim(at now: Instant, pool: inout PacketPool) {
        if warm?.isOver(at: now) == true { endWarmPicture(&pool) }
        defer { oldest = min(recent, warm?.start ?? recent) }
        while recent < end {
            if let place = places[recent].value {
                let age = now.milliseconds(since: pool[place].arrival)
                guard age >= retentionMilliseconds else { return }
                if warm?.keeps(pool[place], number: recent) != true { release(recent, &pool) }
            }
            recent &+= 1
        }
    }

    /// Releases all packets.
    mutating func removeAll(from pool: inout PacketPool) {
        endWarmPicture(&pool)
        while oldest < end { removeOldest(from: &pool) }
    }

    private mutating func removeOldest(from pool: inout PacketPool) {
        if let warm, warm.start <= oldest { endWarmPicture(&pool) }
        guard oldest < end else { return }
        release(oldest, &pool)
        oldest &+= 1
        recent = max(recent, oldest)
    }

    private mutating func release(_ number: Int, _ pool: inout PacketPool) {
        if let place = places[number].value { pool.retire(place) }
        places[number] = .none
    }
}

extension History {
    /// Begins a new warm picture with the first packet of a keyframe, before it is stored.
    private mutating func beginWarmPicture(
        with info: PacketInfo,
        number: Int,
        pool: inout PacketPool
    ) {
        if let warm {
            // A keyframe that is late, or another packet that marks the same one.
            guard number > warm.start, info.timestamp != warm.timestamp else { return }
        }
        endWarmPicture(&pool)
        warm = WarmPicture(from: info)
        // Packets of the keyframe may have overtaken its first one.
        var later = number &+ 1
        while later < end {
            if let place = place(of: later) {
                _ = countWarm(pool[place], number: later, at: info.arrival, pool: &pool)
            }
            later &+= 1
        }
    }

    /// Counts packets of the warm picture's time that its home has left out.
    mutating func leaveOut(_ count: Int) { warm?.leaveOut(count) }

    /// Counts a packet that is not stored, as it carries no media.
    mutating func notePadding(_ info: borrowing PacketInfo) {
        let number = Int(truncatingIfNeeded: info.number)
        _ = warm?.count(info, number: number, at: info.arrival)
    }

    /// Counts a packet for the warm picture; returns whether it belongs to it.
    ///
    /// When the pool is nearly full, the picture ends: its places are needed for live packets.
    private mutating func countWarm(
        _ info: PacketInfo,
        number: Int,
        at now: Instant,
        pool: inout PacketPool
    ) -> Bool {
        guard pool.hasRoomForWarm else {
            endWarmPicture(&pool)
            return false
        }
        guard warm?.count(info, number: number, at: now) == true else { return false }
        pool.warmCount &+= 1
        return true
    }

    /// Ends the warm picture; its packets past their retention are released.
    private mutating func endWarmPicture(_ pool: inout PacketPool) {
        guard let warm else { return }
        pool.warmCount &-= warm.packets
        self.warm = nil
        while oldest < recent {
            release(oldest, &pool)
            oldest &+= 1
        }
    }
}
