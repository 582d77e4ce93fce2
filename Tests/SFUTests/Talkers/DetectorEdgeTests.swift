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
        // Some begin with syllables that are quiet beside the voice that was learned.
        #expect(late.count { $0 <= 300 } * 100 >= late.count * 98)
        #expect(late.allSatisfy { $0 <= 600 })
    }

    struct Abuse: CustomTestStringConvertible, Sendable {
        var testDescription: String
        /// The level of each packet, 2 ms after the one before, which says that it is 20 ms long.
        var level: @Sendable (_ number: Int) -> UInt8
    }

    @Test(arguments: [
        Abuse(testDescription: "always as loud as can be") { _ in 0 },
        Abuse(testDescription: "loud for one packet of two") { $0 % 2 == 0 ? 0 : 127 },
        Abuse(testDescription: "loud for 100 ms of 200") { $0 / 50 % 2 == 0 ? 0 : 127 },
        Abuse(testDescription: "loud for a second of two") { $0 / 500 % 2 == 0 ? 0 : 127 },
        Abuse(testDescription: "any level") { UInt8($0 &* 7_919 % 128) },
    ])
    func `C8 who says loud ten times as often neither talks sooner nor flaps`(_ abuse: Abuse) {
        var run = DetectorRun()
        run.hear(Array(repeating: AudioLevel(level: 127, voice: true), count: 50))
        let begin = run.now
        for number in 0..<5_000 {
            run.pass(milliseconds: 2)
            run.hear(AudioLevel(level: abuse.level(number), voice: true))
        }
        let length = Int(run.now.milliseconds(since: begin))
        #expect(length == 10_000)
        #expect(run.changes.count <= length / 300)
        // Nobody can have been heard before there was so much sound.
        let sooner = run.onsets.filter { $0 < 1_000 }
        #expect(sooner.isEmpty, "\(run.changes)")
    }
}
