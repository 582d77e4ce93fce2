import RTP
import SFU
import WorkerInterface

/// Datagrams received while something else is done, and deferred until its end, in order.
struct DeferredDatagrams: ~Copyable {
    /// Datagrams that fit: as many as a batch holds, as they form the next batch.
    static let capacity = Core.batchCapacity
    private static let stride = 1_536

    private var bytes = [UInt8](repeating: 0, count: capacity * stride)
    private var lengths = [Int](repeating: 0, count: capacity)
    private var paths = [Path](
        repeating: Path(remote: Address(high: 0, low: 0, port: 0), local: 0),
        count: capacity
    )
    private var arrivals = [Int64](repeating: 0, count: capacity)
    /// Place of the first datagram; the others follow it in the circle of places.
    private var first = 0
    private(set) var count = 0

    var free: Int { Self.capacity - count }

    private func place(_ index: Int) -> Int {
        precondition(index < count, "the datagram is there")
        return (first + index) % Self.capacity
    }

    /// Stores a copy; returns `false` if the datagram is longer than the largest accepted one, or
    /// if there is no room.
    mutating func append(_ datagram: Span<UInt8>, on path: Path, arrival: Int64) -> Bool {
        guard free > 0, datagram.count <= Self.stride else { return false }
        count += 1
        let place = place(count - 1)
        let start = place * Self.stride
        for index in 0..<datagram.count { bytes[start + index] = datagram[index] }
        lengths[place] = datagram.count
        arrivals[place] = arrival
        paths[place] = path
        return true
    }

    func path(_ index: Int) -> Path { paths[place(index)] }
    func arrival(_ index: Int) -> Int64 { arrivals[place(index)] }

    subscript(index: Int) -> Span<UInt8> {
        @_lifetime(borrow self)
        get {
            let place = place(index)
            let start = place * Self.stride
            return bytes.span.extracting(start..<(start + lengths[place]))
        }
    }

    /// Stores a copy of a datagram elsewhere; returns whether it fits there.
    func copy(_ index: Int, to other: inout Self) -> Bool {
        other.append(self[index], on: path(index), arrival: arrival(index))
    }

    /// Passes a datagram to the core.
    func pass(
        _ index: Int,
        to core: inout Core,
        at now: Instant,
        staleMedia: StaleMedia,
        into output: inout Batch
    ) {
        core.receive(
            self[index],
            on: path(index),
            at: now,
            staleMedia: staleMedia,
            into: &output
        )
    }

    /// Removes the first `number` datagrams.
    mutating func removeFirst(_ number: Int) {
        precondition(number <= count, "the datagrams are there")
        first = (first + number) % Self.capacity
        count -= number
    }

    mutating func removeAll() { removeFirst(count) }
}
