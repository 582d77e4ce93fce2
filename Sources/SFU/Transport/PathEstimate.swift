import RTP
import WorkerInterface

/// Estimates of the transports' paths, as far as the slots are to be allocated again.
extension Transports {
    /// Divisor of the estimate that gives the smallest change that triggers an allocation: 2 %.
    private static let estimateStep = 50

    /// Shortest interval between allocations while the estimate grows, and while it falls.
    ///
    /// The second one is shorter because media above the path's rate builds up a queue meanwhile.
    private static let growthMilliseconds: Int64 = 100

    private static let fallMilliseconds: Int64 = 10

    /// Schedules an allocation if the estimate has moved noticeably.
    mutating func noteEstimate(of transport: TransportIndex, at now: Instant) {
        transports[transport].bandwidth?.updatePacingRate(at: now)
        let known = transports[transport].bandwidth?.usableEstimate(at: now)
        let before = transports[transport].allocatedEstimate
        guard known != before else { return }
        if let known, let before, abs(known - before) * Self.estimateStep < before { return }
        let isFall = before.map { (known ?? .max) < $0 } ?? (known != nil)
        let pause = isFall ? Self.fallMilliseconds : Self.growthMilliseconds
        let next = transports[transport].allocatedAt?.advanced(milliseconds: pause) ?? now
        scheduleAllocation(of: transport, by: max(now, next), at: now)
    }
}
