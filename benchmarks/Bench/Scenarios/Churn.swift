import Foundation

// CHURN: memory and descriptors left by closed rooms.
extension Bench {
    private static let atATime = 20
    /// Closed rooms whose name and last event sfud remembers (docs/limits.md).
    private static let remembered = 1_000
    /// Pause after each round, in seconds, until sfud has returned free memory.
    ///
    /// A heap in use is as large as its highest demand.
    private static let restSeconds = 3.5
    /// Environment that disables the C library's per-thread caches.
    ///
    /// They keep up to seven free chunks of each of 64 sizes, which hold more and more pages
    /// although sfud leaks nothing. mallopt(3) cannot disable them, GLIBC_TUNABLES can.
    private static let withoutCaches = ["GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"]

    func churn() async throws {
        let rooms = options.size ?? (options.isFull ? 10_000 : 200)
        let rounds = min(rooms, options.isFull ? 25 : 15)
        let adapter = SfudAdapter(environment: Self.withoutCaches)
        let canary = RoomPlan.canary
        let load = trial([canary])
        try await with(adapter, load) { session in
            try await session.populate([canary])
            await session.beginMedia()
            // Fills the memory of closed rooms before the measurement.
            for number in 0..<Self.remembered {
                try await adapter.makeRoom("empty-\(number)", participants: 0)
                try await adapter.closeRoom("empty-\(number)")
            }
            try await Task.sleep(for: .seconds(load.settleSeconds))
            let before = try await RoomMeasurement(session, adapter)
            let start = ProcessUsage.of(session.running.processes)
            var resident: [(x: Double, y: Double)] = []
            var allocated: [(x: Double, y: Double)] = []
            var made = 0
            var end = start
            for round in 1...rounds {
                while made < rooms * round / rounds {
                    let names = made..<min(rooms * round / rounds, made + Self.atATime)
                    try await self.use(names, in: session)
                    made = names.upperBound
                    self.progress.show("sfud: \(made) rooms")
                }
                try await Task.sleep(for: .seconds(Self.restSeconds))
                let usage = ProcessUsage.of(session.running.processes)
                // Measured before the heap is queried, so that the query's connection is not
                // counted.
                end = usage
                resident.append((Double(made), Double(usage.resident)))
                allocated.append((Double(made), try adapter.heapBytes()))
            }
            var outcome = Outcome(ScenarioID.churn.rawValue, adapter.name, size: rooms)
            outcome.note = "rooms of two"
            outcome.profile = self.profile
            // The first third is left out of the slope: tables that grow once, and fragmentation
            // until free chunks exist for everything that is allocated and freed.
            if let slope = TheilSen(resident.dropFirst(resident.count / 3)) {
                outcome[.bytesPerRoom] = slope.median
                outcome[.bytesPerRoomLow] = slope.low
                outcome[.bytesPerRoomHigh] = slope.high
                if slope.low > 0 { outcome.faults.append("memory grows with the rooms") }
            }
            if let slope = TheilSen(allocated.dropFirst(allocated.count / 3)) {
                outcome[.heapPerRoom] = slope.median
                outcome[.heapPerRoomLow] = slope.low
                outcome[.heapPerRoomHigh] = slope.high
                if slope.low > 0 { outcome.faults.append("what is allocated grows with the rooms") }
            }
            outcome[.residentBytes] = Double(end.resident)
            outcome[.descriptorsLeft] = Double(end.descriptors - start.descriptors)
            if end.descriptors > start.descriptors { outcome.faults.append("descriptors left") }
            try await RoomMeasurement(session, adapter).fill(&outcome, since: before)
            self.keep(outcome)
        }
    }

    /// Creates rooms of a publisher and a viewer, runs them for a second, and closes them.
    private func use(_ numbers: Range<Int>, in session: Session) async throws {
        let rooms = numbers.map { RoomPlan.broadcast(.camera, viewers: 1, name: "churn-\($0)") }
        try await session.populate(rooms)
        await session.beginMedia(of: rooms.map(\.name))
        try await Task.sleep(for: .seconds(1))
        try await Session.concurrently(rooms) { try await session.close($0) }
    }
}

/// Theil-Sen estimator: a slope robust to outliers, the median of the slopes of all pairs.
///
/// Its 95 % interval is by ranks (Sen 1968), so it assumes no distribution of the deviations.
struct TheilSen {
    let median: Double
    let low: Double
    let high: Double

    /// Computes the slope; returns `nil` for fewer than ten points.
    ///
    /// No two points may have the same `x`.
    init?(_ points: some Sequence<(x: Double, y: Double)>) {
        let points = Array(points)
        guard points.count >= 10 else { return nil }
        var slopes: [Double] = []
        for (index, one) in points.enumerated() {
            for other in points[(index + 1)...] {
                slopes.append((other.y - one.y) / (other.x - one.x))
            }
        }
        slopes.sort()
        let count = Double(points.count)
        // Standard deviation of Kendall's S without a slope.
        let deviation = (count * (count - 1) * (2 * count + 5) / 18).squareRoot()
        let beyond = Int((Double(slopes.count) - 1.96 * deviation) / 2)
        median = (slopes[(slopes.count - 1) / 2] + slopes[slopes.count / 2]) / 2
        low = slopes[max(0, beyond)]
        high = slopes[min(slopes.count - 1, slopes.count - 1 - beyond)]
    }
}
