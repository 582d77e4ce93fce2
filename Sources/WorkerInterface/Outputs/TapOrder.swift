/// Identifier of a tap, unique in the process.
package typealias TapID = UInt64

/// Command from a room to the tap thread, besides the mirror commands that every worker gets.
package enum TapOrder: Hashable, Sendable {
    /// Prepares the destination of the tap's media.
    ///
    /// Later fences are acknowledged when it is ready.
    case open(TapSetup)
    /// Adds a publication to the tap; its mirror exists already.
    case attach(TapID, TapTrack)
    case detach(TapID, PublicationID)
    /// Discards the media read so far of a publication about to be detached.
    ///
    /// It is for a permission that was revoked: the media must not be seen or heard any more.
    case forget(TapID, PublicationID)
    /// Sets the streams whose video is shown, in the order of their tiles.
    case tiles(TapID, [String])
    /// Records a room event in the recording.
    case note(TapID, TapNote)
    /// Ends the tap; later fences are acknowledged when its files are closed, or after a time
    /// limit.
    case close(TapID)
}

/// Use of the media that a tap reads.
package enum TapPurpose: Hashable, Sendable {
    case recording
    case streaming(StreamTarget)
    /// Forwarding as plain RTP.
    case output(TapOutput)
}

/// Purpose of a tap, and destination of its media.
package struct TapSetup: Hashable, Sendable {
    package var id: TapID
    /// Name in the public interface.
    package var name: String
    package var room: String
    /// Directory of a recording, an absolute path; it is created.
    package var directory: String
    /// Start time as Unix time, in seconds.
    package var started: Double
    package var purpose: TapPurpose

    package init(
        id: TapID,
        name: String,
        room: String,
        directory: String,
        started: Double,
        purpose: TapPurpose = .recording
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
package struct TapTrack: Hashable, Sendable {
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
package enum TapNote: Hashable, Sendable {
    case joined(participant: String, name: String)
    case left(participant: String)
    /// Active speakers now, the newest start of speech first.
    case talkers([String])
}

/// Report from the tap thread about a tap.
package enum TapNotice: Hashable, Sendable {
    /// The first media is on disk, or at the server.
    case started(TapID)
    /// The connection to a live stream's server is lost for now, for the reason in `cause`.
    case interrupted(TapID, cause: String)
    /// The connection is there again.
    case resumed(TapID)
    /// Counts of packets sent as plain RTP, reported at most once a second.
    case sent(TapID, TapCounts)
    /// Present state of its files, reported at most once a second.
    case files(TapID, [TapFile])
    /// The tap has ended: it was closed, or ended by itself for `reason`.
    case ended(TapID, reason: String?, [TapFile])
}

/// Recorded track of a stream on disk.
package struct TapFile: Hashable, Sendable {
    /// Absolute path.
    package var path: String
    package var participant: String
    package var stream: String
    package var kind: MediaKind
    /// Unix time of its first sample, in seconds.
    package var start: Double
    /// Time up to the last sample that was written, in seconds.
    package var duration: Double
    package var gaps: [TapGap]

    package init(
        path: String,
        participant: String,
        stream: String,
        kind: MediaKind,
        start: Double,
        duration: Double,
        gaps: [TapGap]
    ) {
        self.path = path
        self.participant = participant
        self.stream = stream
        self.kind = kind
        self.start = start
        self.duration = duration
        self.gaps = gaps
    }
}

/// Time span in which a file has no samples.
package struct TapGap: Hashable, Sendable {
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
