internal import COpus
import RTP
import WorkerInterface

/// The m-lines and audio of a room of microphones.
enum RoomMedia {
    private static let opus = FormatMapping(
        format: MediaFormat(codec: .opus),
        payloadType: 111,
        feedback: .transportWide
    )

    static func publication(_ index: Int, levels: Bool) -> PublicationConfiguration {
        var extensions = ExtensionMap()
        extensions[.mid] = 4
        extensions[.transportSequenceNumber] = 3
        if levels { extensions[.audioLevel] = 1 }
        return PublicationConfiguration(
            id: PublicationID(index: UInt32(index), generation: 1),
            mid: "0",
            kind: .audio,
            formats: [opus],
            extensions: extensions,
            encodings: [EncodingConfiguration(ssrc: SSRC(rawValue: 0x2200 + UInt32(index)))]
        )
    }

    static func slot(_ index: Int, _ mid: String) -> SlotConfiguration {
        var extensions = ExtensionMap()
        extensions[.mid] = 4
        extensions[.absoluteSendTime] = 2
        extensions[.transportSequenceNumber] = 3
        extensions[.audioLevel] = 1
        return SlotConfiguration(
            id: SlotID(index: UInt32(index), generation: 1),
            mid: mid,
            kind: .audio,
            ssrc: SSRC(rawValue: 0x10_0000 + UInt32(index)),
            rtxSSRC: nil,
            formats: [opus],
            extensions: extensions
        )
    }

    /// Returns the numbers below `count` in pseudo-random order.
    static func shuffled(_ count: Int) -> [Int] {
        var numbers = Array(0..<count)
        var random = Random(state: 0x9e37_79b9_7f4a_7c15)
        for index in numbers.indices.reversed() {
            numbers.swapAt(index, random.next(below: index + 1))
        }
        return numbers
    }

    /// Packets of one microphone, 20 ms each.
    struct Voice {
        enum Kind {
            /// The level extension gives the loudness; the payload is artificial.
            case levels
            /// Real Opus without the level extension.
            case opus
        }

        private let index: Int
        private let talks: Bool
        private let recorded: [[UInt8]]
        private var random: Random
        private var step = 0

        init(index: Int, talks: Bool, kind: Kind) {
            self.index = index
            self.talks = talks
            recorded = kind == .opus ? RoomSound.encoded(talks: talks) : []
            random = Random(state: 0x2545_f491_4f6c_dd1d &+ UInt64(index) << 20)
            // The voices start at different positions.
            step = random.next(below: RoomSound.steps)
        }

        /// Returns the next packet before encryption.
        mutating func next(sequence: UInt64) -> [UInt8] {
            defer { step += 1 }
            let number = UInt16(truncatingIfNeeded: sequence)
            let timestamp = UInt32(truncatingIfNeeded: sequence &* 960)
            var packet: [UInt8] = [0x90, 111, UInt8(number >> 8), UInt8(number & 0xff)]
            packet += (0..<4).map { UInt8(truncatingIfNeeded: timestamp >> (24 - 8 * $0)) }
            let ssrc = 0x2200 + UInt32(index)
            packet += (0..<4).map { UInt8(truncatingIfNeeded: ssrc >> (24 - 8 * $0)) }
            packet += [0xbe, 0xde, 0, 2, 0x31, UInt8(number >> 8), UInt8(number & 0xff)]
            if recorded.isEmpty {
                packet += [0x10, level(), 0, 0, 0]
                return packet + [0x78] + Array(repeating: 0x5a, count: 79)
            }
            packet += [0, 0, 0, 0, 0]
            return packet + recorded[step % recorded.count]
        }

        /// Returns the level in -dBov: syllables of 160 ms for talkers, a quiet room for others.
        private mutating func level() -> UInt8 {
            guard talks else { return UInt8(62 + random.next(below: 5)) }
            return UInt8((step % 10 < 8 ? 20 : 40) + random.next(below: 7))
        }
    }

    struct Random {
        var state: UInt64

        mutating func next(below limit: Int) -> Int {
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            return Int(state >> 33) % max(1, limit)
        }
    }
}

/// Real Opus audio, encoded once for all senders.
enum RoomSound {
    /// Packets of a recording: ten seconds.
    static let steps = 500
    private static let talking = encode(talks: true)
    private static let silent = encode(talks: false)

    static func encoded(talks: Bool) -> [[UInt8]] { talks ? talking : silent }

    /// Encodes a voice as a browser does, or a quiet room of -65 dB.
    private static func encode(talks: Bool) -> [[UInt8]] {
        guard let encoder = unsafe opus_speech_encoder(32_000) else { return [] }
        defer { unsafe opus_encoder_destroy(encoder) }
        var random = RoomMedia.Random(state: talks ? 3 : 5)
        var packet = [UInt8](repeating: 0, count: 1_275)
        var time = 0
        return (0..<steps).map { step in
            let loudness = talks ? (step % 10 < 8 ? 9_000 : 700) : 0
            let samples = (0..<960).map { _ in
                time += 1
                // 125 Hz with overtones, plus the room's noise.
                let tone = (time % 384 - 192) * loudness / 192
                return Int16(clamping: tone + random.next(below: 64) - 32)
            }
            let size = unsafe opus_encode(encoder, samples, 960, &packet, 1_275)
            return Array(packet[..<max(0, Int(size))])
        }
    }
}
