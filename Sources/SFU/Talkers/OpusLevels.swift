internal import COpus
import RTP

/// Finds the loudness of Opus whose sender does not tell it: one for a worker.
///
/// Silence is known by its size or by a look now and then; what may be louder is decoded, at 8 kHz
/// and in one channel. There are at most `limit` decoders: whoever was silent for long gives its
/// one away.
@safe
struct OpusLevels: ~Copyable {
    /// What is known of one publication.
    struct Stream: BitwiseCopyable {
        fileprivate var place = 0
        /// Of the decoder at `place`, while it is this stream's; 0 is nobody's.
        fileprivate var ownership: UInt64 = 0
        /// What silence has in bytes, and how loud it is, in dB below the loudest.
        fileprivate var quietBytes: Float = 0
        fileprivate var quietLevel: Float = 127
        /// Packets still to be decoded although they may be silent.
        fileprivate var attention = Self.mostAttention
        /// Packets since the last one that was decoded.
        fileprivate var unheard = 0

        init() {}

        fileprivate static let mostAttention = 25
    }

    @safe
    private struct Place {
        var decoder: OpaquePointer?
        var ownership: UInt64 = 0
        /// The decode that was the last with it.
        var lastUse: UInt64 = 0
    }

    private let places: UnsafeMutableBufferPointer<Place>
    private let samples: UnsafeMutableBufferPointer<Int16>
    private var made = 0
    /// Packets that were decoded.
    private(set) var decodes: UInt64 = 0
    private var ownerships: UInt64 = 0

    /// - Parameter limit: decoders at one time, about 18 KB each, made when they are first needed.
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

    /// How loud a packet is; nothing is said of the voice.
    ///
    /// Returns `nil` where it cannot be known: no Opus, or no decoder is free.
    mutating func level(of payload: Span<UInt8>, in stream: inout Stream) -> AudioLevel? {
        guard let packet = OpusPacket(payload) else { return nil }
        guard !packet.isSilence else {
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

    /// Lets a packet go by unmeasured, because the budget of the worker is spent.
    ///
    /// The next one that is measured will be off by little.
    func skip(_ stream: inout Stream) { stream.unheard += 1 }

    /// Whether the packet may be louder than silence, or it is time to look.
    private func wants(_ bytes: Int, _ stream: inout Stream) -> Bool {
        if stream.attention > 0 { return true }
        if Float(bytes) > stream.quietBytes * Self.louderRatio + Self.louderBytes { return true }
        return stream.unheard >= Self.lookEach
    }

    /// Adjusts what silence is: at once to less, slowly to more.
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

    /// In dB below a full square wave.
    private static func level(meanSquare: Float) -> UInt8 {
        guard meanSquare > 0 else { return AudioLevel.silence }
        // The binary logarithm, to 0.01: nothing here needs a library of mathematics.
        let fraction = meanSquare.significand - 1
        let bits = Float(meanSquare.exponent) + fraction * (1.3465 - 0.3465 * fraction)
        // 30 bits are the square of a full wave; a doubled square is 3.01 dB.
        let decibels = (30 - bits) * 3.0103
        return UInt8(min(max(decibels.rounded(), 0), Float(AudioLevel.silence)))
    }

    /// The stream's decoder, a new one, or one whose stream was silent for long.
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
        unsafe opus_decoder_forget(places[oldest].decoder)
        return oldest
    }

    private static let sampleRate: Int32 = 8_000
    /// 120 ms.
    private static let mostSamples = 960
    /// Silence of a publisher without DTX is looked at each third packet, so that a constant bit
    /// rate hides no speech for longer than 40 ms.
    private static let lookEach = 2
    private static let louderRatio: Float = 1.5
    private static let louderBytes: Float = 6
    /// In dB.
    private static let louderLevel: Float = 6
    /// In dB below the loudest: what is quieter is no speech anyhow.
    private static let audible: Float = 60
    /// Decodes of each other decoder, a second of speech, after which one is idle.
    private static let idleDecodes = 50
}
