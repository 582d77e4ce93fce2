/// Pool of decrypted packets, each in a place of its own, with the packet info from ingress.
///
/// The places are reserved once, and the system backs them with memory at first touch. The place
/// freed last is taken next, so a quiet worker stays small.
@safe
struct PacketPool: ~Copyable {
    /// Bytes of the places; a local copy lends views while the core changes.
    let packets: PacketBytes
    private let infos: UnsafeMutablePointer<PacketInfo>
    private let free: UnsafeMutablePointer<Int32>
    private var freeCount: Int
    private var retired = UncountedArray<PacketPlace>(capacity: 256)
    private var touched = 0
    let capacity: Int
    /// Places held for warm pictures.
    var warmCount = 0

    init(capacity: Int) {
        self.capacity = capacity
        packets = PacketBytes(capacity: capacity)
        unsafe infos = .allocate(capacity: capacity)
        unsafe free = .allocate(capacity: capacity)
        freeCount = 0
    }

    deinit {
        packets.deallocate()
        unsafe infos.deallocate()
        unsafe free.deallocate()
    }

    var used: Int { touched - freeCount - retired.count }

    /// Most places held for warm pictures: a quarter of all.
    var warmLimit: Int { capacity / 4 }

    /// Whether one more place may be held for a warm picture: none is while three quarters of all
    /// are in use.
    var hasRoomForWarm: Bool { warmCount < warmLimit && used < capacity - warmLimit }

    /// Takes a place; returns `nil` if none is left.
    mutating func allocate() -> PacketPlace? {
        if freeCount > 0 {
            freeCount -= 1
            return PacketPlace(rawValue: unsafe free[freeCount])
        }
        guard touched < capacity else { return nil }
        unsafe (infos + touched).initialize(to: PacketInfo())
        touched += 1
        return PacketPlace(touched - 1)
    }

    /// Releases a place.
    mutating func release(_ place: PacketPlace) {
        precondition(place.offset < touched && freeCount < touched)
        unsafe free[freeCount] = place.rawValue
        freeCount += 1
    }

    /// Releases a place at the next `reclaim`: the batch under way may still read it.
    mutating func retire(_ place: PacketPlace) { retired.append(place) }

    /// Releases the retired places, once the batch has been forwarded.
    mutating func reclaim() {
        for index in 0..<retired.count { release(retired[index]) }
        retired.removeAll()
    }

    /// Packet info of the packet at `place`.
    subscript(place: PacketPlace) -> PacketInfo {
        unsafeAddress {
            precondition(place.offset < touched)
            return unsafe UnsafePointer(infos + place.offset)
        }
        unsafeMutableAddress {
            precondition(place.offset < touched)
            return unsafe infos + place.offset
        }
    }
}

/// Memory of a packet pool.
///
/// It lives as long as its pool and never moves. Only the core, which owns the pool, copies it,
/// within its own methods, so no view outlives the bytes. Views of one place may overlap a write to
/// another, never to the same.
@safe
struct PacketBytes: BitwiseCopyable {
    /// Bytes of one place: the largest datagram that is accepted.
    static let stride = 1_536

    private let storage: UnsafeMutablePointer<UInt8>
    private let capacity: Int

    fileprivate init(capacity: Int) {
        self.capacity = capacity
        let bytes = UnsafeMutableRawPointer.allocate(
            byteCount: capacity * Self.stride,
            alignment: 64
        )
        unsafe storage = bytes.bindMemory(to: UInt8.self, capacity: capacity * Self.stride)
    }

    fileprivate func deallocate() { unsafe storage.deallocate() }

    /// Returns the first `count` bytes at `place`.
    @_lifetime(borrow self)
    func bytes(at place: PacketPlace, count: Int) -> Span<UInt8> {
        precondition(place.offset < capacity && count <= Self.stride)
        let start = unsafe UnsafePointer(storage + place.offset * Self.stride)
        let span = unsafe Span(_unsafeStart: start, count: count)
        return unsafe _overrideLifetime(span, borrowing: self)
    }

    /// Returns a copy of the bytes at `place`: the first `header` of them, then those of `payload`.
    func copy(at place: PacketPlace, header: Int, payload: Range<Int>) -> [UInt8] {
        precondition(place.offset < capacity)
        precondition(0...Self.stride ~= header && payload.lowerBound >= 0)
        precondition(payload.upperBound <= Self.stride)
        let start = unsafe storage + place.offset * Self.stride
        let length = header + payload.count
        return unsafe [UInt8](unsafeUninitializedCapacity: length) { buffer, count in
            if let copy = buffer.baseAddress {
                unsafe copy.update(from: start, count: header)
                unsafe (copy + header).update(
                    from: start + payload.lowerBound,
                    count: payload.count
                )
            }
            count = length
        }
    }

    /// Returns the place that a packet is decrypted into.
    @_lifetime(&self)
    mutating func mutableBytes(at place: PacketPlace) -> MutableSpan<UInt8> {
        precondition(place.offset < capacity)
        let start = unsafe storage + place.offset * Self.stride
        let span = unsafe MutableSpan(_unsafeStart: start, count: Self.stride)
        return unsafe _overrideLifetime(span, mutating: &self)
    }
}
