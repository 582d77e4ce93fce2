import COpus
import CVPX

/// What VP8 is encoded to.
struct VideoSettings: Sendable, Hashable {
    var width: Int
    var height: Int
    /// Bits a second.
    var bitrate: Int
    /// Frames a second.
    var frameRate = 30
    var isScreen = false
    /// The most that a keyframe has, in percent of an average frame.
    var keyframePercent: Int { isScreen ? 330 : 450 }

    /// As file names and reports have it.
    var name: String { "\(isScreen ? "screen" : "camera")-\(width)x\(height)-\(bitrate / 1_000)k" }
}

/// Encodes drawn pictures and sounds; the same in every run.
enum Encoders {
    /// Frames of a recording: ten seconds.
    private static let seconds = 10
    /// Bits a second of Opus, as libwebrtc has it for speech.
    private static let speechBitrate = 32_000

    /// - Throws: `BenchError` where libvpx refuses.
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

    /// Something like a voice: a low tone with overtones that comes and goes, and breath.
    ///
    /// - Throws: `BenchError` where libopus refuses.
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

/// Samples of the sound, at 48 kHz; whole numbers, so that they are the same everywhere.
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
            // 120 Hz and overtones that wander; syllables four times a second.
            let pitch = 400 + triangle(time / 64, 4_000) / 100
            let tone = triangle(time, pitch) + triangle(3 * time, pitch) / 2
            let loudness = 20 + triangle(time, 12_000) * 80 / 12_000
            return Int16(clamping: (tone * loudness / 100 + breath))
        }
    }

    /// Up to 12,000 and back to 0 in `period` samples.
    private func triangle(_ time: Int, _ period: Int) -> Int {
        let phase = time % period * 24_000 / period
        return phase < 12_000 ? phase : 24_000 - phase
    }
}
