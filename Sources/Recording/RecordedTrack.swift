import RTP
import WorkerInterface

/// One track of a recording: its reader, its open file, and limits that keep its publisher from
/// using up the resources of others.
struct RecordedTrack {
    /// Reason that a track's recording ended while the room's recording continues.
    enum End: String, Sendable {
        /// The muxer has rejected its media too often.
        case refused
        /// The track or its participant has begun too many files.
        case tooManyFiles = "too-many-files"
    }

    /// Open file.
    struct OpenFile {
        var muxer: MediaMuxer
        /// Index in the recording's files.
        var index: Int
        var start: Instant
        var format: FrameFormat
        /// Time of the last written sample; `nil` before the first.
        var lastMilliseconds: Int64?
        var flushedAt: Instant?
        var isDirty = false

        /// Returns a sample's time in the file, later than the previous one's.
        func milliseconds(of instant: Instant) -> Int64 {
            let passed = instant.nanoseconds(since: start)
            // Adding half of the divisor before dividing could overflow near the ends of Int64.
            let nearest = passed / 1_000_000 &+ (passed % 1_000_000 >= 500_000 ? 1 : 0)
            return max(nearest, lastMilliseconds.map { $0 &+ 1 } ?? 0)
        }

        /// Capture time of the last written sample.
        var end: Instant { start.advanced(milliseconds: lastMilliseconds ?? 0) }
    }

    /// Times that the muxer may reject the track's media before its recording ends.
    static let refusalLimit = 5
    /// Largest number of listed gaps of one track, over all its files.
    static let gapLimit = 10_000
    /// Largest number of logged resolution changes of one track.
    static let sizeLimit = 1_000

    let track: OutputTrack
    var reader: TrackReader
    var file: OpenFile?
    /// Index in the recording's files of the open file, or of the last one.
    var lastFile: Int?
    /// Number of files begun.
    var files = 0
    var gaps = 0
    var sizes = 0
    /// Time of the last keyframe request to its publisher.
    var askedAt: Instant?
    var size = (width: 0, height: 0)
    var end: End?
    private var refusals = 0
    /// End of the written media, from a rejection until the next file begins.
    private(set) var refusedSince: Instant?

    init(_ track: OutputTrack) {
        self.track = track
        reader = TrackReader(kind: track.kind)
    }

    /// Counts a rejection by the muxer of media captured at `instant`, which ends the file.
    ///
    /// - Returns: whether the limit is reached.
    mutating func refuse(at instant: Instant) -> Bool {
        if refusedSince == nil { refusedSince = file?.end ?? instant }
        refusals += 1
        return refusals >= Self.refusalLimit
    }

    /// Returns and clears the time since which nothing could be written, as a file continues.
    mutating func takeRefusal() -> Instant? {
        defer { refusedSince = nil }
        return refusedSince
    }

    /// Ends the track's recording: no more media is read, and no keyframe requested.
    mutating func stopRecording(_ end: End) {
        self.end = end
        reader = TrackReader(kind: track.kind)
    }
}
