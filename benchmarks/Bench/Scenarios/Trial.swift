import Foundation
import RTP
import Synchronization

/// One load on one SFU, with the parameters of its measurement.
struct Trial: Sendable {
    var rooms: [RoomPlan]
    var profile = BenchProfile.gcm
    var workers = 1
    /// Seconds of media before the measured interval, which exclude the start-up.
    var settleSeconds = 2.0
    var seconds = 4.0
    /// Event that ends the measured interval before its time, if any.
    var end: InputEnd?
    var settings = EngineSettings()
    /// Video packets that publishers withhold, in percent.
    var lossPercent = 0
    /// Viewers who join after the room has settled, if any.
    var late: LateViewers?
    /// Executable of the SFU, if not the default.
    var executable: String?

    /// Wait for packets in flight after the publishers have stopped.
    private static let drain = Duration.milliseconds(400)

    func run(
        _ adapter: any Adapter,
        _ library: Library,
        _ progress: Progress
    ) async throws
        -> TrialResult
    {
        let directory = try Scratch()
        defer { directory.remove() }
        var settings = settings
        settings.profile = profile
        let launch = Launch(
            workers: workers,
            profile: profile,
            directory: directory.path,
            executable: executable
        )
        return try await Session.with(adapter, launch, settings, library) { session in
            progress.show("\(adapter.name): connecting")
            try await session.populate(rooms)
            return try await measure(session, progress)
        }
    }

    /// Runs the media of a connected session and measures it.
    func measure(_ session: Session, _ progress: Progress) async throws -> TrialResult {
        let processes = session.running.processes
        await session.beginMedia(lossPercent: lossPercent)
        progress.show("\(session.adapter.name): settling")
        try await Task.sleep(for: .seconds(settleSeconds))
        let lateJoins = try await late?.join(beside: session)
        let delayBefore = try await session.adapter.forwardingDelay()
        let before = await session.engine.perform { $0.snapshot() }
        let usageBefore = ProcessUsage.of(processes)
        try await pass(session, progress)
        let usageAfter = ProcessUsage.of(processes)
        let after = await session.engine.perform { $0.snapshot() }
        let delayAfter = try await session.adapter.forwardingDelay()
        // A withheld packet is detected as missing only when a later one arrives.
        await session.engine.perform { loop in
            for publisher in loop.publishers.values { publisher.lossPercent = 0 }
        }
        if lossPercent > 0 { try await Task.sleep(for: .milliseconds(200)) }
        await session.engine.perform { $0.endMedia() }
        try await Task.sleep(for: Self.drain)
        let final = await session.engine.perform { $0.snapshot() }
        return TrialResult(
            name: session.adapter.name,
            version: session.running.version,
            before: before,
            after: after,
            final: final,
            usageBefore: usageBefore,
            usageAfter: usageAfter,
            delay: delayAfter?.since(delayBefore),
            lateJoins: lateJoins
        )
    }

    /// Waits for the end of the measured interval.
    private func pass(_ session: Session, _ progress: Progress) async throws {
        let over = ContinuousClock.now + .seconds(seconds)
        while end?.isReached != true {
            let left = ContinuousClock.now.duration(to: over)
            guard left > .zero else { return }
            progress.show("\(session.adapter.name): \(left.components.seconds + 1) s to go")
            try await Task.sleep(for: min(left, .milliseconds(100)))
        }
    }
}

/// End of standard input, by which whoever holds the other end of the pipe ends a load.
final class InputEnd: Sendable {
    private let reached = Atomic(false)

    var isReached: Bool { reached.load(ordering: .relaxed) }

    /// Begins to read.
    init() {
        Thread.detachNewThread { @Sendable [self] in
            while readLine() != nil {}
            reached.store(true, ordering: .relaxed)
        }
    }
}

/// Results of a trial.
struct TrialResult: Sendable {
    var name: String
    var version: String
    /// Counts at the start and end of the measured interval, and when no packet was in flight.
    var before: Snapshot
    var after: Snapshot
    var final: Snapshot
    var usageBefore: ProcessUsage
    var usageAfter: ProcessUsage
    /// Delay inside the SFU, if it reports it.
    var delay: DelayBuckets?
    var lateJoins: LateJoins?

    var seconds: Double { Double(after.at.nanoseconds(since: before.at)) / 1e9 }
    /// Counts of the measured interval.
    var received: SlotTally { after.slots.since(before.slots) }
    var packetsPerSecond: Double { Double(received.received) / seconds }
    var cpuNanoseconds: Int64 { usageAfter.nanoseconds(since: usageBefore) }
    /// CPU of the SFU in microseconds for each packet that a viewer received.
    var cpuMicroseconds: Double {
        Double(cpuNanoseconds) / 1_000 / Double(max(1, received.received))
    }
    /// CPU of the SFU, as a share of one core.
    var cpuShare: Double { Double(cpuNanoseconds) / 1e9 / seconds }
    /// CPU of the bench's own media thread, as a share of one core.
    var clientShare: Double {
        Double(after.ownNanoseconds - before.ownNanoseconds) / 1e9 / seconds
    }
    var meanBytes: Double { Double(received.bytes) / Double(max(1, received.received)) }

    /// Returns the share of all sent packets, from first to last, that was never received.
    func loss(_ medium: KeyPath<Snapshot, SlotTally>) -> Double {
        let slots = final[keyPath: medium]
        return slots.expected == 0 ? 0 : Double(slots.missing) / Double(slots.expected)
    }

    /// Faults that no load excuses, one line each.
    var faults: [String] {
        let slots = final.slots
        let counts: [(String, UInt64)] = [
            ("packets undecryptable", slots.undecryptable + final.undecryptableReports),
            ("discontinuities", slots.discontinuities), ("duplicates", slots.duplicates),
            ("packets of unknown streams", final.unsignalledPackets),
        ]
        return counts.filter { $0.1 > 0 }.map { "\($0.1) \($0.0)" }
    }
}

extension DelayBuckets {
    /// Returns the counts since `earlier`, an older state of the same histogram.
    func since(_ earlier: Self?) -> Self {
        guard let earlier, earlier.bounds == bounds else { return self }
        var rest = self
        rest.counts = zip(counts, earlier.counts).map { $0 - min($0, $1) }
        return rest
    }

    /// Returns the bound in milliseconds within which this share of the packets lies.
    func milliseconds(_ share: Double) -> Double {
        let wanted = Double(counts.reduce(0, +)) * share
        var seen = 0.0
        for (bound, count) in zip(bounds, counts) {
            seen += Double(count)
            if seen >= wanted { return bound * 1_000 }
        }
        return 0
    }
}

/// A temporary directory for a run's files.
struct Scratch: Sendable {
    let path: String

    init() throws {
        let name = "sfu-bench-\(UInt32.random(in: 0...UInt32.max))"
        path = FileManager.default.temporaryDirectory.appending(path: name).path
        try FileManager.default.createDirectory(
            atPath: path,
            withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700]
        )
    }

    func remove() { try? FileManager.default.removeItem(atPath: path) }
}
