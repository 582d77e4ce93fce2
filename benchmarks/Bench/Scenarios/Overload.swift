import Foundation
import RTP
import SFUClient

// OVERLOAD: half as many viewers again as there can be, then half as many.
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
        let crowd = RoomPlan.broadcast(.camera, viewers: most)
        var load = trial([canary, crowd])
        load.seconds = options.seconds ?? (options.isFull ? 60 : 15)
        let rate = base[.packetsPerSecond] ?? 0
        try await with(adapter, load) { session in
            try await session.populate(load.rooms)
            try await self.overload(load, session, adapter, knee: knee, rate: rate)
        }
    }

    private func overload(
        _ load: Trial,
        _ session: Session,
        _ adapter: SfudAdapter,
        knee: Int,
        rate: Double
    ) async throws {
        await session.beginMedia()
        try await Task.sleep(for: .seconds(load.settleSeconds))
        let before = try await Watch(session, adapter)
        var worst = PressureInfo()
        for second in 0..<Int(load.seconds) {
            progress.show("sfud: 150 % of the knee, \(Int(load.seconds) - second) s to go")
            try await Task.sleep(for: .seconds(1))
            let pressure = try await adapter.pressures().first ?? PressureInfo()
            if pressure.videoKept < worst.videoKept { worst = pressure }
        }
        let after = try await Watch(session, adapter)
        var outcome = Outcome(ScenarioID.overload.rawValue, adapter.name, size: knee * 3 / 2)
        outcome.note = "150 % of the knee"
        outcome.profile = profile
        after.fill(&outcome, since: before)
        // What is held back on purpose is no gap; what was sent and did not come is.
        let audio = after.snapshot.audio.since(before.snapshot.audio)
        outcome[.audioLoss] = Double(audio.gaps) / Double(max(1, audio.owed))
        outcome[.delivered] = (outcome[.packetsPerSecond] ?? 0) / max(rate, 1)
        outcome.warnings.append(
            "least kept \(Int(worst.videoKept * 100)) % of the video, step \(worst.step.rawValue)"
        )
        // As many go as leave half of what the knee was.
        let leaving = Array(knee / 2..<knee * 3 / 2)
        progress.show("sfud: \(leaving.count) leave")
        try await Session.concurrently(leaving) {
            try await session.leave("broadcast", "viewer-\($0)")
        }
        let start = ContinuousClock.now
        while try await adapter.pressures().contains(where: { $0.videoKept < 1 }) {
            guard ContinuousClock.now - start < .seconds(30) else { break }
            try await Task.sleep(for: .milliseconds(100))
        }
        let rest = ContinuousClock.now - start
        outcome[.recovery] =
            Double(rest.components.seconds)
            + Double(rest.components.attoseconds) / 1e18
        if outcome[.delivered] ?? 0 < 0.9 { outcome.faults.append("less than 90 % of the knee") }
        if outcome[.recovery] ?? 0 > 10 { outcome.faults.append("not normal after 10 s") }
        keep(outcome)
    }
}
