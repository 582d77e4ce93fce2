internal import COpus
import RTP

/// Loudness meter for Opus without an audio level extension, one per worker.
///
/// Silence is recognized by its packet size and by an occasional decode. Packets that may be louder
/// are decoded, at 8 kHz mono. There are at most `limit` decoders: a stream that has been silent
/// for long gives its decoder to another.
@safe
struct OpusLevelMeter: ~Copyable {
    /// Measurement state of one publication.
    struct Stream: BitwiseCopyable {
        fileprivate var place = 0
        /// Ownership number of the decoder at `place`, while it is this stream's; 0 for none.
        fileprivate var ownership: UInt64 = 0
        /// Packet size of silence in bytes, and its level in -dBov.
        fileprivate var quietBytes: Float = 0
        fileprivate var quietLevel: Float = 127
        /// Packets to decode even if they look silent.
        fileprivate var attention = Self.mostAttention
        /// Packets since the last decoded one.
        fileprivate var unheard = 0

        init() {}

        fileprivate static let mostAttention = 25
    }

    @safe
    private struct Place {
        var decoder: OpaquePointer?
        var ownership: UInt64 = 0
        /// Number of the decode that last used it.
        var lastUse: UInt64 = 0
    }

    private let places: UnsafeMutableBufferPointer<Place>
    private let samples: UnsafeMutableBufferPointer<Int16>
    private var made = 0
    /// Packets decoded.
    private(set) var decodes: UInt64 = 0
    private var ownerships: UInt64 = 0

    /// - Parameter limit: Number of decoders, about 18 KB each, created when first needed.
    init(limit: Int) {
        unsafe places = .allocate(capacity: max(1, limit))
        unsafe places.initialize(repeating: Place())
        unsafe samples = .allocate(capacity: Self.mostSamples)
        unsafe samples.initialize(repeating: 0)
    }

    deinit {
        for index in 0..<made { unsafe opus_decoder_destroy(places[index].decoder) }
        unsafe places.deallocate()
        unsafe samples.deallocate()
    }

    /// Returns the level of a packet, without a voice flag.
    ///
    /// Returns `nil` if it is unknown: the payload is not Opus, decoding fails, or no decoder is
    /// free.
    mutating func level(of payload: Span<UInt8>, in stream: inout Stream) -> AudioLevel? {
        guard let packet = OpusPacket(payload) else { return nil }
        guard !packet.isDTX else {
            stream.attention = 0
            return AudioLevel(level: AudioLevel.silence)
        }
        guard wants(payload.count, &stream) else {
            stream.unheard += 1
            return AudioLevel(level: UInt8(stream.quietLevel))
        }
        guard let level = decode(payload, &stream) else { return nil }
        stream.unheard = 0
        learn(Float(level), Float(payload.count), &stream)
        return AudioLevel(level: level)
    }

    /// Skips a packet because the worker's decode budget is exhausted.
    ///
    /// The next measured level is only slightly wrong.
    func skip(_ stream: inout Stream) { stream.unheard += 1 }

    /// Returns whether the packet must be decoded: it may be louder than silence, or a periodic
    /// check is due.
    private func wants(_ bytes: Int, _ stream: inout Stream) -> Bool {
        if stream.attention > 0 { return true }
        if Float(bytes) > stream.quietBytes * Self.louderRatio + Self.louderBytes { return true }
        return stream.unheard >= Self.lookEach
    }

    /// Adapts the level and packet size of silence: fast downward, slowly upward.
    private func learn(_ level: Float, _ bytes: Float, _ stream: inout Stream) {
        let isLouder = level < stream.quietLevel - Self.louderLevel
        stream.attention =
            isLouder && level < Self.audible ? Stream.mostAttention : max(0, stream.attention - 1)
        stream.quietLevel =
            level > stream.quietLevel
            ? level : stream.quietLevel + (level - stream.quietLevel) / 256
        if !isLouder || stream.quietBytes == 0 || bytes < stream.quietBytes {
            stream.quietBytes += (bytes - stream.quietBytes) / (stream.quietBytes == 0 ? 1 : 8)
        }
    }

    private mutating func decode(_ payload: Span<UInt8>, _ stream: inout Stream) -> UInt8? {
        guard let place = place(for: &stream) else { return nil }
        decodes += 1
        unsafe places[place].lastUse = decodes
        guard let decoder = unsafe places[place].decoder else { return nil }
        guard let output = unsafe samples.baseAddress else { return nil }
        let count = unsafe payload.withUnsafeBufferPointer { bytes in
            let size = Int32(clamping: bytes.count)
            let most = Int32(Self.mostSamples)
            return unsafe opus_decode(decoder, bytes.baseAddress, size, output, most, 0)
        }
        guard count > 0, Int(count) <= Self.mostSamples else { return nil }
        var sum: Int64 = 0
        for index in 0..<Int(count) {
            let sample: Int16 = unsafe samples[index]
            sum += Int64(sample) * Int64(sample)
        }
        return Self.level(meanSquare: Float(sum) / Float(count))
    }

    /// Converts a mean square to dB below a full-scale square wave.
    private static func level(meanSquare: Float) -> UInt8 {
        guard meanSquare > 0 else { return AudioLevel.silence }
        // Approximates the binary logarithm to 0.01, which avoids a math library.
        let fraction = meanSquare.significand - 1
        let bits = Float(meanSquare.exponent) + fraction * (1.3465 - 0.3465 * fraction)
        // A full-scale sample squared has 30 bits; each doubling is 3.01 dB.
        let decibels = (30 - bits) * 3.0103
        return UInt8(min(max(decibels.rounded(), 0), Float(AudioLevel.silence)))
    }

    /// Returns the stream's decoder, a new one, or one whose stream has been silent for long.
    private mutating func place(for stream: inout Stream) -> Int? {
        if stream.ownership != 0, unsafe places[stream.place].ownership == stream.ownership {
            return stream.place
        }
        guard let free = unsafe made < places.count ? make() : idle() else { return nil }
        ownerships += 1
        unsafe places[free].ownership = ownerships
        (stream.place, stream.ownership) = (free, ownerships)
        return free
    }

    private mutating func make() -> Int? {
        var error: Int32 = 0
        guard let decoder = unsafe opus_decoder_create(Self.sampleRate, 1, &error) else {
            return nil
        }
        unsafe places[made].decoder = unsafe decoder
        made += 1
        return made - 1
    }

    private func idle() -> Int? {
        var oldest = 0
        for index in 1..<max(1, made) where unsafe places[index].lastUse < places[oldest].lastUse {
            oldest = index
        }
        let wait = unsafe UInt64(Self.idleDecodes * places.count)
        guard unsafe decodes - places[oldest].lastUse >= wait else { return nil }
        unsafe opus_decoder_reset(places[oldest].decoder)
        return oldest
    }

    private static let sampleRate: Int32 = 8_000
    /// Samples of the longest packet, 120 ms.
    private static let mostSamples = 960
    /// Packets skipped between two decodes of silence.
    ///
    /// Every third packet is decoded for a publisher without DTX, so that a constant bitrate hides
    /// speech for at most 40 ms.
    private static let lookEach = 2
    private static let louderRatio: Float = 1.5
    private static let louderBytes: Float = 6
    /// Rise above the level of silence that counts as louder, in dB.
    private static let louderLevel: Float = 6
    /// Quietest level of speech, in -dBov.
    private static let audible: Float = 60
    /// Idle time of a decoder, in decodes of each other decoder: about a second of speech.
    private static let idleDecodes = 50
}
