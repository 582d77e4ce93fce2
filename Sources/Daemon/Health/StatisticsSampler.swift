import RTP
import WorkerInterface

/// Collector of all workers' statistics for `/metrics`, one sample at a time.
struct StatisticsSampler {
    private var latest: [WorkerStatistics?]
    private var missing: Set<Int> = []
    private var token: UInt64 = Self.mark
    private(set) var deadline: Instant?

    init(workers: Int) { latest = Array(repeating: nil, count: workers) }

    /// Returns whether a token belongs to a sample rather than to the control plane.
    static func owns(token: UInt64) -> Bool { token & mark != 0 }

    /// Begins a sample unless one is in progress; returns the command for every worker.
    mutating func begin(at now: Instant) -> WorkerCommand? {
        guard deadline == nil else { return nil }
        token = (token &+ 1) | Self.mark
        missing = Set(latest.indices)
        deadline = now.advanced(milliseconds: Self.patienceMilliseconds)
        return .report(token: token)
    }

    mutating func receive(_ statistics: WorkerStatistics, token: UInt64, from worker: Int) {
        guard token == self.token else { return }
        latest[worker] = statistics
        missing.remove(worker)
    }

    /// Returns the sample when it is complete or its deadline has passed.
    ///
    /// A worker that has not answered appears with its previous statistics.
    mutating func take(at now: Instant) -> [WorkerStatistics]? {
        guard let deadline, missing.isEmpty || deadline <= now else { return nil }
        self.deadline = nil
        return latest.map { $0 ?? WorkerStatistics() }
    }

    /// Bit that is set in the sampler's tokens and never in the control plane's.
    private static let mark: UInt64 = 1 << 63
    /// Time to wait for the workers.
    private static let patienceMilliseconds: Int64 = 500
}
