import CKernel
import Kernel
import RTP
import WorkerInterface

/// Decoded picture of a tile's size.
struct StreamPicture: Sendable {
    var width: Int
    var height: Int
    /// Planes of 4:2:0 one after another.
    var bytes: [UInt8]
}

/// Shared state of the decoding and the composing thread: pictures and audio.
final class StreamPlayout: Sendable {
    struct State {
        var stage = TilePlayout<StreamPicture>()
        var mixer: AudioMixer
    }

    let settings: StreamSettings
    /// Time at which the first sample and the first picture are played.
    let start: Instant
    let state: Locked<State>

    /// Delay from capture to playout, in milliseconds; it covers network jitter and decoding time.
    static let delayMilliseconds: Int64 = 400

    init(_ settings: StreamSettings, at now: Instant) {
        self.settings = settings
        start = now
        let origin = now.advanced(milliseconds: -Self.delayMilliseconds)
        state = Locked(State(mixer: AudioMixer(origin: origin)))
    }
}

/// Decoder of all tracks of a live stream; stores pictures and audio for the composer.
struct StreamDecoding {
    private struct Track {
        var decoder: StreamDecoder
        var codec: Codec
        var configuration: [UInt8]
    }

    private let studio: StreamPlayout
    private var tracks: [UInt32: Track] = [:]
    /// Size of the tiles as last set; all have the same size.
    private var tile: StreamTile?
    private var budget = DecodeBudget()
    /// Tracks whose video is not decoded for a time, and then resumes with a keyframe.
    private var pauses: [UInt32: Pause] = [:]

    private struct Pause {
        var until: Instant
        var askedAt: Instant?
    }

    private static let pauseMilliseconds: Int64 = 1_000

    init(_ studio: StreamPlayout) { self.studio = studio }

    mutating func take(_ message: StreamMessage) {
        switch message {
        case .begin, .end: break
        case .tiles(let numbers): show(numbers)
        case .frame(let frame): take(frame)
        case .leave(let number):
            let isSound = tracks[number]?.codec.kind == .audio
            tracks[number] = nil
            pauses[number] = nil
            studio.state.withLock { state in
                state.stage.leave(number)
                if isSound { state.mixer.forget(number) }
            }
        case .forget(let number):
            studio.state.withLock { state in
                state.stage.forget(number)
                state.mixer.forget(number)
            }
        }
    }

    private mutating func show(_ numbers: [UInt32]) {
        let settings = studio.settings
        let tile = StreamGrid.tiles(
            numbers.count,
            width: settings.width,
            height: settings.height
        ).first
        let isOther = tile?.width != self.tile?.width || tile?.height != self.tile?.height
        self.tile = tile
        studio.state.withLock { $0.stage.set(numbers, at: .monotonic()) }
        guard isOther else { return }
        // A static screen share sends no new picture, so scale the last one to the new size.
        for number in numbers {
            guard let picture = picture(of: number) else { continue }
            studio.state.withLock { $0.stage.replace(picture, of: number) }
        }
    }

    private var voices: Int { tracks.values.reduce(0) { $0 + ($1.codec.kind == .audio ? 1 : 0) } }

    /// Decodes a frame; pauses a video track that takes too much decoding time.
    private mutating func take(_ frame: StreamFrame) {
        guard frame.codec.kind == .video else { return decode(frame) }
        guard isGoing(frame, at: .monotonic()) else { return }
        let begin = kernel_thread_nanoseconds()
        decode(frame)
        let cost = kernel_thread_nanoseconds() &- begin
        let now = Instant.monotonic()
        guard let track = budget.note(cost, of: frame.track, at: now) else { return }
        pauses[track] = Pause(until: now.advanced(milliseconds: Self.pauseMilliseconds))
    }

    /// Returns whether to decode a picture; requests a keyframe when a pause is over.
    private mutating func isGoing(_ frame: StreamFrame, at now: Instant) -> Bool {
        guard let pause = pauses[frame.track] else { return true }
        guard pause.until <= now else { return false }
        guard !frame.isKeyframe else {
            pauses[frame.track] = nil
            return true
        }
        if pause.askedAt.map({ now.milliseconds(since: $0) >= Self.pauseMilliseconds }) != false {
            pauses[frame.track]?.askedAt = now
            Streamer.report(.keyframeWanted(frame.track))
        }
        return false
    }

    private mutating func decode(_ frame: StreamFrame) {
        if let configuration = frame.configuration {
            let known = tracks[frame.track]
            if known?.codec != frame.codec || known?.configuration != configuration {
                tracks[frame.track] = nil
                guard frame.codec.kind == .video || voices < AudioMixer.trackLimit,
                    let decoder = StreamDecoder(frame.codec, configuration: configuration)
                else { return }
                tracks[frame.track] = Track(
                    decoder: decoder,
                    codec: frame.codec,
                    configuration: configuration
                )
            }
        }
        guard let decoder = tracks[frame.track]?.decoder, decoder.decode(frame.bytes) else {
            return
        }
        guard frame.codec.kind == .audio else {
            guard let picture = picture(of: frame.track) else { return }
            studio.state.withLock { $0.stage.add(picture, of: frame.track, at: frame.instant) }
            return
        }
        let sound = decoder.sound()
        studio.state.withLock { $0.mixer.add(sound, of: frame.track, at: frame.instant) }
    }

    /// Returns the last picture of a track, in the size of a tile.
    private func picture(of number: UInt32) -> StreamPicture? {
        guard let tile else { return nil }
        let bytes = tracks[number]?.decoder.picture(width: tile.width, height: tile.height)
        return bytes.map { StreamPicture(width: tile.width, height: tile.height, bytes: $0) }
    }
}
