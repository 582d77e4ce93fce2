// P14: idle connected viewers.
extension Bench {
    /// Time until sfud has returned the memory that it has freed: it does so two seconds after the
    /// last join.
    private static let settleTime = Duration.seconds(3)

    func idle() async throws {
        for adapter in [SfudAdapter()] + rivals {
            try await connected(adapter, options.size ?? 2_000)
            try await subscribed(adapter)
        }
    }

    /// Measures memory by viewer, as a line through four sizes, and the CPU of all at rest.
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
                try await Task.sleep(for: Self.settleTime)
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
            outcome[.bytesPerViewer] = LeastSquares.line(points)?.slope
            self.keep(outcome)
        }
    }

    /// Measures memory by subscription: the same clients with one each, and with twenty.
    private func subscribed(_ adapter: any Adapter) async throws {
        let viewers = min(options.size ?? 250, 250)
        let most = 20
        var resident: [Double] = []
        for count in [1, most] {
            let publishers = (0..<most).map {
                RoomPlan.Participant(name: "publisher-\($0)", media: .camera)
            }
            let streamRequests = (0..<count).map {
                WatchRequest.StreamRequest(
                    publisher: "publisher-\($0)",
                    audio: true,
                    video: true,
                    layer: 2
                )
            }
            let audience = (0..<viewers).map {
                RoomPlan.Participant(
                    name: "viewer-\($0)",
                    streamRequests: streamRequests,
                    slots: most
                )
            }
            let room = RoomPlan(name: "silent", participants: publishers + audience)
            try await with(adapter, trial([room])) { session in
                try await session.populate([room])
                try await Task.sleep(for: Self.settleTime)
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
