import RTP
import TestSupport
import Testing

@testable import SFU

@Suite struct OpusLevelsTests {
    /// Returns the measured level of each packet of a trace, and the number of decodes.
    private func measure(_ trace: OpusTrace) -> (levels: [AudioLevel?], decodes: UInt64) {
        var measuring = OpusLevelMeter(limit: 1)
        var stream = OpusLevelMeter.Stream()
        let levels = trace.steps.map { step in
            step.packet.flatMap { measuring.level(of: $0.span, in: &stream) }
        }
        return (levels, measuring.decodes)
    }

    @Test(arguments: OpusTrace.Mode.allCases)
    func `levels are those of the sound, to 3 dB`(mode: OpusTrace.Mode) throws {
        var traces = LevelTraces(seed: 3)
        let sound = traces.speech(milliseconds: 20_000)
        let trace = try #require(OpusTrace(sound, mode: mode, seed: 4))
        let (levels, _) = measure(trace)
        // Codecs delay by some milliseconds, so powers over 100 ms are compared.
        var errors: [Double] = []
        for start in stride(from: 0, to: levels.count - 5, by: 5) {
            let window = start..<start + 5
            let heard = window.compactMap { levels[$0]?.level }
            guard heard.count == 5 else { continue }
            let truth = Self.power(window.map { trace.steps[$0].level.level })
            guard truth > -45 else { continue }
            errors.append(Self.power(heard) - truth)
        }
        let bias = errors.reduce(0, +) / Double(max(1, errors.count))
        let near = errors.count { abs($0) <= 3 }
        #expect(errors.count > 100)
        #expect(abs(bias) <= 1.5)
        #expect(near * 100 >= errors.count * 95)
    }

    private func level(
        _ packet: [UInt8],
        _ measuring: inout OpusLevelMeter,
        _ stream: inout OpusLevelMeter.Stream
    ) -> UInt8? {
        measuring.level(of: packet.span, in: &stream)?.level
    }

    private static func power(_ levels: [UInt8]) -> Double {
        LevelTraces.sum(levels.map { -Double($0) }) - 6.99
    }

    @Test(arguments: OpusTrace.Mode.allCases)
    func `the dominant speaker is the same as with the extension, 95 percent of time`(
        mode: OpusTrace.Mode
    ) throws {
        var same = 0
        var all = 0
        for seed in Extent.seeds(3, short: 1) {
            let microphones = try conversation(seed: seed, mode: mode)
            let told = Conversation(
                microphones.map { trace in
                    trace.steps.map { $0.packet == nil ? nil : $0.level }
                }
            )
            let measured = Conversation(microphones.map { measure($0).levels })
            let count = microphones[0].steps.count
            let (left, right) = (told.dominant(steps: count), measured.dominant(steps: count))
            same += zip(left, right).count { $0 == $1 }
            all += count
        }
        #expect(same * 100 >= all * 95)
    }

    /// Makes three people who take turns of some seconds, with coughs, and sometimes talk together.
    private func conversation(seed: UInt64, mode: OpusTrace.Mode) throws -> [OpusTrace] {
        var traces = LevelTraces(seed: seed)
        var voices = (0..<3).map { _ in LevelTraces.Sound.silence(milliseconds: 1_000) }
        for turn in 0..<9 {
            let length = 1_600 + 400 * (turn % 4)
            for person in 0..<3 {
                if person == turn % 3 {
                    voices[person] += traces.speech(milliseconds: length)
                } else if turn == 5, person == 0 {
                    // Simultaneous starts are ordered by chance.
                    voices[person] += .silence(milliseconds: 600)
                    voices[person] += traces.speech(milliseconds: length - 600)
                } else if turn % 4 == 2 {
                    voices[person] +=
                        traces.cough() + .silence(milliseconds: length - 200)
                } else {
                    voices[person] += .silence(milliseconds: length)
                }
            }
        }
        return try voices.enumerated().map { person, voice in
            try #require(OpusTrace(voice, mode: mode, seed: seed &* 8 &+ UInt64(person)))
        }
    }

    @Test(arguments: [(OpusTrace.Mode.variable, 40), (.discontinuous, 10), (.constant, 40)])
    func `silence is decoded now and then only`(mode: OpusTrace.Mode, percent: Int) throws {
        let sound = LevelTraces.Sound.silence(milliseconds: 20_000)
        let trace = try #require(OpusTrace(sound, mode: mode, seed: 5))
        let (levels, decodes) = measure(trace)
        #expect(decodes * 100 <= UInt64(trace.steps.count * percent))
        let quiet = levels.compactMap { $0 }.suffix(500).map(\.level)
        #expect(quiet.allSatisfy { $0 >= 58 })
    }

    @Test func `what is no Opus has no level`() {
        var measuring = OpusLevelMeter(limit: 2)
        var stream = OpusLevelMeter.Stream()
        // Empty; code 3 without a frame count, with none, and with more than 120 ms (RFC 6716
        // §3.2.5).
        for packet in [[], [0x03], [0x03, 0x00], [0x03, 0x3f, 1, 2, 3]] as [[UInt8]] {
            let heard = level(packet, &measuring, &stream)
            #expect(heard == nil, "\(packet)")
        }
    }

    @Test func `random bytes do no harm`() {
        var random = SeededRandom(seed: 6)
        var measuring = OpusLevelMeter(limit: 3)
        var streams = (0..<10).map { _ in OpusLevelMeter.Stream() }
        for _ in 0..<20_000 {
            let packet = (0..<Int.random(in: 0...80, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            let stream = Int.random(in: 0..<10, using: &random)
            let heard = level(packet, &measuring, &streams[stream])
            #expect(heard ?? 0 <= AudioLevel.silence)
        }
    }

    @Test func `a decoder goes to another once its stream was silent for long`() throws {
        var traces = LevelTraces(seed: 7)
        let speech = traces.speech(milliseconds: 4_000)
        let trace = try #require(OpusTrace(speech, mode: .variable, seed: 8))
        let packets = trace.steps.compactMap(\.packet)
        var measuring = OpusLevelMeter(limit: 2)
        var streams = (0..<3).map { _ in OpusLevelMeter.Stream() }
        let first = level(packets[0], &measuring, &streams[0])
        let second = level(packets[0], &measuring, &streams[1])
        let third = level(packets[0], &measuring, &streams[2])
        #expect(first != nil && second != nil && third == nil)
        // The second continues, the first does not: after 100 decodes its decoder is free.
        for packet in packets[1..<102] {
            let heard = level(packet, &measuring, &streams[1])
            #expect(heard != nil)
        }
        let later = level(packets[0], &measuring, &streams[2])
        #expect(later != nil)
    }
}
