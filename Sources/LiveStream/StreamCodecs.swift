import CAVFormat
import Recording
import WorkerInterface

/// Decoder of one track.
///
/// Safe: it owns libavcodec's decoder, and is used by one thread.
@safe
final class StreamDecoder {
    private let decoder: UnsafeMutablePointer<av_decoder>
    /// Longest decoded packet in samples: an Opus packet has at most 120 ms (RFC 6716 §2.1.4).
    private static let soundLimit = 48_000 * 120 / 1_000

    /// Returns `nil` if libavcodec rejects the track.
    init?(_ codec: Codec, configuration: [UInt8]) {
        let made = unsafe configuration.withUnsafeBufferPointer { extradata in
            var track = unsafe av_track(
                codec: MediaMuxer.codec(codec),
                width: 0,
                height: 0,
                extradata: extradata.baseAddress,
                extradata_size: Int32(clamping: extradata.count)
            )
            return unsafe av_decoder_create(&track)
        }
        guard let made = unsafe made else { return nil }
        unsafe decoder = made
    }

    deinit { unsafe av_decoder_destroy(decoder) }

    /// Decodes a frame; returns whether it produced a new picture or audio.
    func decode(_ frame: [UInt8]) -> Bool {
        unsafe frame.withUnsafeBufferPointer { bytes in
            unsafe av_decoder_decode(decoder, bytes.baseAddress, Int32(clamping: bytes.count)) == 1
        }
    }

    /// Returns the last picture, centered in one of this size, in pixels, both even.
    ///
    /// The result has the planes of 4:2:0 one after another; `nil` if there is no picture.
    func picture(width: Int, height: Int) -> [UInt8]? {
        var picture = [UInt8](repeating: 0, count: width * height * 3 / 2)
        let isThere = unsafe picture.withUnsafeMutableBufferPointer { bytes in
            guard let base = bytes.baseAddress else { return false }
            return unsafe av_decoder_picture(decoder, Int32(width), Int32(height), base) == 1
        }
        return isThere ? picture : nil
    }

    /// Returns the last decoded audio at 48 kHz, with left and right samples interleaved.
    func sound() -> [Float] {
        var samples = [Float](repeating: 0, count: Self.soundLimit * 2)
        let count = unsafe samples.withUnsafeMutableBufferPointer { places in
            guard let base = places.baseAddress else { return Int32(0) }
            return unsafe av_decoder_audio(decoder, base, Int32(Self.soundLimit))
        }
        samples.removeLast(samples.count - Int(count) * 2)
        return samples
    }
}

/// Encoded packet of the live stream.
struct EncodedPacket: Sendable {
    var bytes: [UInt8]
    var isPicture: Bool
    var isKeyframe: Bool
    /// Milliseconds since the beginning of the stream.
    var milliseconds: Int64
}

/// Encoder of pictures to H.264 and of audio to AAC.
///
/// Safe: it owns libavcodec's encoders. One thread encodes; others read only properties that do not
/// change after initialization.
@safe
final class StreamEncoder: @unchecked Sendable {
    /// Samples of one audio packet.
    static let soundSamples = 1_024
    /// Pictures a second.
    static let pictureRate = 30
    private static let soundBitrate: Int64 = 128_000

    private let pictures: UnsafeMutablePointer<av_encoder>
    private let sounds: UnsafeMutablePointer<av_encoder>

    /// Returns `nil` if libavcodec lacks the encoders.
    init?(width: Int, height: Int, bitrate: Int, threads: Int) {
        let sounds = unsafe av_audio_encoder_create(Self.soundBitrate)
        let pictures = unsafe av_picture_encoder_create(
            Int32(width),
            Int32(height),
            Int32(Self.pictureRate),
            Int64(bitrate),
            Int32(threads)
        )
        guard let sounds = unsafe sounds, let pictures = unsafe pictures else {
            unsafe av_encoder_destroy(sounds)
            unsafe av_encoder_destroy(pictures)
            return nil
        }
        unsafe self.sounds = sounds
        unsafe self.pictures = pictures
    }

    deinit {
        unsafe av_encoder_destroy(sounds)
        unsafe av_encoder_destroy(pictures)
    }

    /// Encodes a picture of the encoder's size; `number` must increase from picture to picture.
    func encode(picture: [UInt8], number: Int64, isKeyframe: Bool) -> [EncodedPacket] {
        unsafe picture.withUnsafeBufferPointer { bytes in
            let wish: Int32 = isKeyframe ? 1 : 0
            _ = unsafe av_encoder_picture(pictures, bytes.baseAddress, number, wish)
        }
        return unsafe packets(of: pictures, isPicture: true, rate: Int64(Self.pictureRate))
    }

