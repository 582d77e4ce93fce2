package import WorkerInterface

/// Outgoing datagrams, each in a place of its own.
///
/// The core fills the batch and the socket empties it. Consecutive datagrams of one path lie in
/// order, so that those of equal size can leave in one call. It never grows: check `free` before
/// adding.
@safe
package struct Batch: ~Copyable {
    /// Distance between places, in bytes, aligned for libsrtp2 and cache lines.
    package static let stride = 1_536
    /// Length of the largest datagram, in bytes: the most that an Ethernet path carries over IPv4.
    package static let maximumLength = 1_472
    /// Datagrams that answer one datagram, timer or command at most.
    package static let replyCapacity = 16
    private let storage: UnsafeMutablePointer<UInt8>
    private let contents: UnsafeMutablePointer<DatagramContent>
    private let lengths: UnsafeMutablePointer<Int>
    private let paths: UnsafeMutablePointer<Path>
    package let capacity: Int
    package private(set) var count = 0

    package init(capacity: Int) {
        precondition(capacity > 0, "a batch holds at least one datagram")
        self.capacity = capacity
        let bytes = UnsafeMutableRawPointer.allocate(
            byteCount: capacity * Self.stride,
            alignment: 64
        )
        unsafe storage = bytes.bindMemory(to: UInt8.self, capacity: capacity * Self.stride)
        unsafe lengths = .allocate(capacity: capacity)
        unsafe lengths.initialize(repeating: 0, count: capacity)
        unsafe contents = .allocate(capacity: capacity)
        unsafe contents.initialize(repeating: .other, count: capacity)
        unsafe paths = .allocate(capacity: capacity)
        let nowhere = Path(remote: Address(high: 0, low: 0, port: 0), local: 0)
        unsafe paths.initialize(repeating: nowhere, count: capacity)
    }

    deinit {
        unsafe storage.deallocate()
        unsafe lengths.deallocate()
        unsafe contents.deallocate()
        unsafe paths.deallocate()
    }

    /// Number of empty places.
    package var free: Int { capacity - count }

    /// Space for the next datagram, to be written before `commit`; the batch must not be full.
    package var next: MutableSpan<UInt8> {
        @_lifetime(&self)
        mutating get {
            precondition(count < capacity, "the batch is full")
            let start = unsafe storage + count * Self.stride
            let span = unsafe MutableSpan(_unsafeStart: start, count: Self.stride)
            return unsafe _overrideLifetime(span, mutating: &self)
        }
    }

    /// Adds the datagram written to `next`.
    package mutating func commit(length: Int, to path: Path, as content: DatagramContent = .other) {
        precondition(count < capacity && length > 0 && length <= Self.stride)
        unsafe contents[count] = content
        unsafe lengths[count] = length
        unsafe paths[count] = path
        count += 1
    }

    /// Lets `fill` write up to `limit` bytes to `next`, and returns the number written.
    ///
    /// Call `commit` to add them.
    package mutating func compose(
        limit: Int = stride,
        _ fill: (inout OutputSpan<UInt8>) -> Void
    ) -> Int {
        precondition(count < capacity, "the batch is full")
        precondition(limit <= Self.stride, "a place has no more bytes")
        let place = unsafe UnsafeMutableBufferPointer(
            start: storage + count * Self.stride,
            count: limit
        )
        var output = unsafe OutputSpan(buffer: place, initializedCount: 0)
        fill(&output)
        return unsafe output.finalize(for: place)
    }

    /// Adds a datagram that `fill` writes; adds none if it writes nothing.
    package mutating func append(to path: Path, _ fill: (inout OutputSpan<UInt8>) -> Void) {
        let length = compose(fill)
        guard length > 0 else { return }
        commit(length: length, to: path)
    }

    /// Adds a copy of a datagram, which has 1 to `stride` bytes.
    package mutating func append(copying datagram: [UInt8], to path: Path) {
        precondition(count < capacity, "the batch is full")
        precondition(1...Self.stride ~= datagram.count, "a place has no more bytes")
        unsafe (storage + count * Self.stride).update(from: datagram, count: datagram.count)
        commit(length: datagram.count, to: path)
    }

    /// The datagram at `index`, borrowed from the batch.
    package subscript(index: Int) -> Span<UInt8> {
        @_lifetime(borrow self)
        get {
            precondition(index < count)
            let start = unsafe UnsafePointer(storage + index * Self.stride)
            let span = unsafe Span(_unsafeStart: start, count: lengths[index])
            return unsafe _overrideLifetime(span, borrowing: self)
        }
    }

    package func path(at index: Int) -> Path {
        precondition(index < count)
        return unsafe paths[index]
    }

    package func content(at index: Int) -> DatagramContent {
        precondition(index < count)
        return unsafe contents[index]
    }

    package func length(at index: Int) -> Int {
        precondition(index < count)
        return unsafe lengths[index]
    }

    /// Empties the batch once its datagrams have been sent.
    package mutating func removeAll() { count = 0 }
}
