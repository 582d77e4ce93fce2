import Foundation
import TestSupport

@testable import SFU

/// Loudness traces of synthetic sounds, in steps of 20 ms; the same for the same seed.
struct LevelTraces {
    static let stepMilliseconds = 20
    /// Silence, in dB of full scale.
    static let nothing = -120.0

    private var random: SeededRandom

    init(seed: UInt64) { random = SeededRandom(seed: seed) }

    /// A source's loudness at its own microphone, in dB of full scale.
    struct Sound {
        var steps: [Double]

        static func silence(milliseconds: Int) -> Sound {
            Sound(steps: Array(repeating: nothing, count: milliseconds / stepMilliseconds))
        }

        /// Returns the same sound from farther away.
        func quieter(by decibels: Double) -> Sound {
            Sound(steps: steps.map { max(nothing, $0 - decibels) })
        }

        static func + (left: Sound, right: Sound) -> Sound {
            Sound(steps: left.steps + right.steps)
        }

        static func += (left: inout Sound, right: Sound) { left.steps += right.steps }

        mutating func cut(milliseconds: Int) {
            steps = Array(steps.prefix(milliseconds / stepMilliseconds))
        }
    }

    /// Makes speech with pauses no longer than `pauses`, syllable by syllable.
    ///
    /// The first step is the first syllable's: an attack of 40 ms from 12 dB below. `loudness` is
    /// that of an average syllable, in dB; pauses are in milliseconds.
    mutating func speech(
        milliseconds: Int,
        loudness: Double = -26,
        pauses: ClosedRange<Int> = 200...600
    ) -> Sound {
        var sound = Sound(steps: [])
        let length = milliseconds / Self.stepMilliseconds
        while sound.steps.count < length {
            for _ in 0..<Int.random(in: 4...9, using: &random) {
                for _ in 0..<Int.random(in: 1...4, using: &random) {
                    syllable(loudness, into: &sound)
                }
                // Between words the mouth may close.
                for _ in 0..<Int.random(in: 0...3, using: &random) {
                    sound.steps.append(loudness - .random(in: 14...30, using: &random))
                }
            }
            let pause = Int.random(in: pauses, using: &random)
            sound += .silence(milliseconds: pause)
        }
        sound.cut(milliseconds: milliseconds)
        return sound
    }

    private mutating func syllable(_ loudness: Double, into sound: inout Sound) {
        let stressed = loudness + .random(in: -5...4, using: &random)
        let plateau = Int.random(in: 2...9, using: &random)
        sound.steps += [stressed - 12, stressed - 4]
        for _ in 0..<plateau {
            sound.steps.append(stressed + .random(in: -3...3, using: &random))
        }
        sound.steps.append(stressed - .random(in: 5...10, using: &random))
        if Bool.random(using: &random) {
            sound.steps.append(stressed - .random(in: 10...20, using: &random))
        }
    }

    /// Makes a burst of 150 ms that is louder than speech, with 50 ms of echo at its end.
    mutating func cough() -> Sound {
        let loudest = Double.random(in: -24 ... -8, using: &random)
        let steps = (0..<10).map { step in
            let fall = step < 7 ? 1.5 * Double(step) : 12 + 9 * Double(step - 7)
            return loudest - fall + .random(in: -3...3, using: &random)
        }
        return Sound(steps: steps)
    }

    /// Makes the sound of keys beside a microphone, pressed and released.
    mutating func keyboard(milliseconds: Int) -> Sound {
        var sound = Sound.silence(milliseconds: milliseconds)
        var step = 0
        while step < sound.steps.count {
            let loudness = Double.random(in: -36 ... -20, using: &random)
            click(at: step, loudness, in: &sound)
            let release = step + .random(in: 3...6, using: &random)
            click(at: release, loudness - 8, in: &sound)
            step += Int.random(in: 4...15, using: &random)
        }
        return sound
    }

    private mutating func click(at step: Int, _ loudness: Double, in sound: inout Sound) {
        guard sound.steps.indices.contains(step) else { return }
        sound.steps[step] = max(sound.steps[step], loudness)
        guard sound.steps.indices.contains(step + 1) else { return }
        let echo = loudness - .random(in: 4...20, using: &random)
        sound.steps[step + 1] = max(sound.steps[step + 1], echo)
    }

    /// Makes a steady noise.
    mutating func fan(milliseconds: Int, loudness: Double) -> Sound {
        let steps = (0..<milliseconds / Self.stepMilliseconds).map { _ in
            loudness + Double.random(in: -1.5...1.5, using: &random)
        }
        return Sound(steps: steps)
    }

    /// Makes a television in the same room: speech that never ends, over music.
    mutating func television(milliseconds: Int, loudness: Double) -> Sound {
        let voices = speech(milliseconds: milliseconds, loudness: loudness, pauses: 100...300)
        var music = loudness - 10
        let steps = voices.steps.map { voice in
            music += .random(in: -1...1, using: &random) + (loudness - 10 - music) / 20
            return Self.sum([voice, music])
        }
        return Sound(steps: steps)
    }

    /// Returns a microphone's audio levels for some sounds, one a step, in -dBov.
    ///
    /// `room` is the noise of the room and the microphone, in dB. The sounds begin at the same
    /// moment, and the first one is the owner's voice: senders that flag speech flag that, and 100
    /// ms more.
    mutating func microphone(
        _ sounds: [Sound],
        room: Double = -65,
        tellsVoice: Bool = false
    ) -> [AudioLevel] {
        let count = sounds.map(\.steps.count).max() ?? 0
        var tail = 0
        return (0..<count).map { step in
            let noise = room + .random(in: -1.5...1.5, using: &random)
            let heard = sounds.map {
                $0.steps.indices.contains(step) ? $0.steps[step] : Self.nothing
            }
            let level = Self.sum(heard + [noise])
            tail = (heard.first ?? Self.nothing) > room + 10 ? 5 : max(0, tail - 1)
            return AudioLevel(
                level: UInt8(min(max(-level.rounded(), 0), 127)),
                voice: tellsVoice ? tail > 0 : nil
            )
        }
    }

    /// Returns the levels of microphones that also hear each other; crosstalk 0 is none.
    mutating func microphones(_ voices: [Sound], crosstalk: Double) -> [[AudioLevel]] {
        voices.indices.map { own in
            var sounds = [voices[own]]
            if crosstalk > 0 {
                for other in voices.indices where other != own {
                    sounds.append(voices[other].quieter(by: crosstalk))
                }
            }
            return microphone(sounds)
        }
    }

    /// Applies discontinuous transmission: in silence only one packet each 400 ms is sent.
    static func discontinuous(_ levels: [AudioLevel], silence: UInt8 = 60) -> [AudioLevel?] {
        var quiet = 0
        return levels.map { level in
            quiet = level.level >= silence ? quiet + 1 : 0
            return quiet < 6 || quiet % 20 == 0 ? level : nil
        }
    }

    /// Returns the sum of powers, in dB.
    static func sum(_ decibels: [Double]) -> Double {
        10 * log10(decibels.reduce(0) { $0 + pow(10, $1 / 10) })
    }
}
