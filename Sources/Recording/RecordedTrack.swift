import RTP
import WorkerInterface

/// One track of a recording: its reader, the file under way, and the bounds that keep what its
/// publisher sends from costing anybody else.
struct RecordedTrack {
    /// Reason for which nothing more of a track is recorded, while the recording goes on.
    enum End: String, Sendable {
        /// The muxer has refused its media too often.
        case refused
        /// It or its participant has begun too many files.
        case tooManyFiles = "too-many-files"
    }

    /// A file under way.
    struct OpenFile {
        var muxer: MediaMuxer
        /// Its place among the recording's files.
        var index: Int
        var start: Instant
        var format: FrameFormat
        var lastMilliseconds: Int64 = -1
        var flushedAt: Instant?
        var isDirty = false

        /// The time in the file at which a sample belongs: later than the one before.
        func milliseconds(of instant: Instant) -> Int64 {
            let passed = instant.nanoseconds(since: start)
            // Half of the divisor away from the ends of Int64, so that rounding cannot overflow.
            let nearest = passed / 1_000_000 &+ (passed % 1_000_000 >= 500_000 ? 1 : 0)
            return max(nearest, lastMilliseconds &+ 1)
        }

        /// The capture time of the last sample that was written.
        var end: Instant { start.advanced(milliseconds: max(0, lastMilliseconds)) }
    }

    /// Times that the muxer may refuse the track's media; then the track is given up.
    static let refusalLimit = 5
    /// Gaps that are listed of one track, in all its files; further ones are not.
    static let gapLimit = 10_000
    /// Changes of size that are noted of one track.
    static let sizeLimit = 1_000

    let track: TapTrack
    var reader: TrackReader
    var file: OpenFile?
    /// Place of the latest file among the recording's, the one under way or the last.
    var lastFile: Int?
    /// Files that have been begun.
    var files = 0
    var gaps = 0
    var sizes = 0
    /// When its publisher was last asked for a keyframe.
    var askedAt: Instant?
    var size = (width: 0, height: 0)
    var end: End?
    private var refusals = 0
    /// The end of what was written, from a refusal on until a file goes on.
    private(set) var refusedSince: Instant?

    init(_ track: TapTrack) {
        self.track = track
        reader = TrackReader(kind: track.kind)
    }

    /// Counts that the muxer has refused media captured at `instant`, which ends the file.
    ///
    /// - Returns: whether that was once too often.
    mutating func refuse(at instant: Instant) -> Bool {
        if refusedSince == nil { refusedSince = file?.end ?? instant }
        refusals += 1
        return refusals >= Self.refusalLimit
    }

    /// Says since when nothing could be written, and forgets it: a file goes on.
    mutating func takeRefusal() -> Instant? {
        defer { refusedSince = nil }
        return refusedSince
    }

    /// Gives the track up: nothing more of it is read or asked for.
    mutating func giveUp(_ end: End) {
        self.end = end
        reader = TrackReader(kind: track.kind)
    }
}
