import RTP
package import WorkerInterface

/// How busy the workers are, and whether one more participant can be let in.
///
/// Workers tell what they measure. Who was let in a moment ago has not been measured yet: until
/// then it counts for what a transport of that worker costs on average, so that a crowd that comes
/// at once is not let in on the figures of the calm before it.
package struct LoadBook: Sendable {
    private struct Worker: Sendable {
        var pressure = WorkerPressure()
        var transports = 0
        /// When somebody was let in of late, by second.
        var arrivals: [(second: Int64, count: Int)] = []

        /// Percent of its time that it will be busy with those who have just come.
        func expected(at second: Int64) -> Int {
            let waiting = arrivals.reduce(0) {
                $0 + ($1.second > second - LoadBook.memory ? $1.count : 0)
            }
            guard transports >= LoadBook.leastTransports else { return pressure.busyPercent }
            let cost = min(Double(pressure.busyPercent) / Double(transports), LoadBook.mostCost)
            return pressure.busyPercent + Int(Double(waiting) * cost)
        }
    }

    /// Seconds after which who came is in the figures.
    private static let memory: Int64 = 4
    /// With fewer transports nobody knows what one costs.
    private static let leastTransports = 10
    private static let mostCost = 5.0

    private var workers: [Worker]
    private let loadPercent: Int
    /// How many were turned away.
    package private(set) var refused: UInt64 = 0

    package init(workers: Int, loadPercent: Int) {
        self.workers = Array(repeating: Worker(), count: workers)
        self.loadPercent = loadPercent
    }

    /// Takes up what a worker tells; returns what it had told before.
    @discardableResult
    package mutating func note(
        _ pressure: WorkerPressure,
        transports: Int,
        of worker: Int
    ) -> WorkerPressure {
        guard workers.indices.contains(worker) else { return pressure }
        defer {
            workers[worker].pressure = pressure
            workers[worker].transports = transports
        }
        return workers[worker].pressure
    }

    /// Whether a worker should get nobody new.
    package func isPressed(_ worker: Int) -> Bool {
        workers.indices.contains(worker) && workers[worker].pressure.step >= .joins
    }

    /// Lets one more in, or throws `4029 limit-reached` with the figures.
    mutating func admit(at now: Instant) throws(Refusal) {
        let second = now.nanoseconds / 1_000_000_000
        let free = workers.indices.filter { !isPressed($0) }
        let least = (free.isEmpty ? Array(workers.indices) : free).min {
            (workers[$0].expected(at: second), $0) < (workers[$1].expected(at: second), $1)
        }
        guard let least else { return }
        let expected = workers[least].expected(at: second)
        guard !isPressed(least), loadPercent >= 100 || expected < loadPercent else {
            refused &+= 1
            let measured = workers[least].pressure.busyPercent
            throw .overloaded(loadPercent, busy: isPressed(least) ? measured : expected)
        }
        workers[least].arrivals.removeAll { $0.second <= second - Self.memory }
        if let last = workers[least].arrivals.last, last.second == second {
            workers[least].arrivals[workers[least].arrivals.count - 1].count = last.count + 1
        } else {
            workers[least].arrivals.append((second, 1))
        }
    }

    /// The refusal of a transport for somebody who has none yet, where all workers are pressed.
    mutating func refuseTransport() throws(Refusal) {
        guard !workers.isEmpty, workers.indices.allSatisfy(isPressed) else { return }
        refused &+= 1
        let least = workers.map(\.pressure.busyPercent).min() ?? 0
        throw .overloaded(loadPercent, busy: least)
    }
}
