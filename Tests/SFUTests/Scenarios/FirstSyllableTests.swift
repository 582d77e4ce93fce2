import Foundation
import LoadPeer
import RTP
import Testing
import WorkerInterface

@testable import Rooms
@testable import SFU

/// Loss of the first syllable for a listener who is switched to a new active speaker.
///
/// Measured with real Opus, at the output of the listener's decoder.
struct FirstSyllableTests {
    /// Half a second of room noise, then a sentence.
    private static let onsetStep = 25
    /// Most that may be missed of a word, in milliseconds of the word.
    private static let mostMissed = 50

    /// A publisher of real Opus, and a listener that is switched to it when it begins to speak.
    private struct Scene: ~Copyable {
        var call: Call
        let trace: OpusTrace
        let tells: Bool
        var sequence: UInt16 = 0
        /// Steps whose packets were sent, in order.
        var sent: [Int] = []

        init(_ trace: OpusTrace, tells: Bool) throws {
            self.trace = trace
            self.tells = tells
            call = try Call()
            var publication = Media.audio(0)
            if !tells { publication.extensions[.audioLevel] = 0 }
            call.join(publications: [publication])
            call.join(slots: [Media.slot(1, kind: .audio, ssrc: 0xbbbb)])
            call.connect(0)
            call.connect(1)
            _ = call.takeEvents()
        }

        /// Receives 20 ms of the sound; returns the time of a detected start of speech.
        mutating func pass(_ step: Int) -> Instant? {
            if let packet = trace.steps[step].packet { send(packet, step) }
            call.run(milliseconds: 20)
            for case .speech(_, .began(let start)) in call.takeEvents() { return start }
            return nil
        }

        private mutating func send(_ packet: [UInt8], _ step: Int) {
            var elements: [(id: UInt8, data: [UInt8])] = [(4, Array("0".utf8))]
            if tells { elements.append((1, [trace.steps[step].level.level])) }
            let bytes = Media.packet(
                payloadType: 111,
                sequence: sequence,
                timestamp: UInt32(step) * 960,
                ssrc: 0x1111,
                elements: elements,
                payload: packet
            )
            call.send(bytes, from: 0)
            sequence &+= 1
            sent.append(step)
        }

        /// Plays the trace, and switches the listener as the room does.
        ///
        /// Returns the delay in milliseconds of sound since speech began.
        mutating func promotion() throws -> Int {
            var promoted: Int?
            for step in trace.steps.indices {
                guard let start = pass(step), promoted == nil else { continue }
                promoted = (step - FirstSyllableTests.onsetStep + 1) * 20
                let lead = -Room.leadMilliseconds
                call.apply(
                    .bind(
                        SpeechTests.slot,
                        SpeechTests.binding(
                            from: start.advanced(milliseconds: lead)
                        )
                    )
                )
            }
            return try #require(promoted)
        }

        /// Returns the milliseconds of the word that the listener misses.
        func missed() throws -> Int {
            let heard = call.peers[1].payloads(of: 0xbbbb)
            let expected = sent.suffix(heard.count).compactMap { trace.steps[$0].packet }
            try #require(heard == expected, "all from some packet on, and unchanged")
            let first = try #require(sent.suffix(heard.count).first)
            // The output of a permanent listener, and of this one.
            let before = try OpusListener()
            let late = try OpusListener()
            var isRight: [Bool] = []
            for (step, sound) in trace.steps.enumerated() {
                let truth = before.play(sound.packet)
                let silence = [Int16](repeating: 0, count: 960)
                let found = step < first ? silence : late.play(sound.packet)
                guard step >= FirstSyllableTests.onsetStep else { continue }
                // A decoder that begins in mid-sound takes some milliseconds: output within 3 dB is
                // right.
                isRight += zip(OpusListener.loudness(truth), OpusListener.loudness(found)).map {
                    $0 < -60 || abs($0 - $1) <= 3
                }
            }
            // It has to stay right for 60 ms.
            let begin = isRight.indices.dropLast(12).first { block in
                isRight[block..<block + 12].allSatisfy { $0 }
            }
            return 5 * (try #require(begin))
        }
    }

    @Test(arguments: OpusTrace.Mode.allCases)
    func `at most 50 ms of the first syllable are missed`(_ mode: OpusTrace.Mode) throws {
        var figures: [Bool: [(missed: Int, promoted: Int)]] = [:]
        for seed in 0..<20 as Range<UInt64> {
            var traces = LevelTraces(seed: seed)
            let sound =
                LevelTraces.Sound.silence(milliseconds: 20 * Self.onsetStep)
                + traces.speech(milliseconds: 800)
            let trace = try #require(OpusTrace(sound, mode: mode, seed: seed &+ 100))
            for tells in [true, false] {
                var scene = try Scene(trace, tells: tells)
                let promoted = try scene.promotion()
                let missed = try scene.missed()
                #expect(missed <= Self.mostMissed, "sentence \(seed), levels told: \(tells)")
                #expect(promoted <= 400)
                figures[tells, default: []].append((missed, promoted))
            }
        }
        for (tells, all) in figures { tell(mode, tells, all) }
    }

    private func tell(
        _ mode: OpusTrace.Mode,
        _ tells: Bool,
        _ all: [(missed: Int, promoted: Int)]
    ) {
        guard ProcessInfo.processInfo.environment["SFUD_FIGURES"] != nil else { return }
        let missed = all.map(\.missed)
        print(
            "FIGURE first syllable, \(mode), levels \(tells): missed at most \(missed.max() ?? 0),",
            "on average \(missed.reduce(0, +) / max(1, all.count)) ms; promoted after at most",
            "\(all.map(\.promoted).max() ?? 0) ms"
        )
    }
}
