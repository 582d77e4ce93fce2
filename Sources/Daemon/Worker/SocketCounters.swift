import RTP
import Sockets
import WorkerInterface

/// Counters of datagrams that the sockets drop or reject, for the worker's statistics.
struct SocketCounters {
    private var oversized: UInt64 = 0
    private var oversizedBytes: UInt64 = 0
    private var kernelDrops: UInt64 = 0
    /// Last seen drop counter of the kernel, by socket.
    private var seen: [UInt32]

    init(sockets: Int) { seen = Array(repeating: 0, count: sockets) }

    mutating func noteOversized(bytes: Int) {
        oversized += 1
        oversizedBytes += UInt64(bytes)
    }

    /// Adds the kernel's drops; it counts modulo 2^32, from 0 when the socket was opened.
    mutating func note(queueDrops: UInt32?, socket: Int) {
        guard let queueDrops else { return }
        kernelDrops += UInt64(queueDrops &- seen[socket])
        seen[socket] = queueDrops
    }

    /// Adds the counters to the core's statistics.
    func add(
        to statistics: inout WorkerStatistics,
        _ udpSender: borrowing UDPSender,
        _ streams: borrowing TCPConnections
    ) {
        var sendDrops = udpSender.drops
        sendDrops += streams.drops
        statistics.datagramsIn += oversized
        statistics.bytesIn += oversizedBytes
        statistics.kernelDrops = kernelDrops
        statistics.sendErrors = udpSender.errors &+ streams.errors
        statistics.sendDrops = sendDrops
        statistics.sendQueueLength = udpSender.waiting + streams.waitingCount
        statistics.streams = streams.statistics
        let dropped: [DropReason: UInt64] = [
            .oversized: oversized,
            .sendQueueFull: sendDrops.sum(.full),
            .sendQueueStale: sendDrops.sum(.stale),
            .sendQueueWithdrawn: sendDrops.sum(.withdrawn),
        ]
        for (index, reason) in DropReason.allCases.enumerated() {
            statistics.drops[index] += dropped[reason] ?? 0
        }
    }
}

/// Meter of a thread's CPU share of one core, over at least a second.
struct LoadMeter {
    private var since: Instant
    private var cpuThen: Int64
    private var last = 0.0

    init(at now: Instant, cpu: Int64) {
        since = now
        cpuThen = cpu
    }

    /// Returns the share, 0 to 1; `cpu` is the thread's CPU time so far, in nanoseconds.
    mutating func share(at now: Instant, cpu: Int64) -> Double {
        let elapsed = now.nanoseconds(since: since)
        guard elapsed >= 1_000_000_000 else { return last }
        last = min(1, max(0, Double(cpu - cpuThen) / Double(elapsed)))
        since = now
        cpuThen = cpu
        return last
    }
}
