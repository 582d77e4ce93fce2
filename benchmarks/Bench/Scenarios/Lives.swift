import Foundation

// LIVES: the daemon is replaced, and killed, while a room plays.
extension Bench {
    /// End of a process that the next one goes on from.
    enum LifeEnd: String, CaseIterable, Sendable { case upgrade, kill }

    /// Seconds from one end to the next; lives that end within a second would look suspicious.
    private static let lifeSeconds = 2.0

    func lives() async throws {
        for end in LifeEnd.allCases {
            let adapter = SfudAdapter(hasKeeper: true)
            let load = trial([.broadcast(.camera, viewers: options.size ?? 200)])
            try await with(adapter, load) { session in
                self.progress.show("sfud: connecting")
                try await session.populate(load.rooms)
                await session.beginMedia()
                try await Task.sleep(for: .seconds(load.settleSeconds))
                try await self.lives(load, session, adapter, end)
            }
        }
    }

    private func lives(
        _ load: Trial,
        _ session: Session,
        _ adapter: SfudAdapter,
        _ end: LifeEnd
    ) async throws {
        let count = max(2, Int(load.seconds / Self.lifeSeconds))
        let before = await session.engine.perform { $0.snapshot() }
        var pauses: [Double] = []
        for number in 0..<count {
            progress.show("sfud: \(end.rawValue) \(number + 1) of \(count)")
            _ = await session.engine.perform { $0.snapshot() }
            try await adapter.replace(by: end)
            // The time at which the process ends is no multiple of a frame's.
            let more = Double.random(in: 0..<0.1)
            try await Task.sleep(for: .seconds(Self.lifeSeconds + more))
            let after = await session.engine.perform { $0.snapshot() }
            pauses.append(Double(after.longestPause) / 1e6)
        }
        // Packets in flight arrive, or are asked for again.
        try await Task.sleep(for: .seconds(1))
        let after = await session.engine.perform { $0.snapshot() }
        let slots = after.slots.since(before.slots)
        let requests = after.publishers.keyframeRequests &- before.publishers.keyframeRequests
        var outcome = Outcome(
            ScenarioID.lives.rawValue,
            adapter.name,
            size: load.rooms[0].participants.count - 1
        )
        outcome.note = "\(end.rawValue), \(count) times"
        outcome.profile = profile
        let ordered = pauses.sorted()
        outcome[.pause50] = ordered[ordered.count / 2]
        outcome[.pause99] = ordered[ordered.count * 99 / 100]
        outcome[.pauseMax] = ordered[ordered.count - 1]
        outcome[.lostPerLife] = Double(slots.missing) / Double(count)
        outcome[.keyframesPerLife] = Double(requests) / Double(count)
        outcome[.loss] = Double(slots.missing) / Double(max(1, slots.expected))
        if slots.undecryptable > 0 {
            outcome.faults.append("\(slots.undecryptable) packets cannot be decrypted")
        }
        if slots.duplicates > 0 { outcome.faults.append("\(slots.duplicates) numbers came twice") }
        if slots.discontinuities > 0 {
            outcome.faults.append("\(slots.discontinuities) packets do not continue their stream")
        }
        let left = before.connected - after.connected
        if left != 0 { outcome.faults.append("\(left) clients are no longer connected") }
        keep(outcome)
    }
}