    /// Encodes `soundSamples` left samples followed by as many right ones; `position` is the number
    /// of samples since the beginning.
    func encode(sound: [Float], position: Int64) -> [EncodedPacket] {
        precondition(sound.count == Self.soundSamples * 2, "a packet has as many samples")
        unsafe sound.withUnsafeBufferPointer { samples in
            _ = unsafe av_encoder_audio(sounds, samples.baseAddress, position)
        }
        return unsafe packets(of: sounds, isPicture: false, rate: 48_000)
    }

    private func packets(
        of encoder: UnsafeMutablePointer<av_encoder>,
        isPicture: Bool,
        rate: Int64
    ) -> [EncodedPacket] {
        var packets: [EncodedPacket] = []
        var encoded = unsafe av_encoded()
        while unsafe av_encoder_next(encoder, &encoded) == 1 {
            let found = unsafe UnsafeBufferPointer(
                start: encoded.bytes,
                count: Int(encoded.count)
            )
            let packet = unsafe EncodedPacket(
                bytes: Array(found),
                isPicture: isPicture,
                isKeyframe: encoded.keyframe == 1,
                milliseconds: encoded.time * 1_000 / rate
            )
            packets.append(packet)
        }
        return packets
    }

    /// Connects to a server; returns the output, or `nil` and libav's error.
    fileprivate func connect(
        _ settings: StreamSettings,
        milliseconds: Int32
    ) -> (
        UnsafeMutablePointer<av_output>?, Int32
    ) {
        var error: Int32 = 0
        let output = unsafe av_output_create(
            settings.url,
            settings.authority,
            pictures,
            sounds,
            milliseconds,
            &error
        )
        return unsafe (output, error)
    }
}

/// Connection to the server that receives the live stream.
///
/// Safe: it owns libavformat's context, and is used by one thread.
@safe
final class StreamOutput {
    /// Connection failure, as a one-word reason.
    struct Failure: Error, Hashable { var cause: String }

    private let output: UnsafeMutablePointer<av_output>

    /// Longest time for connecting, or for sending a packet.
    private static let milliseconds: Int32 = 5_000
    private static let finishMilliseconds: Int32 = 300

    init(_ settings: StreamSettings, _ encoder: StreamEncoder) throws(Failure) {
        let (made, error) = unsafe encoder.connect(settings, milliseconds: Self.milliseconds)
        guard let made = unsafe made else {
            if av_error_is_unreachable(error) == 1 { throw Failure(cause: "unreachable") }
            throw Failure(cause: av_error_is_late(error) == 1 ? "timeout" : "refused")
        }
        unsafe output = made
    }

    deinit { unsafe av_output_destroy(output) }

    /// Sends a packet; returns `false` if the connection is lost.
    func send(_ packet: EncodedPacket, milliseconds: Int64) -> Bool {
        unsafe packet.bytes.withUnsafeBufferPointer { bytes in
            unsafe av_output_write(
                output,
                packet.isPicture ? 0 : 1,
                bytes.baseAddress,
                Int32(clamping: bytes.count),
                milliseconds,
                packet.isKeyframe ? 1 : 0,
                Self.milliseconds
            ) >= 0
        }
    }

    /// Ends the stream properly at the server.
    func finish() { unsafe av_output_finish(output, Self.finishMilliseconds) }
}

/// Picture that others are copied into.
///
/// Safe: the copied pictures are checked to lie inside.
struct StreamCanvas {
    let width: Int
    let height: Int
    private(set) var bytes: [UInt8]

    init(width: Int, height: Int) {
        self.width = width
        self.height = height
        bytes = []
        clear()
    }

    /// Fills the picture with black.
    mutating func clear() {
        let luma = width * height
        bytes = [UInt8](repeating: 16, count: luma) + [UInt8](repeating: 128, count: luma / 2)
    }

    mutating func put(_ picture: [UInt8], width: Int, height: Int, x: Int, y: Int) {
        precondition(picture.count == width * height * 3 / 2 && x >= 0 && y >= 0)
        precondition(x + width <= self.width && y + height <= self.height)
        let whole = (Int32(self.width), Int32(self.height))
        unsafe bytes.withUnsafeMutableBufferPointer { canvas in
            unsafe picture.withUnsafeBufferPointer { part in
                unsafe av_picture_put(
                    canvas.baseAddress,
                    whole.0,
                    whole.1,
                    Int32(x),
                    Int32(y),
                    part.baseAddress,
                    Int32(width),
                    Int32(height)
                )
            }
        }
    }
}
