import RTP
import Testing

@testable import SFU

/// A detector with its clock, and what it said.
struct DetectorRun {
    var detector = SpeechDetector()
    var now = Instant(nanoseconds: 5_000_000_000)
    /// When something was said, in milliseconds from the first packet on.
    var changes: [(at: Int, change: SpeechDetector.Change)] = []
    private let origin = Instant(nanoseconds: 5_000_000_000)

    /// Milliseconds from the first packet to when each start was said.
    var starts: [Int] {
        changes.compactMap { said in
            if case .started = said.change { said.at } else { nil }
        }
    }

    /// The same, of ends.
    var stops: [Int] { changes.filter { $0.change == .stopped }.map(\.at) }

    /// Milliseconds from the first packet to where each start was dated back to.
    var onsets: [Int] {
        changes.compactMap { said in
            if case .started(let start) = said.change {
                Int(start.milliseconds(since: origin))
            } else {
                nil
            }
        }
    }

    /// Feeds levels of 20 ms, each packet when its sound is over; where none is, nothing comes.
    mutating func hear(_ levels: [AudioLevel?]) {
        for level in levels {
            pass(milliseconds: Int64(LevelTraces.stepMilliseconds))
            guard let level else { continue }
            note(detector.receive(level, milliseconds: LevelTraces.stepMilliseconds, at: now))
        }
    }

    /// Lets time pass, and does what is due when it is due.
    mutating func pass(milliseconds: Int64) {
        let end = now.advanced(milliseconds: milliseconds)
        while let deadline = detector.deadline, deadline <= end {
            now = max(now, deadline)
            let change = detector.expire(at: now)
            note(change)
            if change == nil, detector.deadline == deadline { break }
        }
        now = end
    }

    private mutating func note(_ change: SpeechDetector.Change?) {
        guard let change else { return }
        changes.append((Int(now.milliseconds(since: origin)), change))
    }
}

@Suite struct SpeechDetectorTests {
    static let seeds = Array(1...200) as [UInt64]

    private func run(
        _ seed: UInt64,
        room: Double = -65,
        _ make: (inout LevelTraces) -> [LevelTraces.Sound]
    ) -> DetectorRun {
        var traces = LevelTraces(seed: seed)
        let sounds = make(&traces)
        var run = DetectorRun()
        run.hear(traces.microphone(sounds, room: room))
        run.pass(milliseconds: 3_000)
        return run
    }

    @Test func `a cough of 150 ms never promotes`() {
        for seed in Self.seeds {
            let run = run(seed) { traces in
                var sound = LevelTraces.Sound.silence(milliseconds: 1_000)
                for _ in 0..<10 { sound += traces.cough() + .silence(milliseconds: 1_500) }
                return [sound]
            }
            #expect(run.changes.isEmpty, "seed \(seed): \(run.starts)")
        }
    }

    @Test(arguments: [-22.0, -26, -32, -36])
    func `a sentence is promoted within 300 ms of its start`(loudness: Double) {
        var late: [Int] = []
        for seed in Self.seeds {
            let run = run(seed) { traces in
                [
                    .silence(milliseconds: 1_000)
                        + traces.speech(milliseconds: 2_000, loudness: loudness)
                        + .silence(milliseconds: 2_000)
                ]
            }
            late.append((run.starts.first ?? 9_999) - 1_000)
            #expect(run.starts.count == 1, "seed \(seed) \(run.changes)")
        }
        print(loudness, late.sorted().suffix(20), late.reduce(0, +) / late.count)
        #expect((late.max() ?? 0) <= 300)
    }

    @Test func `keys never promote`() {
        for seed in Self.seeds {
            let run = run(seed) { traces in [traces.keyboard(milliseconds: 60_000)] }
            #expect(run.changes.isEmpty, "seed \(seed): \(run.starts)")
        }
    }

    @Test(arguments: [-60.0, -50, -40, -30])
    func `a fan never promotes, running or switched on`(loudness: Double) {
        for seed in Self.seeds {
            let run = run(seed) { traces in
                [
                    traces.fan(milliseconds: 20_000, loudness: loudness)
                        + .silence(milliseconds: 10_000)
                        + traces.fan(milliseconds: 20_000, loudness: loudness)
                ]
            }
            #expect(run.changes.isEmpty, "seed \(seed): \(run.starts)")
        }
    }

    @Test func `a television in the background never promotes`() {
        for seed in Self.seeds {
            let run = run(seed) { traces in
                [.silence(milliseconds: 0), traces.television(milliseconds: 60_000, loudness: -52)]
            }
            #expect(run.changes.isEmpty, "seed \(seed): \(run.starts)")
        }
    }
}
