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
