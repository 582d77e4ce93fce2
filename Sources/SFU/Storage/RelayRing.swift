import RTP
internal import Synchronization

/// Single-producer, single-consumer ring of messages between two threads.
///
/// Safe: a handle on memory that its mesh owns and outlives. The counters only grow. Only the
/// writer moves `written` and only the reader moves `taken`, so each place has one owner at any
/// time.
@safe
struct RelayRing: BitwiseCopyable {
    /// Number of places, a power of two; the system backs them with memory at first use.
    static let capacity = 512
    /// Length of the largest packet, in bytes.
    static let maximumLength = Batch.maximumLength
    /// Offset of the packet's bytes within a place: after the message, on cache lines of their own.
    private static let bytesOffset = 192
    private static let stride = bytesOffset + maximumLength
    /// Bytes reserved for the counters.
    ///
    /// They lie two cache lines apart, because the processor fetches the second line along with the
    /// first.
    private static let countersLength = 256

    private let memory: UnsafeMutableRawPointer

    /// Allocates the memory; `deallocate` frees it.
    init() {
        precondition(MemoryLayout<RelayMessage>.size <= Self.bytesOffset, "a message is too long")
        unsafe memory = .allocate(
            byteCount: Self.countersLength + Self.capacity * Self.stride,
            alignment: 128
        )
        for offset in [0, Self.countersLength / 2] {
            let counter = unsafe (memory + offset).bindMemory(to: Atomic<Int>.self, capacity: 1)
            unsafe counter.initialize(to: Atomic(0))
        }
    }

    func deallocate() { unsafe memory.deallocate() }

    /// Number of messages that the reader has taken out.
    fileprivate var taken: UnsafeMutablePointer<Atomic<Int>> {
        unsafe memory.assumingMemoryBound(to: Atomic<Int>.self)
    }

    /// Number of messages that the writer has put in.
    fileprivate var written: UnsafeMutablePointer<Atomic<Int>> {
        unsafe (memory + Self.countersLength / 2).assumingMemoryBound(to: Atomic<Int>.self)
    }

    fileprivate func place(_ number: Int) -> UnsafeMutableRawPointer {
        unsafe memory + Self.countersLength + (number & (Self.capacity - 1)) * Self.stride
    }

    fileprivate func bytes(_ number: Int) -> UnsafeMutablePointer<UInt8> {
        unsafe (place(number) + Self.bytesOffset).assumingMemoryBound(to: UInt8.self)
    }
}

/// Writing end of a ring, owned by one thread.
@safe
struct RelayWriter: ~Copyable {
    private let ring: RelayRing
    private var written = 0
    private var published = 0
    /// Reader's position when last read; often enough to know that there is room.
    private var taken = 0

    init(_ ring: RelayRing) { self.ring = ring }

    /// Writes a message and its packet; returns `false` if the ring is full.
    ///
    /// The reader sees it after `publish`.
    mutating func write(_ message: RelayMessage, _ packet: Span<UInt8>) -> Bool {
        precondition(packet.count <= RelayRing.maximumLength, "no place has so many bytes")
        if written - taken >= RelayRing.capacity {
            taken = unsafe ring.taken.pointee.load(ordering: .acquiring)
            guard written - taken < RelayRing.capacity else { return false }
        }
        unsafe ring.place(written).storeBytes(of: message, as: RelayMessage.self)
        let bytes = unsafe ring.bytes(written)
        unsafe packet.withUnsafeBufferPointer { source in
            guard let first = source.baseAddress else { return }
            unsafe bytes.update(from: first, count: source.count)
        }
        written += 1
        return true
    }

    /// Makes the written messages visible to the reader; returns `false` if there are none.
    ///
    /// Sequentially consistent: a reader about to sleep announces that and then checks this
    /// counter, and the writer stores this counter and then checks whether the reader sleeps. One
    /// of the two sees the other.
    mutating func publish() -> Bool {
        guard written != published else { return false }
        unsafe ring.written.pointee.store(written, ordering: .sequentiallyConsistent)
        published = written
        return true
    }
}

/// Reading end of a ring, owned by one thread.
@safe
struct RelayReader: ~Copyable {
    private let ring: RelayRing
    private var taken = 0
    private var released = 0
    /// Writer's position when last read.
    private var written = 0

    init(_ ring: RelayRing) { self.ring = ring }

    /// Returns whether the ring is empty; it may read the writer's counter.
    mutating func isEmpty() -> Bool {
        if taken == written {
            written = unsafe ring.written.pointee.load(ordering: .sequentiallyConsistent)
        }
        return taken == written
    }

    /// Oldest message; the ring must not be empty.
    var message: RelayMessage {
        precondition(taken < written, "the ring is empty")
        return unsafe ring.place(taken).loadUnaligned(as: RelayMessage.self)
    }

    /// Copies the oldest message's packet to `output`.
    @_lifetime(output: copy output)
    func copyPacket(length: Int, into output: inout MutableSpan<UInt8>) {
        precondition(taken < written && length <= min(output.count, RelayRing.maximumLength))
        let source = unsafe ring.bytes(taken)
        unsafe output.withUnsafeMutableBufferPointer { target in
            guard let first = target.baseAddress else { return }
            unsafe first.update(from: source, count: length)
        }
    }

    /// Consumes the oldest message.
    mutating func advance() {
        precondition(taken < written, "the ring is empty")
        taken += 1
    }

    /// Returns the places of the consumed messages to the writer.
    mutating func release() {
        guard taken != released else { return }
        unsafe ring.taken.pointee.store(taken, ordering: .releasing)
        released = taken
    }
}
