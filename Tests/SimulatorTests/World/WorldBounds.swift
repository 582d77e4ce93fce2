import RTP

@testable import SFU
@testable import sfud

// The bounds of what transports make a worker keep and do.
extension World {
    /// Holds every worker's tables against their limits.
    func checkBounds() {
        for worker in workers {
            if let text = worker.core.excess {
                violate(.bounds, "worker \(worker.index) keeps \(text)")
            }
            if worker.events.count > Self.eventLimit {
                violate(.bounds, "\(worker.events.count) events of worker \(worker.index) wait")
            }
        }
    }

    private static let eventLimit = 10_000

    /// Holds the RTCP that a worker has read since its last report against what transports may make
    /// it read.
    func checkReports(_ statistics: WorkerStatistics, of worker: Int) {
        defer { reportsRead[worker] = (statistics.rtcpIn, now) }
        guard let before = reportsRead[worker] else { return }
        let read = Int(clamping: statistics.rtcpIn - before.count)
        let adversaries = clients.values.count { $0.isAdversary && $0.worker == worker }
        // Half a second's worth may come at once, and a stall keeps a report waiting.
        let milliseconds = Int(now.milliseconds(since: before.time)) + 500
        let hostile = adversaries * Self.reportsPerSecond * milliseconds / 1_000
        let honest = clients.count * Self.honestReports * milliseconds / 1_000
        guard read > hostile + honest + Self.reportsPerSecond else { return }
        violate(.bounds, "worker \(worker) reads \(read) reports in \(milliseconds - 500) ms")
    }

    private static let reportsPerSecond = CoreLimits.default.rtcpPerSecond
    private static let honestReports = 100
}

extension Core {
    /// The first table that has more than its limits allow, in words.
    var excess: String? {
        let count = transports.count
        var tables: [(name: String, count: Int, limit: Int)] = [
            ("paths", paths.count, count * limits.pathsPerTransport),
            // One of before the last restart of ICE.
            ("fragments", fragments.count, 2 * count),
            ("packets", pool.used, limits.packetPool + 1),
            ("packets for new listeners", replays.count, 65_536),
        ]
        for index in 0..<transports.capacity where transports.isOccupied(index) {
            let paths = transports[index].ice.paths.count
            let streams = transports[index].streams.count
            let strays = transports[index].strays.count
            tables += [
                ("paths of a transport", paths, limits.pathsPerTransport),
                ("streams of a transport", streams, limits.streamsPerTransport),
                ("SSRCs without a stream", strays, Transport.strayLimit),
            ]
        }
        let excess = tables.first { $0.count > $0.limit }
        return excess.map { "\($0.count) \($0.name), more than \($0.limit)" }
    }
}
