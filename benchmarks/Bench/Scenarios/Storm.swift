import Foundation
import RTP

// P10: joins.
extension Bench {
    /// Runs P10: joins beside a room with media.
    func storm() async throws {
        for adapter in [SfudAdapter()] + rivals {
            let load = trial([.broadcast(.camera, viewers: 50, name: "running")])
            try await with(adapter, load) { session in
                try await session.populate(load.rooms)
                // The newcomers' handshakes run on another thread, because they would delay the
                // running room's media at our end.
                var settings = session.engine.settings
                settings.firstClient = 20_000
                let engine = try Engine(settings, library: self.library)
                let crowd = Session(session.adapter, engine, session.running)
                do {
                    try await self.storm(load, session, crowd)
                } catch {
                    await engine.stop()
                    throw error
                }
                await engine.stop()
            }
        }
    }

    /// Measures the running room: alone, with all newcomers at once, and with some a second.
    private func storm(_ load: Trial, _ session: Session, _ crowd: Session) async throws {
        let adapter = session.adapter
        let joins = options.size ?? 500
        let later = 50 * Int(load.seconds)
        // Its publisher sends nothing, so that the newcomers cause only handshakes.
        try await crowd.populate([Self.stormRoom], places: joins + later + 1)
        await session.beginMedia()
        try await Task.sleep(for: .seconds(load.settleSeconds))
        let calm = try await watching(session) {
            try await Task.sleep(for: .seconds(load.seconds))
        }
        let quiet = Double(calm.nanoseconds) / calm.seconds
        keep(outcome(adapter, calm, joins: 0, quiet: quiet, "before the storm"))
        progress.show("\(adapter.name): \(joins) joins")
        let storm = try await watching(session) {
            try await Self.join(crowd, 0..<joins, perSecond: nil)
        }
        keep(outcome(adapter, storm, joins: joins, quiet: quiet, "all at once"))
        progress.show("\(adapter.name): 50 joins a second")
        let stream = try await watching(session) {
            try await Self.join(crowd, joins..<joins + later, perSecond: 50)
        }
        keep(outcome(adapter, stream, joins: later, quiet: quiet, "50 a second"))
    }

    /// Measurements of an interval.
    private struct IntervalMeasurement: Sendable {
        var seconds: Double
        /// CPU of the SFU, in nanoseconds.
        var nanoseconds: Int64
        var latency: LatencyHistogram
        var loss: Double
        var delay: DelayBuckets?
        /// Share of the time over which `delay` was taken, which is a second or more.
        var delayShare: Double
    }

    private func watching(
        _ session: Session,
        _ body: () async throws -> Void
    ) async throws -> IntervalMeasurement {
        let before = await session.engine.perform { $0.snapshot() }
        let delay = try await session.adapter.forwardingDelay()
        let start = ContinuousClock.now
        let usage = ProcessUsage.of(session.running.processes)
        try await body()
        let used = ProcessUsage.of(session.running.processes).nanoseconds(since: usage)
        let after = await session.engine.perform { $0.snapshot() }
        let slots = after.slots.since(before.slots)
        let seconds = Double(after.at.nanoseconds(since: before.at)) / 1e9
        try await Task.sleep(until: start + Self.metricsPeriod, clock: .continuous)
        return IntervalMeasurement(
            seconds: seconds,
            nanoseconds: used,
            latency: after.latency,
            loss: Double(slots.gaps) / Double(max(1, slots.expected)),
            delay: try await session.adapter.forwardingDelay()?.since(delay),
            delayShare: min(1, seconds * 1e9 / Double(Self.metricsPeriod / .nanoseconds(1)))
        )
    }

    /// Time after which sfud's metrics are new for sure, as it keeps them for a second.
    private static let metricsPeriod = Duration.milliseconds(1_100)

    private func outcome(
        _ adapter: any Adapter,
        _ found: IntervalMeasurement,
        joins: Int,
        quiet: Double,
        _ note: String
    ) -> Outcome {
        var outcome = Outcome(ScenarioID.storm.rawValue, adapter.name, size: joins)
        outcome.note = note
        outcome.profile = profile
        outcome[.latency50] = found.latency.milliseconds(0.5)
        outcome[.latency99] = found.latency.milliseconds(0.99)
        outcome[.latency999] = found.latency.milliseconds(0.999)
        outcome[.loss] = found.loss
        // A storm may be over before the metrics are new: then all slow packets count as its own.
        outcome[.delay99] = found.delay?.milliseconds(1 - 0.01 * found.delayShare)
        outcome[.cpuShare] = Double(found.nanoseconds) / 1e9 / found.seconds
        guard joins > 0 else { return outcome }
        outcome[.joinsPerSecond] = Double(joins) / found.seconds
        // Subtracts the CPU that the running room uses.
        let spent = Double(found.nanoseconds) - quiet * found.seconds
        if spent > 0 { outcome[.joinsPerCPUSecond] = Double(joins) / (spent / 1e9) }
        return outcome
    }

    private static let stormRoom = RoomPlan.broadcast(.camera, viewers: 0, name: "storm")

    /// Joins participants, subscribes them to the publisher and connects them.
    ///
    /// All join at once, or `perSecond` a second.
    private static func join(
        _ session: Session,
        _ numbers: Range<Int>,
        perSecond: Int?
    ) async throws {
        let start = ContinuousClock.now
        let viewer = RoomPlan.broadcast(.camera, viewers: 1).participants[1]
        try await Session.concurrently(Array(numbers), limit: 64) { number in
            if let perSecond {
                let wait = Duration.milliseconds(1_000 * (number - numbers.lowerBound) / perSecond)
                try await Task.sleep(until: start + wait, clock: .continuous)
            }
            // Some SFUs connect a viewer when it joins, others when it subscribes.
            var newcomer = viewer
            newcomer.name = "newcomer-\(number)"
            try await session.join(stormRoom.name, newcomer)
            try await session.watch(stormRoom.name, newcomer, keepsFrames: false)
        }
        try await session.awaitConnected()
    }

    /// Starts an SFU according to `load` and calls `body` with it.
    func with(
        _ adapter: any Adapter,
        _ load: Trial,
        _ body: (Session) async throws -> Void
    ) async throws {
        let directory = try Scratch()
        defer { directory.remove() }
        var settings = load.settings
        settings.profile = load.profile
        let launch = Launch(
            workers: load.workers,
            profile: load.profile,
            directory: directory.path,
            executable: adapter.name == "sfud" ? load.executable : nil
        )
        try await Session.with(adapter, launch, settings, library) { session in
            versions[adapter.name] = session.running.version
            try await body(session)
        }
    }
}
