/// Names a tap; unique in the process.
package typealias TapID = UInt64

/// What a room asks of the tap's thread, besides the commands about mirrors that any worker gets.
package enum TapOrder: Hashable, Sendable {
    /// Makes the place ready where the tap's media goes.
    ///
    /// Fences behind it come back when it is.
    case open(TapSetup)
    /// The tap reads one more publication, which has a mirror there already.
    case attach(TapID, TapTrack)
    case detach(TapID, PublicationID)
    /// What was read of a publication that is about to be detached is not to be seen or heard
    /// any more: a right is gone, and not only the interest.
    case forget(TapID, PublicationID)
    /// The streams whose pictures are shown, in the order of their tiles.
    case tiles(TapID, [String])
    /// Something happened in the room that goes into the record of it.
    case note(TapID, TapNote)
    /// Ends the tap; fences behind it come back when its files are closed, or after a limit.
    case close(TapID)
}

/// What becomes of what a tap reads.
package enum TapPurpose: Hashable, Sendable {
    case recording
    case streaming(StreamTarget)
    /// It goes on as plain RTP.
    case output(TapOutput)
}

/// What a tap is for, and where its media goes.
package struct TapSetup: Hashable, Sendable {
    package var id: TapID
    /// As it is known outside.
    package var name: String
    package var room: String
    /// Of a recording, an absolute path; it is made.
    package var directory: String
    /// Unix time, in seconds.
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

/// A publication as the tap knows it.
package struct TapTrack: Hashable, Sendable {
    /// The mirror's handle among the tap's.
    package var publication: PublicationID
    package var participant: String
    /// What the participant is called; may be empty.
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

/// What happens in a room beside its media.
package enum TapNote: Hashable, Sendable {
    case joined(participant: String, name: String)
    case left(participant: String)
    /// Who talks now and is on the list of talkers, the newest start of speech first.
    case talkers([String])
}

/// What the tap's thread tells of a tap.
package enum TapNotice: Hashable, Sendable {
    /// The first of its media is on disk, or at the server.
    case started(TapID)
    /// The server of a live stream is gone for now, for the reason that the word says.
    case interrupted(TapID, cause: String)
    /// It is there again.
    case resumed(TapID)
    /// What has gone out of it as plain RTP; told at most once a second.
    case sent(TapID, TapCounts)
    /// Its files as they are now; told at most once a second.
    case files(TapID, [TapFile])
    /// It has ended: because it was closed, or for a reason of its own.
    case ended(TapID, reason: String?, [TapFile])
}

/// One track of a stream, as it lies on disk.
package struct TapFile: Hashable, Sendable {
    /// Absolute.
    package var path: String
    package var participant: String
    package var stream: String
    package var kind: MediaKind
    /// Unix time of its first sample, in seconds.
    package var start: Double
    /// In seconds, up to the last sample that was written.
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

/// A time for which a file has no samples.
package struct TapGap: Hashable, Sendable {
    /// Unix times, in seconds.
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
