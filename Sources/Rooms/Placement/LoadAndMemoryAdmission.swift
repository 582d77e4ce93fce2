import RTP
package import WorkerInterface

/// Per-worker load tracker that decides whether one more participant may join.
///
/// Workers report their measured load. A participant admitted a moment ago does not show in the
/// measurements yet. Until it does, it counts as the average cost of one transport of that worker,
/// so that a sudden crowd is not admitted on figures from before it arrived.
package struct WorkerLoadTracker: Sendable {
    private struct Worker: Sendable {
        var pressure = WorkerOverload()
        var transports = 0
        /// Recent admissions, counted by second.
        var arrivals: [(second: Int64, count: Int)] = []

        /// Returns the expected busy percentage, including recent admissions that are not measured
        /// yet.
        func expected(at second: Int64) -> Int {
            let waiting = arrivals.reduce(0) {
                $0 + ($1.second > second - WorkerLoadTracker.memory ? $1.count : 0)
            }
            guard transports >= WorkerLoadTracker.leastTransports else {
                return pressure.busyPercent
            }
            let cost = min(
                Double(pressure.busyPercent) / Double(transports),
                WorkerLoadTracker.mostCost
            )
            return pressure.busyPercent + Int(Double(waiting) * cost)
        }
    }

    /// Seconds until an admission shows in the measured load.
    private static let memory: Int64 = 4
    /// Minimum number of transports for a meaningful average cost per transport.
    private static let leastTransports = 10
    /// Upper bound on the assumed cost of one transport, in percent of a worker's time.
    private static let mostCost = 5.0

    private var workers: [Worker]
    private let loadPercent: Int
    /// Number of joins and first transports refused since the start.
    package private(set) var refused: UInt64 = 0

    package init(workers: Int, loadPercent: Int) {
        self.workers = Array(repeating: Worker(), count: workers)
        self.loadPercent = loadPercent
    }

    /// Records a worker's report and returns its previous one.
    @discardableResult
    package mutating func note(
        _ pressure: WorkerOverload,
        transports: Int,
        of worker: Int
    ) -> WorkerOverload {
        guard workers.indices.contains(worker) else { return pressure }
        defer {
            workers[worker].pressure = pressure
            workers[worker].transports = transports
        }
        return workers[worker].pressure
    }

    /// Mean share of time for which the workers were busy when they last reported: 0 to 1.
    package var meanBusy: Double {
        guard !workers.isEmpty else { return 0 }
        return Double(workers.reduce(0) { $0 + $1.pressure.busyPercent })
            / Double(workers.count) / 100
    }

    /// Whether a worker is too loaded to take new transports.
    package func isOverloaded(_ worker: Int) -> Bool {
        workers.indices.contains(worker) && workers[worker].pressure.step >= .joins
    }

    /// Admits one more participant, or throws `4029 limit-reached` with the load figures.
    mutating func admit(at now: Instant) throws(CallError) {
        let second = now.nanoseconds / 1_000_000_000
        let free = workers.indices.filter { !isOverloaded($0) }
        let least = (free.isEmpty ? Array(workers.indices) : free).min {
            (workers[$0].expected(at: second), $0) < (workers[$1].expected(at: second), $1)
        }
        guard let least else { return }
        let expected = workers[least].expected(at: second)
        guard !isOverloaded(least), loadPercent >= 100 || expected < loadPercent else {
            refused &+= 1
            let measured = workers[least].pressure.busyPercent
            throw .overloaded(loadPercent, busy: isOverloaded(least) ? measured : expected)
        }
        workers[least].arrivals.removeAll { $0.second <= second - Self.memory }
        if let last = workers[least].arrivals.last, last.second == second {
            workers[least].arrivals[workers[least].arrivals.count - 1].count = last.count + 1
        } else {
            workers[least].arrivals.append((second, 1))
        }
    }

    /// Throws `4029 limit-reached` if all workers are overloaded.
    ///
    /// Checked for the first transport of a participant.
    mutating func refuseTransport() throws(CallError) {
        guard !workers.isEmpty, workers.indices.allSatisfy(isOverloaded) else { return }
        refused &+= 1
        let least = workers.map(\.pressure.busyPercent).min() ?? 0
        throw .overloaded(loadPercent, busy: least)
    }
}

/// Memory admission check of the process.
///
/// When memory runs out, the system kills the process and every call with it. Requests that need
/// more memory are refused before that.
package struct MemoryAdmission: Sendable {
    /// Limit of resident memory, in MiB (2^20 bytes); 0: none.
    private let limitMegabytes: Int
    /// Resident memory of the process at its last measurement, in MiB (2^20 bytes).
    package var residentMegabytes = 0
    /// Number of requests refused since the start.
    package private(set) var refused: UInt64 = 0

    package init(limitMegabytes: Int) { self.limitMegabytes = limitMegabytes }

    /// Throws `4029 limit-reached` with both figures if the limit is reached.
    package mutating func refuseMore() throws(CallError) {
        guard limitMegabytes > 0, residentMegabytes >= limitMegabytes else { return }
        refused &+= 1
        throw .outOfMemory(limitMegabytes, resident: residentMegabytes)
    }
}
