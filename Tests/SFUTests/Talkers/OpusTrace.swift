import COpus
import Foundation
import TestSupport

@testable import SFU

/// A sound encoded with real Opus, with the true loudness of each packet.
struct OpusTrace {
    enum Mode: CaseIterable {
        /// Encoder settings: a browser's, the same with discontinuous transmission, and GStreamer's
        /// default.
        case variable, discontinuous, constant
    }

    /// A step of 20 ms; the packet is `nil` where an encoder with DTX sends none.
    struct Step {
        var packet: [UInt8]?
        var level: AudioLevel
    }

    var steps: [Step] = []

    /// Encodes a voice with the loudness of `sound`, in a room with this noise.
    init?(_ sound: LevelTraces.Sound, room: Double = -65, mode: Mode, seed: UInt64) {
        guard let encoder = unsafe opus_speech_encoder(32_000) else { return nil }
        defer { unsafe opus_encoder_destroy(encoder) }
        unsafe opus_speech_encoder_set(
            encoder,
            mode == .discontinuous ? 1 : 0,
            mode == .constant ? 1 : 0
        )
        var voice = SyntheticVoice(seed: seed, room: room)
        var packet = [UInt8](repeating: 0, count: 1_275)
        for loudness in sound.steps {
            let samples = voice.next(loudness: loudness)
            let level = AudioLevel(level: Self.level(samples))
            let size = unsafe opus_encode(
                encoder,
                samples,
                Int32(samples.count),
                &packet,
                Int32(packet.count)
            )
            guard size > 0 else { return nil }
            let isSent = mode != .discontinuous || size > 2
            steps.append(Step(packet: isSent ? Array(packet[..<Int(size)]) : nil, level: level))
        }
    }

    private static func level(_ samples: [Int16]) -> UInt8 {
        let sum = samples.reduce(0.0) { $0 + Double($1) * Double($1) }
        let power = sum / Double(samples.count) / (32_768 * 32_768)
        return power > 0 ? UInt8(min(127, max(0, -10 * log10(power)).rounded())) : 127
    }
}

/// A synthetic voice (tone, overtones and breath) at 48 kHz with a given loudness per step.
struct SyntheticVoice {
    private var random: SeededRandom
    private let room: Double
    private var phase = 0.0
    private var pitch = 130.0
    private var smooth = 0.0
    private var gain = 0.0

    init(seed: UInt64, room: Double) {
        random = SeededRandom(seed: seed)
        self.room = pow(10, room / 20)
    }

    /// Makes 20 ms of voice with `loudness`, in dB of full scale.
    mutating func next(loudness: Double) -> [Int16] {
        let wanted = pow(10, loudness / 20)
        pitch = min(max(pitch + noise() * 6, 95), 210)
        return (0..<960).map { _ in
            // The gain changes over 5 ms, as a mouth opens.
            gain += (wanted - gain) / 240
            phase += pitch / 48_000
            if phase >= 1 { phase -= 1 }
            let source = 2 * phase - 1 + noise() * 0.1
            smooth += (source - smooth) * 0.2
            let sample = (smooth * gain * 1.85 + noise() * room * 1.73) * 32_768
            return Int16(max(-32_767, min(32_767, sample)))
        }
    }

    /// Returns uniform noise between -1 and 1: 4.8 dB below full scale.
    private mutating func noise() -> Double {
        Double(Int64(bitPattern: random.next())) / Double(Int64.max)
    }
}
