import RTP
import Sockets
import WorkerInterface

/// What happens to datagrams outside the core, for its statistics.
struct SocketCounters {
    private var oversized: UInt64 = 0
    private var oversizedBytes: UInt64 = 0
    private var kernelDrops: UInt64 = 0
    /// The kernel's own counters as last seen, by socket.
    private var seen: [UInt32]

    init(sockets: Int) { seen = Array(repeating: 0, count: sockets) }

    mutating func noteOversized(bytes: Int) {
        oversized += 1
        oversizedBytes += UInt64(bytes)
    }

    /// The kernel counts modulo 2^32, from 0 when the socket was opened.
    mutating func note(queueDrops: UInt32?, socket: Int) {
        guard let queueDrops else { return }
        kernelDrops += UInt64(queueDrops &- seen[socket])
        seen[socket] = queueDrops
    }

    /// Adds them to what the core has counted.
    func add(
        to statistics: inout WorkerStatistics,
        _ outbox: borrowing Outbox,
        _ streams: borrowing Streams
    ) {
        var sendDrops = outbox.drops
        sendDrops += streams.drops
        statistics.datagramsIn += oversized
        statistics.bytesIn += oversizedBytes
        statistics.kernelDrops = kernelDrops
        statistics.sendErrors = outbox.errors &+ streams.errors
        statistics.sendDrops = sendDrops
        statistics.sendQueueLength = outbox.waiting + streams.waitingCount
        statistics.streams = streams.statistics
        for (index, reason) in DropReason.allCases.enumerated() {
            switch reason {
            case .oversized: statistics.drops[index] += oversized
            case .sendQueueFull: statistics.drops[index] += sendDrops.sum(.full)
            case .sendQueueStale: statistics.drops[index] += sendDrops.sum(.stale)
            case .sendQueueWithdrawn: statistics.drops[index] += sendDrops.sum(.withdrawn)
            default: break
            }
        }
    }
}

/// The share of a core that a thread takes, over at least a second.
struct LoadMeter {
    private var since: Instant
    private var cpuThen: Int64
    private var last = 0.0

    init(at now: Instant, cpu: Int64) {
        since = now
        cpuThen = cpu
    }

    /// `cpu` is the thread's time so far, in nanoseconds.
    mutating func share(at now: Instant, cpu: Int64) -> Double {
        let elapsed = now.nanoseconds(since: since)
        guard elapsed >= 1_000_000_000 else { return last }
        last = min(1, max(0, Double(cpu - cpuThen) / Double(elapsed)))
        since = now
        cpuThen = cpu
        return last
    }
}
