import RTP
import Testing

@testable import SFU

@Suite struct DetectorEdgeTests {
    private func speech(_ milliseconds: Int, seed: UInt64 = 1) -> [AudioLevel] {
        var traces = LevelTraces(seed: seed)
        let sound = traces.speech(milliseconds: milliseconds)
        return traces.microphone([.silence(milliseconds: 1_000) + sound])
    }

    @Test func `silence without packets ends talking when it is due`() {
        var run = DetectorRun()
        run.hear(speech(4_000))
        #expect(run.detector.isTalking)
        #expect(run.detector.deadline != nil)
        run.pass(milliseconds: 1_300)
        #expect(!run.detector.isTalking)
        #expect(run.stops.count == 1)
        #expect(run.detector.deadline == nil)
        #expect(!run.detector.isCandidate)
    }

    @Test func `a closed gate ends talking at once and forgets it`() {
        var run = DetectorRun()
        run.hear(speech(2_000))
        #expect(run.detector.isTalking)
        let change = run.detector.close()
        #expect(change == .stopped)
        #expect(!run.detector.isTalking)
        #expect(!run.detector.isCandidate)
        #expect(run.detector.deadline == nil)
        let again = run.detector.close()
        #expect(again == nil)
    }

    @Test func `somebody is a candidate before being certain`() {
        var run = DetectorRun()
        let levels = speech(2_000)
        run.hear(Array(levels.prefix(50)))
        #expect(!run.detector.isCandidate)
        run.hear(Array(levels[50..<56]))
        #expect(run.detector.isCandidate)
        #expect(!run.detector.isTalking)
        run.pass(milliseconds: 400)
        #expect(!run.detector.isCandidate)
        #expect(run.detector.deadline == nil)
    }

    @Test(arguments: [true, false])
    func `what a sender says is no voice is none`(tellsVoice: Bool) {
        var traces = LevelTraces(seed: 3)
        let quiet = LevelTraces.Sound.silence(milliseconds: 4_000)
        let own = traces.speech(milliseconds: 1_000)
        let radio = traces.speech(milliseconds: 10_000)
        let levels = traces.microphone([own, quiet + radio], tellsVoice: tellsVoice)
        var run = DetectorRun()
        run.hear(levels)
        run.pass(milliseconds: 3_000)
        #expect(run.starts.count == (tellsVoice ? 1 : 2))
    }

    @Test func `with discontinuous transmission each sentence starts once`() {
        var late: [Int] = []
        for seed in 1...50 as ClosedRange<UInt64> {
            var traces = LevelTraces(seed: seed)
            var sound = LevelTraces.Sound.silence(milliseconds: 2_000)
            for _ in 0..<5 {
                sound += traces.speech(milliseconds: 3_000) + .silence(milliseconds: 2_500)
            }
            var run = DetectorRun()
            run.hear(LevelTraces.discontinuous(traces.microphone([sound])))
            run.pass(milliseconds: 3_000)
            #expect(run.starts.count == 5, "seed \(seed): \(run.changes)")
            #expect(run.stops.count == 5, "seed \(seed)")
            for (index, start) in run.starts.enumerated() {
                late.append(start - 2_000 - 5_500 * index)
            }
        }
        // Some begin with syllables that are quiet compared to the learned voice.
        #expect(late.count { $0 <= 300 } * 100 >= late.count * 98)
        #expect(late.allSatisfy { $0 <= 600 })
    }

    /// Each packet claims 20 ms of sound, and ten of them arrive within 20 ms.
    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `C8 who sends ten times as much neither talks sooner nor flaps`(seed: UInt64) throws {
        let levels = speech(10_000, seed: seed)
        var honest = DetectorRun()
        honest.hear(levels)
        var run = DetectorRun()
        for level in levels {
            for _ in 0..<10 {
                run.pass(milliseconds: 2)
                run.hear(level)
            }
        }
        let usual = try #require(honest.starts.first)
        #expect(run.starts.allSatisfy { $0 >= usual })
        #expect(run.changes.count <= 20 * levels.count / 300)
    }
}
