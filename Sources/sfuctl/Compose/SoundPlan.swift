/// Which files are heard when: the session cut into windows that are mixed one by one.
///
/// A mix's memory and open files grow with the stretches in it, so a window has few of them.
struct SoundPlan: Equatable, Sendable {
    /// In order, without gaps between them.
    var windows: [Window]

    /// Some minutes of sound.
    struct Window: Equatable, Sendable {
        /// Frames of the picture, `samplesPerFrame` samples each.
        var frames: Range<Int>
        var pieces: [Piece]

        var samples: Int { frames.count * SoundPlan.samplesPerFrame }
    }

    /// A stretch of a clip that is in a window, in seconds of the session.
    struct Piece: Equatable, Sendable {
        var clip: Int
        var span: Range<Double>
    }

    static let sampleRate = 48_000
    static let samplesPerFrame = sampleRate / ComposePlan.frameRate
    /// Frames of a window, where it holds few stretches.
    static let longest = 300 * ComposePlan.frameRate
    /// Windows are not cut in two below this, in frames.
    static let shortest = 10 * ComposePlan.frameRate
    /// Stretches of a window, while it is longer than `shortest`.
    static let pieceLimit = 64
    /// A gap that is longer, in seconds, parts two stretches; others are filled with silence.
    static let filled = 5.0
    /// What is taken of a gap's ends, in seconds: packets and events do not agree to the last one.
    static let margin = 0.1

    init(_ clips: [Clip], frames: Int) {
        let stretches = clips.indices.filter { !clips[$0].isVideo }.flatMap { index in
            clips[index].stretches(gapsOver: Self.filled).map { stretch in
                let wide = (stretch.lowerBound - Self.margin)..<(stretch.upperBound + Self.margin)
                return Piece(clip: index, span: wide.clamped(to: clips[index].span))
            }
        }
        windows = stride(from: 0, to: frames, by: Self.longest).flatMap { begin in
            Self.windows(begin..<min(begin + Self.longest, frames), stretches)
        }
    }

    private static func windows(_ frames: Range<Int>, _ stretches: [Piece]) -> [Window] {
        let rate = Double(ComposePlan.frameRate)
        let span = (Double(frames.lowerBound) / rate)..<(Double(frames.upperBound) / rate)
        let pieces = stretches.compactMap { piece -> Piece? in
            let part = piece.span.clamped(to: span)
            return part.isEmpty ? nil : Piece(clip: piece.clip, span: part)
        }
        guard pieces.count > pieceLimit, frames.count >= 2 * shortest else {
            return [Window(frames: frames, pieces: pieces)]
        }
        let middle = frames.lowerBound + frames.count / 2
        return windows(frames.lowerBound..<middle, pieces)
            + windows(middle..<frames.upperBound, pieces)
    }
}
