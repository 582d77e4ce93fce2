import RTP
import SFU
import WorkerInterface

/// Datagrams received while a batch is being sent, and deferred until its end.
struct DeferredDatagrams: ~Copyable {
    /// Datagrams that fit: as many as a batch holds, as they form the next batch.
    static let capacity = Core.batchCapacity
    private static let stride = 1_536

    private var bytes = [UInt8](repeating: 0, count: capacity * stride)
    private var lengths = [Int](repeating: 0, count: capacity)
    private var paths: [Path] = []
    private var arrivals = [Int64](repeating: 0, count: capacity)

    var count: Int { paths.count }
    var free: Int { Self.capacity - paths.count }

    init() { paths.reserveCapacity(Self.capacity) }

    /// Stores a copy; returns `false` if the datagram is longer than the largest accepted one.
    mutating func append(_ datagram: Span<UInt8>, on path: Path, arrival: Int64) -> Bool {
        precondition(free > 0, "deferred datagrams are bounded")
        guard datagram.count <= Self.stride else { return false }
        let start = count * Self.stride
        for index in 0..<datagram.count { bytes[start + index] = datagram[index] }
        lengths[count] = datagram.count
        arrivals[count] = arrival
        paths.append(path)
        return true
    }

    func path(_ index: Int) -> Path { paths[index] }
    func arrival(_ index: Int) -> Int64 { arrivals[index] }

    subscript(index: Int) -> Span<UInt8> {
        @_lifetime(borrow self)
        get {
            let start = index * Self.stride
            return bytes.span.extracting(start..<(start + lengths[index]))
        }
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

    mutating func removeAll() { paths.removeAll(keepingCapacity: true) }
}
