/// Division of the session's audio into windows that are mixed one at a time.
///
/// A mix needs memory and open files for each stretch, so a window has few of them.
struct AudioPlan: Equatable, Sendable {
    /// Windows in order, without gaps.
    var windows: [Window]

    /// At most five minutes of audio.
    struct Window: Equatable, Sendable {
        /// Frames of the picture, with `samplesPerFrame` samples each.
        var frames: Range<Int>
        var pieces: [Piece]

        var samples: Int { frames.count * AudioPlan.samplesPerFrame }
    }

    /// The part of a clip within a window, in seconds of the session.
    struct Piece: Equatable, Sendable {
        var clip: Int
        var span: Range<Double>
    }

    static let sampleRate = 48_000
    static let samplesPerFrame = sampleRate / ComposePlan.frameRate
    /// Longest window, in frames.
    static let longest = 300 * ComposePlan.frameRate
    /// Shortest window after a division, in frames.
    static let shortest = 10 * ComposePlan.frameRate
    /// Most stretches in a window longer than twice `shortest`.
    static let pieceLimit = 64
    /// Longest gap that is filled with silence, in seconds; longer ones separate stretches.
    static let filled = 5.0
    /// Extension of each stretch into its gaps, in seconds, as packets and events differ slightly.
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
