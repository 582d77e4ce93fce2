import Contract
import Foundation
import RTP

// FLOOD: datagrams from unknown sources, while participants join and a room of four has media.
extension Bench {
    /// Divisor of the flood: 1 with `--full`, else 10.
    private var floodShare: Int { options.isFull ? 1 : 10 }

    func flood() async throws {
        let joins = options.size ?? 100
        let adapter = SfudAdapter()
        let room = RoomPlan.canary
        let load = trial([room])
        try await with(adapter, load) { session in
            try await session.populate([room])
            try await session.withCrowd(self.library) { crowd in
                try await self.flood(load, session, crowd, adapter, joins: joins)
            }
        }
    }

    private func flood(
        _ load: Trial,
        _ session: Session,
        _ crowd: Session,
        _ adapter: SfudAdapter,
        joins: Int
    ) async throws {
        let stage = RoomPlan.broadcast(.camera, viewers: 0, name: "storm")
        try await crowd.populate([stage], places: joins + 1)
        await session.beginMedia()
        try await Task.sleep(for: .seconds(load.settleSeconds))
        let before = try await RoomMeasurement(session, adapter)
        var flooder = Flooder(
            targets: session.floodTargets + crowd.floodTargets,
            hellos: 100_000 / floodShare,
            checks: 1_000_000 / floodShare,
            perSecond: 100_000
        )
        // The targets are the transports that are connected before the newcomers join.
        flooder.targets = flooder.targets.shuffled()
        let seconds = Double(flooder.hellos + flooder.checks) / Double(flooder.perSecond)
        progress.show("sfud: \(joins) joins through \(flooder.hellos + flooder.checks) datagrams")
        async let flooded = flooder.run()
        let failed = try await Self.join(crowd, stage, joins, over: seconds)
        let tally = try await flooded
        let after = try await RoomMeasurement(session, adapter)
        var outcome = Outcome(ScenarioID.flood.rawValue, adapter.name, size: joins)
        outcome.note = "\(flooder.hellos) hellos, \(flooder.checks) checks"
        outcome.profile = profile
        outcome[.joinsFailed] = Double(failed)
        outcome[.strangerBytes] = Double(tally.bytesBack)
        outcome[.floodPerSecond] = Double(tally.sent) / max(tally.seconds, 0.001)
        after.fill(&outcome, since: before)
        if failed > 0 { outcome.faults.append("\(failed) joins failed") }
        if tally.bytesBack > 0 {
            outcome.faults.append("\(tally.bytesBack) bytes to forged addresses")
        }
        if tally.refused > 0 { outcome.warnings.append("\(tally.refused) not taken by the kernel") }
        keep(outcome)
    }

    /// Joins and connects participants over some seconds; returns how many failed.
    private static func join(
        _ session: Session,
        _ room: RoomPlan,
        _ count: Int,
        over seconds: Double
    ) async throws -> Int {
        let start = ContinuousClock.now
        let viewer = RoomPlan.broadcast(.camera, viewers: 1).participants[1]
        let before = await session.engine.perform { $0.connected }
        for number in 0..<count {
            let wait = Duration.seconds(seconds * Double(number) / Double(count))
            try await Task.sleep(until: start + wait, clock: .continuous)
            var newcomer = viewer
            newcomer.name = "newcomer-\(number)"
            do {
                try await session.join(room.name, newcomer)
                try await session.watch(room.name, newcomer, keepsFrames: false)
            } catch {
                SFUBench.complain("\(newcomer.name): \(error)")
            }
        }
        try await Task.sleep(for: .seconds(2))
        return count - (await session.engine.perform { $0.connected } - before)
    }
}

/// Measurements of an unaffected room during an attack or load, and the SFU's own counters.
struct RoomMeasurement: Sendable {
    let snapshot: Snapshot
    let delay: DelayBuckets?
    let usage: ProcessUsage
    let counters: PacketCounters

    init(_ session: Session, _ adapter: SfudAdapter) async throws {
        snapshot = await session.engine.perform { $0.snapshot() }
        delay = try await adapter.forwardingDelay()
        usage = ProcessUsage.of(session.running.processes)
        counters = try await adapter.counters()
    }

    /// Adds the figures since `earlier`.
    func fill(_ outcome: inout Outcome, since earlier: Self) {
        let slots = snapshot.slots.since(earlier.snapshot.slots)
        let seconds = Double(snapshot.at.nanoseconds(since: earlier.snapshot.at)) / 1e9
        if slots.resumptions > 0 {
            outcome.warnings.append("\(slots.resumptions) pictures begun anew")
        }
        outcome[.loss] = Double(slots.gaps) / Double(max(1, slots.expected))
        // Gaps are packets sent but not received; packets held back on purpose make no gap.
        let audio = snapshot.audio.since(earlier.snapshot.audio)
        outcome[.audioLoss] = Double(audio.gaps) / Double(max(1, audio.expected))
        outcome[.packetsPerSecond] = Double(slots.received) / seconds
        outcome[.latency50] = snapshot.latency.milliseconds(0.5)
        outcome[.latency99] = snapshot.latency.milliseconds(0.99)
        outcome[.arrival99] = snapshot.arrivals.milliseconds(0.99)
        outcome[.delay50] = delay?.since(earlier.delay).milliseconds(0.5)
        outcome[.delay99] = delay?.since(earlier.delay).milliseconds(0.99)
        outcome[.cpuShare] = Double(usage.nanoseconds(since: earlier.usage)) / 1e9 / seconds
        outcome[.kernelDrops] = Double(counters.kernelDrops - earlier.counters.kernelDrops)
        for (cause, count) in counters.drops.sorted(by: { $0.key < $1.key }) {
            let dropped = count - min(count, earlier.counters.drops[cause, default: 0])
            if dropped > 0 { outcome.warnings.append("dropped as \(cause): \(dropped)") }
        }
    }
}
