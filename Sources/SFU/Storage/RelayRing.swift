import RTP
internal import Synchronization

/// Places in memory through which one thread hands messages to one other, in order.
///
/// Safe: a handle on memory that its mesh owns and outlives. The counters only grow; the writer
/// alone moves `written`, the reader alone `taken`, so each place has one owner at any time.
@safe
struct RelayRing: BitwiseCopyable {
    /// Places, a power of two; the system gives them memory when they are first used.
    static let capacity = 512
    /// The largest packet, in bytes.
    static let maximumLength = Batch.maximumLength
    /// Each place begins with its message; the packet's bytes lie behind it, on their own lines.
    private static let bytesOffset = 192
    private static let stride = bytesOffset + maximumLength
    /// The counters lie two cache lines apart: the second is fetched along with the first.
    private static let countersLength = 256

    private let memory: UnsafeMutableRawPointer

    /// Reserves the memory; `deallocate` gives it back.
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

    /// Messages that the reader has taken out.
    fileprivate var taken: UnsafeMutablePointer<Atomic<Int>> {
        unsafe memory.assumingMemoryBound(to: Atomic<Int>.self)
    }

    /// Messages that the writer has put in.
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

/// The end of a ring that is written; one thread has it.
@safe
struct RelayWriter: ~Copyable {
    private let ring: RelayRing
    private var written = 0
    private var published = 0
    /// How far the reader was when last looked at; often enough to know that there is room.
    private var taken = 0

    init(_ ring: RelayRing) { self.ring = ring }

    /// Puts a message in, with the first bytes of a packet; `false` where the ring is full.
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

    /// Lets the reader see what was written; `false` where that was nothing.
    ///
    /// Sequentially consistent: a reader about to sleep says so and then looks here, the writer
    /// writes here and then looks whether the reader sleeps; one of the two sees the other.
    mutating func publish() -> Bool {
        guard written != published else { return false }
        unsafe ring.written.pointee.store(written, ordering: .sequentiallyConsistent)
        published = written
        return true
    }
}

/// The end of a ring that is read; one thread has it.
@safe
struct RelayReader: ~Copyable {
    private let ring: RelayRing
    private var taken = 0
    private var released = 0
    /// How far the writer was when last looked at.
    private var written = 0

    init(_ ring: RelayRing) { self.ring = ring }

    /// Whether a message lies there, by a look at the writer's counter.
    mutating func isEmpty() -> Bool {
        if taken == written {
            written = unsafe ring.written.pointee.load(ordering: .sequentiallyConsistent)
        }
        return taken == written
    }

    /// The oldest message; the ring must not be empty.
    var message: RelayMessage {
        precondition(taken < written, "the ring is empty")
        return unsafe ring.place(taken).loadUnaligned(as: RelayMessage.self)
    }

    /// Copies the oldest message's packet out.
    @_lifetime(output: copy output)
    func copyPacket(length: Int, into output: inout MutableSpan<UInt8>) {
        precondition(taken < written && length <= min(output.count, RelayRing.maximumLength))
        let source = unsafe ring.bytes(taken)
        unsafe output.withUnsafeMutableBufferPointer { target in
            guard let first = target.baseAddress else { return }
            unsafe first.update(from: source, count: length)
        }
    }

    /// Is done with the oldest message.
    mutating func advance() {
        precondition(taken < written, "the ring is empty")
        taken += 1
    }

    /// Gives the writer back the places that were advanced over.
    mutating func release() {
        guard taken != released else { return }
        unsafe ring.taken.pointee.store(taken, ordering: .releasing)
        released = taken
    }
}
