import Foundation
import RTP

// P10 and P14: who comes, and who is only there.
extension Bench {
    /// P10: joins beside a running room.
    func storm() async throws {
        for adapter in [SfudAdapter()] + rivals {
            let load = trial([.broadcast(.camera, viewers: 50, name: "running")])
            let joins = options.size ?? 500
            try await with(adapter, load) { session in
                try await session.populate(load.rooms)
                // The newcomers' handshakes have a thread of their own, or they would delay the
                // running room's media at our end.
                var settings = session.engine.settings
                settings.firstClient = 20_000
                let engine = try Engine(settings, library: self.library)
                let crowd = Session(session.adapter, engine, session.running)
                // Its publisher sends nothing: the newcomers' handshakes are all there is.
                let many = 50 * Int(load.seconds)
                try await crowd.populate([Self.stormRoom], places: joins + many + 1)
                await session.beginMedia()
                try await Task.sleep(for: .seconds(load.settleSeconds))
                let calm = try await self.watching(session) {
                    try await Task.sleep(for: .seconds(load.seconds))
                }
                let quiet = Double(calm.nanoseconds) / calm.seconds
                self.keep(self.outcome(adapter, calm, joins: 0, quiet: quiet, "before the storm"))
                let storm = try await self.watching(session) {
                    try await Self.join(crowd, 0..<joins, perSecond: nil)
                }
                self.keep(self.outcome(adapter, storm, joins: joins, quiet: quiet, "all at once"))
                let stream = try await self.watching(session) {
                    try await Self.join(crowd, joins..<joins + many, perSecond: 50)
                }
                self.keep(self.outcome(adapter, stream, joins: many, quiet: quiet, "50 a second"))
                await engine.stop()
            }
        }
    }

    /// What happened in a while.
    private struct While: Sendable {
        var seconds: Double
        /// CPU of the SFU.
        var nanoseconds: Int64
        var latency: LatencyHistogram
        var loss: Double
        var delay: DelayBuckets?
    }

    private func watching(
        _ session: Session,
        _ body: () async throws -> Void
    ) async throws -> While {
        let before = await session.engine.perform { $0.snapshot() }
        let delay = try await session.adapter.forwardingDelay()
        let usage = ProcessUsage.of(session.running.processes)
        try await body()
        let used = ProcessUsage.of(session.running.processes).nanoseconds(since: usage)
        let after = await session.engine.perform { $0.snapshot() }
        let slots = after.slots.since(before.slots)
        return While(
            seconds: Double(after.at.nanoseconds(since: before.at)) / 1e9,
            nanoseconds: used,
            latency: after.latency,
            loss: Double(slots.gaps) / Double(max(1, slots.owed)),
            delay: try await session.adapter.forwardingDelay()?.since(delay)
        )
    }

    private func outcome(
        _ adapter: any Adapter,
        _ found: While,
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
        outcome[.delay99] = found.delay?.milliseconds(0.99)
        outcome[.cpuShare] = Double(found.nanoseconds) / 1e9 / found.seconds
        guard joins > 0 else { return outcome }
        outcome[.joinsPerSecond] = Double(joins) / found.seconds
        // Less what the running room takes.
        let spent = Double(found.nanoseconds) - quiet * found.seconds
        if spent > 0 { outcome[.joinsPerCPUSecond] = Double(joins) / (spent / 1e9) }
        return outcome
    }

    private static let stormRoom = RoomPlan.broadcast(.camera, viewers: 0, name: "storm")

    /// Lets people join, watch the one publisher and connect; all at once, or some a second.
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
            // Some SFUs connect a viewer when it joins, others when it watches.
            var newcomer = viewer
            newcomer.name = "newcomer-\(number)"
            try await session.join(stormRoom.name, newcomer)
            try await session.watch(stormRoom.name, newcomer, keepsFrames: false)
        }
        try await session.awaitConnected()
    }

    /// Starts an SFU as `load` says and lets `body` use it.
    private func with(
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

// P14.
extension Bench {
    func idle() async throws {
        for adapter in [SfudAdapter()] + rivals {
            try await connected(adapter, options.size ?? 2_000)
            try await subscribed(adapter)
        }
    }

    /// Memory of a viewer, by a line through four sizes, and the CPU of all of them at rest.
    private func connected(_ adapter: any Adapter, _ viewers: Int) async throws {
        let load = trial([])
        try await with(adapter, load) { session in
            try await session.populate([RoomPlan.broadcast(.camera, viewers: 1, name: "idle")])
            var points: [(x: Double, y: Double)] = []
            var next = 0
            for step in 1...4 {
                let numbers = Array(next..<viewers * step / 4)
                next = viewers * step / 4
                try await Session.concurrently(numbers) { number in
                    let name = "idle-\(number)"
                    let plan = RoomPlan.broadcast(.camera, viewers: 1)
                    var viewer = plan.participants[1]
                    viewer.name = name
                    try await session.join("idle", viewer)
                    try await session.watch("idle", viewer, keepsFrames: false)
                }
                try await session.awaitConnected()
                try await Task.sleep(for: .milliseconds(500))
                let usage = ProcessUsage.of(session.running.processes)
                points.append((Double(next), Double(usage.resident)))
                self.progress.show("\(adapter.name): \(next) connected")
            }
            let before = ProcessUsage.of(session.running.processes)
            let seconds = max(5, load.seconds)
            try await Task.sleep(for: .seconds(seconds))
            let after = ProcessUsage.of(session.running.processes)
            var outcome = Outcome(ScenarioID.idle.rawValue, adapter.name, size: viewers)
            outcome.note = "connected"
            outcome.profile = self.profile
            outcome[.cpuShare] = Double(after.nanoseconds(since: before)) / 1e9 / seconds
            outcome[.residentBytes] = Double(after.resident)
            outcome[.bytesPerViewer] = Fit.line(points)?.slope
            self.keep(outcome)
        }
    }

    /// Memory of a subscription: the same clients with one each, and with twenty.
    private func subscribed(_ adapter: any Adapter) async throws {
        let viewers = min(options.size ?? 250, 250)
        let most = 20
        var resident: [Double] = []
        for count in [1, most] {
            let publishers = (0..<most).map {
                RoomPlan.Participant(name: "publisher-\($0)", media: .camera)
            }
            let wishes = (0..<count).map {
                WatchRequest.Wish(publisher: "publisher-\($0)", audio: true, video: true, layer: 2)
            }
            let audience = (0..<viewers).map {
                RoomPlan.Participant(name: "viewer-\($0)", wishes: wishes, slots: most)
            }
            let room = RoomPlan(name: "silent", participants: publishers + audience)
            try await with(adapter, trial([room])) { session in
                try await session.populate([room])
                try await Task.sleep(for: .seconds(1))
                resident.append(Double(ProcessUsage.of(session.running.processes).resident))
            }
        }
        var outcome = Outcome(ScenarioID.idle.rawValue, adapter.name, size: viewers)
        outcome.note = "subscriptions of audio and video, 1 and \(most) each"
        outcome.profile = profile
        let further = Double(viewers * (most - 1))
        outcome[.bytesPerSubscription] = (resident[1] - resident[0]) / further
        keep(outcome)
    }
}
