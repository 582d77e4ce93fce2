import Contract
import Foundation
import RTP

// OVERLOAD: 150 % of the viewers at the knee, then 50 %.
extension Bench {
    func overload() async throws {
        let adapter = SfudAdapter()
        let knee: Int
        if let size = options.size { knee = size } else { knee = try await climb(adapter) }
        guard knee > 0 else { return }
        var usual = trial([.broadcast(.camera, viewers: knee)])
        usual.seconds = 5
        let base = try await measure(.overload, adapter, usual, size: knee, note: "the knee")
        let most = knee * 3 / 2
        let canary = RoomPlan.meeting(of: 4, media: .camera, slots: 3, name: "canary")
        var load = trial([canary])
        load.seconds = options.seconds ?? (options.isFull ? 60 : 15)
        let rate = base[.packetsPerSecond] ?? 0
        try await with(adapter, load) { session in
            try await session.populate(load.rooms)
            try await session.withCrowd(self.library) { crowd in
                try await crowd.populate([.broadcast(.camera, viewers: most)])
                try await self.overload(load, session, crowd, adapter, knee: knee, rate: rate)
            }
        }
    }

    private func overload(
        _ load: Trial,
        _ canary: Session,
        _ crowd: Session,
        _ adapter: SfudAdapter,
        knee: Int,
        rate: Double
    ) async throws {
        await canary.beginMedia()
        await crowd.beginMedia()
        try await Task.sleep(for: .seconds(load.settleSeconds))
        let before = (
            try await RoomMeasurement(crowd, adapter), try await RoomMeasurement(canary, adapter)
        )
        var worst = OverloadInfo()
        for second in 0..<Int(load.seconds) {
            progress.show("sfud: 150 % of the knee, \(Int(load.seconds) - second) s to go")
            try await Task.sleep(for: .seconds(1))
            let pressure = try await adapter.pressures().first ?? OverloadInfo()
            if pressure.videoKept < worst.videoKept { worst = pressure }
        }
        let after = (
            try await RoomMeasurement(crowd, adapter), try await RoomMeasurement(canary, adapter)
        )
        var outcome = Outcome(ScenarioID.overload.rawValue, adapter.name, size: knee * 3 / 2)
        outcome.note = "150 % of the knee"
        outcome.profile = profile
        after.0.fill(&outcome, since: before.0)
        outcome[.delivered] = (outcome[.packetsPerSecond] ?? 0) / max(rate, 1)
        outcome.warnings.append(
            "least kept \(Int(worst.videoKept * 100)) % of the video, step \(worst.step.rawValue)"
        )
        outcome[.recovery] = try await recovery(crowd, adapter, knee: knee)
        if outcome[.delivered] ?? 0 < 0.9 { outcome.faults.append("less than 90 % of the knee") }
        if outcome[.recovery] ?? 0 > 10 { outcome.faults.append("not normal after 10 s") }
        keep(outcome)
        var beside = Outcome(ScenarioID.overload.rawValue, adapter.name, size: 4)
        beside.note = "a room of four beside 150 % of the knee"
        beside.profile = profile
        after.1.fill(&beside, since: before.1)
        keep(beside)
    }

    /// Keeps half of the knee's viewers; returns the seconds until all video is sent again.
    private func recovery(
        _ crowd: Session,
        _ adapter: SfudAdapter,
        knee: Int
    ) async throws -> Double {
        let leaving = Array(knee / 2..<knee * 3 / 2)
        progress.show("sfud: \(leaving.count) leave")
        try await Session.concurrently(leaving) {
            try await crowd.leave("broadcast", "viewer-\($0)")
        }
        let start = ContinuousClock.now
        while try await adapter.pressures().contains(where: { $0.videoKept < 1 }) {
            guard ContinuousClock.now - start < .seconds(30) else { break }
            try await Task.sleep(for: .milliseconds(100))
        }
        return (ContinuousClock.now - start) / .seconds(1)
    }
}
