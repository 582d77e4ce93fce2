import COpus
import CVPX

/// Settings of a VP8 encoding.
struct VideoSettings: Sendable, Hashable {
    var width: Int
    var height: Int
    /// Bits a second.
    var bitrate: Int
    /// Frames a second.
    var frameRate = 30
    var isScreen = false
    /// Largest keyframe, in percent of an average frame.
    var keyframePercent: Int { isScreen ? 330 : 450 }

    /// Name in file names and reports.
    var name: String { "\(isScreen ? "screen" : "camera")-\(width)x\(height)-\(bitrate / 1_000)k" }
}

/// Encoding of generated pictures and sounds, identical in every run.
enum Encoders {
    /// Length of a recording, in seconds.
    private static let seconds = 10
    /// Bitrate of Opus in bits a second, libwebrtc's for speech.
    private static let speechBitrate = 32_000

    /// Encodes a video.
    ///
    /// - Throws: `BenchError` if libvpx fails.
    static func video(_ settings: VideoSettings) throws(BenchError) -> Recording {
        let made = unsafe vp8_encoder_create(
            vp8_settings(
                width: Int32(settings.width),
                height: Int32(settings.height),
                bits_per_second: Int32(settings.bitrate),
                frames_per_second: Int32(settings.frameRate),
                keyframe_percent: Int32(settings.keyframePercent)
            )
        )
        guard let encoder = unsafe made else { throw BenchError("libvpx makes no encoder") }
        defer { unsafe vp8_encoder_destroy(encoder) }
        let (width, height) = (settings.width, settings.height)
        let luma =
            settings.isScreen
            ? Picture.screen(width: width, height: height)
            : Picture.camera(width: width, height: height)
        var bytes: [UInt8] = []
        var lengths: [Int] = []
        for frame in 0..<seconds * settings.frameRate {
            unsafe draw(frame, luma, settings, into: encoder)
            var length = 0
            guard let start = unsafe vp8_encoder_encode(encoder, frame == 0, &length) else {
                throw BenchError("libvpx encodes no frame \(frame)")
            }
            unsafe bytes.append(contentsOf: UnsafeBufferPointer(start: start, count: length))
            lengths.append(length)
        }
        return Recording(bytes, lengths: lengths)
    }

    /// Fills the encoder's picture.
    private static func draw(
        _ frame: Int,
        _ luma: Picture.Luma,
        _ settings: VideoSettings,
        into encoder: UnsafeMutablePointer<vp8_encoder>
    ) {
        for plane in 0..<3 {
            var stride: Int32 = 0
            guard let start = unsafe vp8_encoder_plane(encoder, Int32(plane), &stride) else {
                continue
            }
            let half = plane == 0 ? 1 : 2
            for y in 0..<settings.height / half {
                let row = unsafe start + y * Int(stride)
                for x in 0..<settings.width / half {
                    let value = plane == 0 ? luma(x, y, frame) : UInt8(118 + (x + y) / 64 % 20)
                    unsafe row[x] = value
                }
            }
        }
    }

    /// Encodes a voice-like sound: a low tone with overtones, in syllables, and breath noise.
    ///
    /// - Throws: `BenchError` if libopus fails.
    static func audio() throws(BenchError) -> Recording {
        guard let encoder = unsafe opus_speech_encoder(Int32(speechBitrate)) else {
            throw BenchError("libopus makes no encoder")
        }
        defer { unsafe opus_encoder_destroy(encoder) }
        var bytes: [UInt8] = []
        var lengths: [Int] = []
        var voice = Voice()
        var packet = [UInt8](repeating: 0, count: 1_275)
        for _ in 0..<seconds * 50 {
            let samples = voice.next(960)
            let length = unsafe opus_encode(encoder, samples, 960, &packet, Int32(packet.count))
            guard length > 0 else { throw BenchError("libopus encodes nothing: \(length)") }
            bytes += packet[..<Int(length)]
            lengths.append(Int(length))
        }
        return Recording(bytes, lengths: lengths)
    }
}

/// Generator of the sound at 48 kHz; integer arithmetic makes it identical everywhere.
struct Voice {
    private var time = 0
    private var state: UInt64 = 0x2545_f491_4f6c_dd1d

    mutating func next(_ count: Int) -> [Int16] {
        (0..<count).map { _ in
            time += 1
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            let breath = Int(truncatingIfNeeded: state >> 40) % 1_200 - 600
            // 120 Hz with varying overtones; four syllables a second.
            let pitch = 400 + triangle(time / 64, 4_000) / 100
            let tone = triangle(time, pitch) + triangle(3 * time, pitch) / 2
            let loudness = 20 + triangle(time, 12_000) * 80 / 12_000
            return Int16(clamping: (tone * loudness / 100 + breath))
        }
    }

    /// Returns a triangle wave that rises to 12,000 and falls back to 0 in `period` samples.
    private func triangle(_ time: Int, _ period: Int) -> Int {
        let phase = time % period * 24_000 / period
        return phase < 12_000 ? phase : 24_000 - phase
    }
}
