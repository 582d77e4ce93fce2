import RTP
import TestSupport
import Testing

@testable import SFU

/// A speech detector with its clock and its results.
struct DetectorRun {
    var detector = SpeechDetector()
    var now = Instant(nanoseconds: 5_000_000_000)
    /// Changes with their times, in milliseconds since the first packet.
    var changes: [(at: Int, change: SpeechDetector.Change)] = []
    private let origin = Instant(nanoseconds: 5_000_000_000)

    /// Times of the reported starts, in milliseconds since the first packet.
    var starts: [Int] {
        changes.compactMap { said in
            if case .started = said.change { said.at } else { nil }
        }
    }

    /// Times of the reported ends, in milliseconds since the first packet.
    var stops: [Int] { changes.filter { $0.change == .stopped }.map(\.at) }

    /// Onsets that the starts were dated back to, in milliseconds since the first packet.
    var onsets: [Int] {
        changes.compactMap { said in
            if case .started(let start) = said.change {
                Int(start.milliseconds(since: origin))
            } else {
                nil
            }
        }
    }

    /// Feeds levels of 20 ms, each packet at the end of its sound; `nil` is no packet.
    mutating func hear(_ levels: [AudioLevel?]) {
        for level in levels {
            pass(milliseconds: Int64(LevelTraces.stepMilliseconds))
            if let level { hear(level) }
        }
    }

    /// Feeds a packet that arrives now and claims 20 ms of sound.
    mutating func hear(_ level: AudioLevel) {
        note(detector.receive(level, milliseconds: LevelTraces.stepMilliseconds, at: now))
    }

    /// Advances the clock and runs timers when they are due.
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
    static let seeds = Extent.seeds(100, short: 15)

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

    @Test(arguments: [(-22.0, 300), (-26, 300), (-28, 300), (-32, 600), (-36, 1_200)])
    func `a sentence is promoted within 300 ms of its start, a quiet one later`(
        loudness: Double,
        limit: Int
    ) {
        for seed in Self.seeds {
            let run = run(seed) { traces in
                [
                    .silence(milliseconds: 1_000)
                        + traces.speech(milliseconds: 8_000, loudness: loudness)
                ]
            }
            #expect(run.starts.count == 1, "seed \(seed)")
            let late = (run.starts.first ?? .max) - 1_000
            #expect(late <= limit, "seed \(seed)")
            // Dated back to the first syllable: at most 50 ms are lost of an average voice.
            let onset = run.onsets.first ?? .max
            let lost = onset - 1_000
            if limit == 300 { #expect(-100...50 ~= lost, "seed \(seed): \(lost) ms") }
        }
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

    @Test(arguments: [0.0, 20, 25])
    func `two who take turns each 2 s switch once a turn`(crosstalk: Double) {
        for seed in Self.seeds {
            var traces = LevelTraces(seed: seed)
            var voices = [LevelTraces.Sound.silence(milliseconds: 1_000)]
            voices.append(voices[0])
            for turn in 0..<10 {
                voices[turn % 2] += traces.speech(milliseconds: 2_000)
                voices[1 - turn % 2] += .silence(milliseconds: 2_000)
            }
            let talk = Conversation(traces.microphones(voices, crosstalk: crosstalk))
            #expect(
                talk.heard.map(\.person) == (0..<10).map { $0 % 2 },
                "seed \(seed) \(talk.heard)"
            )
            // Nearby microphones may keep one detector active through another's turn; the list is
            // right.
            for run in talk.runs where crosstalk != 20 {
                #expect(run.starts.count == 5, "seed \(seed): \(run.changes)")
            }
        }
    }

    @Test(arguments: [0.0, 20, 25])
    func `two who talk at once for 30 s cause at most 2 switches`(crosstalk: Double) {
        for seed in Self.seeds {
            var traces = LevelTraces(seed: seed)
            let voices = [
                .silence(milliseconds: 1_000) + traces.speech(milliseconds: 30_000),
                .silence(milliseconds: 1_500) + traces.speech(milliseconds: 29_500),
            ]
            let talk = Conversation(traces.microphones(voices, crosstalk: crosstalk))
            #expect(talk.switches <= 2, "seed \(seed): \(talk.heard)")
        }
    }

    @Test(arguments: [20.0, 25])
    func `crosstalk alone never promotes`(crosstalk: Double) {
        for seed in Self.seeds {
            var traces = LevelTraces(seed: seed)
            let voices = [
                .silence(milliseconds: 2_000) + traces.speech(milliseconds: 58_000),
                LevelTraces.Sound.silence(milliseconds: 60_000),
            ]
            let talk = Conversation(traces.microphones(voices, crosstalk: crosstalk))
            #expect(talk.runs[0].starts.count == 1, "seed \(seed) \(talk.runs[0].changes)")
            #expect(talk.runs[1].starts.isEmpty, "seed \(seed): \(talk.runs[1].changes)")
        }
    }
}
