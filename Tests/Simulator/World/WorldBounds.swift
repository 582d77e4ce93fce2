import Daemon
import RTP
import SFU
import WorkerInterface

// Bounds of each transport's use of a worker's memory and time.
extension World {
    /// Checks every worker's tables against their limits.
    func checkBounds() {
        for worker in workers {
            if let text = worker.round.core.excess {
                violate(.bounds, "worker \(worker.index) keeps \(text)")
            }
            if worker.events.count > Self.eventLimit {
                violate(.bounds, "\(worker.events.count) events of worker \(worker.index) wait")
            }
        }
    }

    private static let eventLimit = 10_000

    /// Checks the RTCP that a worker has read since its last report against its transports'
    /// budgets.
    func checkReports(_ statistics: WorkerStatistics, of worker: Int) {
        defer { reportsRead[worker] = (statistics.rtcpIn, now) }
        guard let before = reportsRead[worker] else { return }
        let read = Int(clamping: statistics.rtcpIn - before.count)
        let adversaries = clients.values.count { $0.isAdversary && $0.worker == worker }
        // Half a second's worth may come at once, and a stall delays a report.
        let milliseconds = Int(now.milliseconds(since: before.time)) + 500
        let hostile = adversaries * Self.reportsPerSecond * milliseconds / 1_000
        let honest = clients.count * Self.honestReports * milliseconds / 1_000
        guard read > hostile + honest + Self.reportsPerSecond else { return }
        violate(.bounds, "worker \(worker) reads \(read) reports in \(milliseconds - 500) ms")
    }

    private static let reportsPerSecond = CoreLimits.default.rtcpPerSecond
    private static let honestReports = 100
}
