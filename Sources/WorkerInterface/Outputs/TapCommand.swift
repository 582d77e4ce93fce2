/// Identifier of a tap, unique in the process.
package typealias OutputID = UInt64

/// Command from a room to the tap thread, besides the mirror commands that every worker gets.
package enum OutputCommand: Hashable, Sendable {
    /// Prepares the destination of the tap's media.
    ///
    /// Later fences are acknowledged when it is ready.
    case open(OutputSetup)
    /// Adds a publication to the tap; its mirror exists already.
    case attach(OutputID, OutputTrack)
    case detach(OutputID, PublicationID)
    /// Discards the media read so far of a publication about to be detached.
    ///
    /// It is for a permission that was revoked: the media must not be seen or heard any more.
    case forget(OutputID, PublicationID)
    /// Sets the streams whose video is shown, in the order of their tiles.
    case tiles(OutputID, [String])
    /// Records a room event in the recording.
    case note(OutputID, OutputNote)
    /// Ends the tap; later fences are acknowledged when its files are closed, or after a time
    /// limit.
    case close(OutputID)
}

/// Use of the media that a tap reads.
package enum OutputPurpose: Hashable, Sendable, Codable {
    case recording
    case streaming(StreamTarget)
    /// Forwarding as plain RTP.
    case output(RTPForwardTarget)
}

/// Purpose of a tap, and destination of its media.
package struct OutputSetup: Hashable, Sendable {
    package var id: OutputID
    /// Name in the public interface.
    package var name: String
    package var room: String
    /// Directory of a recording, an absolute path; it is created.
    package var directory: String
    /// Start time as Unix time, in seconds.
    package var started: Double
    package var purpose: OutputPurpose

    package init(
        id: OutputID,
        name: String,
        room: String,
        directory: String,
        started: Double,
        purpose: OutputPurpose = .recording
    ) {
        self.id = id
        self.name = name
        self.room = room
        self.directory = directory
        self.started = started
        self.purpose = purpose
    }
}

/// Publication that a tap reads.
package struct OutputTrack: Hashable, Sendable, Codable {
    /// Handle of the mirror, among those of the tap.
    package var publication: PublicationID
    package var participant: String
    /// Display name of the participant; may be empty.
    package var name: String
    package var stream: String
    package var source: MediaSource
    package var kind: MediaKind

    package init(
        publication: PublicationID,
        participant: String,
        name: String,
        stream: String,
        source: MediaSource,
        kind: MediaKind
    ) {
        self.publication = publication
        self.participant = participant
        self.name = name
        self.stream = stream
        self.source = source
        self.kind = kind
    }
}

/// Room event besides media.
package enum OutputNote: Hashable, Sendable {
    case joined(participant: String, name: String)
    case left(participant: String)
    /// Active speakers now, the newest start of speech first.
    case talkers([String])
    /// Pinned participants now, in the order of the pins.
    case pins([String])
}

/// Report from the tap thread about a tap.
package enum OutputEvent: Hashable, Sendable {
    /// A recording's directory and files are ready, or a live stream's first media is at its
    /// server.
    case started(OutputID)
    /// The connection to a live stream's server is lost for now, for the reason in `cause`.
    case interrupted(OutputID, cause: String)
    /// The connection is there again.
    case resumed(OutputID)
    /// Counts of packets sent as plain RTP, reported at most once a second.
    case sent(OutputID, RTPForwardCounts)
    /// Present state of its files, reported at most once a second.
    case files(OutputID, [OutputFile])
    /// The tap has ended: it was closed, or ended by itself for `reason`.
    case ended(OutputID, reason: String?, [OutputFile])
}

/// Recorded track of a stream on disk.
package struct OutputFile: Hashable, Sendable {
    /// Absolute path.
    package var path: String
    package var participant: String
    package var stream: String
    package var kind: MediaKind
    /// Unix time of its first sample, in seconds.
    package var start: Double
    /// Time up to the last sample that was written, in seconds.
    package var duration: Double
    /// Length of what was written, in bytes.
    package var bytes: Int
    package var gaps: [OutputGap]

    package init(
        path: String,
        participant: String,
        stream: String,
        kind: MediaKind,
        start: Double,
        duration: Double,
        bytes: Int = 0,
        gaps: [OutputGap]
    ) {
        self.path = path
        self.participant = participant
        self.stream = stream
        self.kind = kind
        self.start = start
        self.duration = duration
        self.bytes = bytes
        self.gaps = gaps
    }
}

/// Time span in which a file has no samples.
package struct OutputGap: Hashable, Sendable {
    /// First and last moment as Unix times, in seconds.
    package var start: Double
    package var end: Double
    /// `muted`, `lost` or `refused`.
    package var reason: String

    package init(start: Double, end: Double, reason: String) {
        self.start = start
        self.end = end
        self.reason = reason
    }
}
