import RTP
import Recording
import SFU
import SFUClient

/// One recording as the tap's thread has it: tracks, their files, and the record of the session.
///
/// It makes bytes and jobs for the disk; it touches neither files nor clock.
struct RoomRecording {
    private struct Track {
        var track: TapTrack
        var reader: TrackReader
        var file: OpenFile?
        /// When its publisher was last asked for a keyframe.
        var askedAt: Instant?
        var size = (width: 0, height: 0)
    }

    private struct OpenFile {
        var muxer: MediaMuxer
        /// Its place among the recording's files.
        var index: Int
        var start: Instant
        var format: FrameFormat
        var lastMilliseconds: Int64 = -1
        var flushedAt: Instant?
        var isDirty = false
    }

    let setup: TapSetup
    /// Unix time less the monotonic clock, in seconds.
    private let epoch: Double
    private var tracks: [PublicationID: Track] = [:]
    private(set) var files: [RecordingFile] = []
    /// How many files a track's name has been given to.
    private var names: [String: Int] = [:]
    private var session: SessionRecord
    private var writtenAt: Instant?
    private var events: [TrackEvent] = []
    /// What the disk is to do, in order.
    private var jobs: [DiskWriter.Job] = []
    /// libavformat or a limit says no: the recording has to end.
    private(set) var failure: String?

    /// How long what was recorded may be off the disk, for the muxer's part.
    private static let flushMilliseconds: Int64 = 500
    private static let wishMilliseconds: Int64 = 1_000
    private static let sessionMilliseconds: Int64 = 1_000

    init(_ setup: TapSetup, at now: Instant, unixTime: Double) {
        self.setup = setup
        epoch = unixTime - Double(now.nanoseconds) / 1e9
        session = SessionRecord(setup)
    }

    /// The jobs since the last call.
    mutating func takeJobs() -> [DiskWriter.Job] {
        defer { jobs = [] }
        return jobs
    }

    var shownFiles: [TapFile] { files.map { $0.shown(in: setup.directory) } }

    private func unixTime(_ instant: Instant) -> Double {
        epoch + Double(instant.nanoseconds) / 1e9
    }
}

// What comes from the room.
extension RoomRecording {
    mutating func attach(_ track: TapTrack, isOpen: Bool, at now: Instant) {
        tracks[track.publication] = Track(track: track, reader: TrackReader(kind: track.kind))
        if !isOpen { noteMute(track, "muted", at: now) }
    }

    mutating func detach(_ id: PublicationID) {
        if let file = tracks.removeValue(forKey: id)?.file { close(file) }
    }

    mutating func note(_ note: TapNote, at now: Instant) {
        session.note(note, at: unixTime(now))
    }

    mutating func gate(_ id: PublicationID, open: Bool, at now: Instant) {
        guard let track = tracks[id]?.track else { return }
        if !open { tracks[id]?.reader.mute(at: now) }
        noteMute(track, open ? "unmuted" : "muted", at: now)
    }

    private mutating func noteMute(_ track: TapTrack, _ type: String, at now: Instant) {
        let kind: JSON = track.kind == .audio ? "audio" : "video"
        let members: [String: JSON] = [
            "participant": .string(track.participant), "stream": .string(track.stream),
            "kind": kind,
        ]
        session.note(type, at: unixTime(now), members)
    }

    mutating func receive(_ packet: TapPacket, at now: Instant) {
        tracks[packet.publication]?.reader.receive(packet, at: now, into: &events)
        takeEvents(of: packet.publication, at: now)
    }

    private mutating func takeEvents(of id: PublicationID, at now: Instant) {
        for event in events { take(event, of: id, at: now) }
        events.removeAll(keepingCapacity: true)
    }

    private mutating func take(_ event: TrackEvent, of id: PublicationID, at now: Instant) {
        guard failure == nil else { return }
        switch event {
        case .gap(let start, let end, let reason):
            guard let index = tracks[id]?.file?.index else { return }
            let gap = TapGap(
                start: unixTime(start),
                end: unixTime(end),
                reason: reason.rawValue
            )
            files[index].gaps.append(gap)
            session.touch()
        case .sample(let sample): write(sample, of: id)
        }
    }

    private mutating func write(_ sample: TrackEvent.Sample, of id: PublicationID) {
        if let format = sample.format {
            noteSize(format, of: id, at: sample.instant)
            if let file = tracks[id]?.file, !file.format.canGoOn(with: format) {
                tracks[id]?.file = nil
                close(file)
            }
            if tracks[id]?.file == nil {
                let file = begin(format, of: id, sample.instant)
                tracks[id]?.file = file
            }
        }
        guard var file = tracks[id]?.file else { return }
        let passed = sample.instant.nanoseconds(since: file.start)
        let milliseconds = max((passed + 500_000) / 1_000_000, file.lastMilliseconds + 1)
        guard
            file.muxer.add(sample.bytes, milliseconds: milliseconds, isKeyframe: sample.isKeyframe)
        else {
            failure = "muxer"
            return
        }
        file.lastMilliseconds = milliseconds
        file.isDirty = true
        tracks[id]?.file = file
        files[file.index].duration = Double(milliseconds) / 1_000
    }

    private mutating func noteSize(_ format: FrameFormat, of id: PublicationID, at now: Instant) {
        guard format.width > 0, let track = tracks[id],
            track.size != (format.width, format.height)
        else { return }
        tracks[id]?.size = (format.width, format.height)
        let members: [String: JSON] = [
            "stream": .string(track.track.stream), "width": .integer(Int64(format.width)),
            "height": .integer(Int64(format.height)),
        ]
        session.note("size", at: unixTime(now), members)
    }
}

// Files.
extension RoomRecording {
    private mutating func begin(
        _ format: FrameFormat,
        of id: PublicationID,
        _ start: Instant
    ) -> OpenFile? {
        guard let track = tracks[id]?.track, let muxer = MediaMuxer(format) else {
            failure = "muxer"
            return nil
        }
        let name = name(of: track, format.codec)
        let index = files.count
        files.append(
            RecordingFile(
                track: track,
                number: index,
                name: name,
                codec: format.codec,
                start: unixTime(start)
            )
        )
        session.touch()
        let path = "\(setup.directory)/\(name)"
        jobs.append(.create(setup.id, file: index, path: path))
        return OpenFile(muxer: muxer, index: index, start: start, format: format)
    }

    /// Ids have no slash; a name that began with a dot would be hidden.
    private mutating func name(of track: TapTrack, _ codec: Codec) -> String {
        let kind = track.kind == .audio ? "audio" : "video"
        var stem = "\(track.participant)-\(track.stream)-\(track.source.rawValue)-\(kind)"
        if stem.hasPrefix(".") { stem = "_\(stem.dropFirst())" }
        let number = (names[stem] ?? 0) + 1
        names[stem] = number
        return "\(stem)-\(number).\(MediaMuxer.fileExtension(for: codec))"
    }

    private mutating func close(_ file: OpenFile) {
        post(file.muxer.finish(), of: file)
        jobs.append(.close(setup.id, file: file.index))
        files[file.index].isComplete = true
        session.touch()
    }

    private mutating func post(_ runs: [MediaMuxer.Run], of file: OpenFile) {
        let seconds = Double(max(0, file.lastMilliseconds)) / 1_000
        for run in runs {
            jobs.append(.write(setup.id, file: file.index, run, seconds: seconds))
        }
    }

    /// Does what is due: gives up gaps, flushes, asks for keyframes, writes the session.
    ///
    /// - Returns: the encodings of which keyframes are wanted.
    mutating func expire(at now: Instant) -> [(PublicationID, position: Int)] {
        var wishes: [(PublicationID, position: Int)] = []
        for id in Array(tracks.keys) {
            tracks[id]?.reader.expire(at: now, into: &events)
            takeEvents(of: id, at: now)
            flush(id, at: now)
            guard let position = tracks[id]?.reader.wish else {
                tracks[id]?.askedAt = nil
                continue
            }
            let due = tracks[id]?.askedAt?.advanced(milliseconds: Self.wishMilliseconds)
            guard due.map({ $0 <= now }) != false else { continue }
            tracks[id]?.askedAt = now
            wishes.append((id, position))
        }
        let due = writtenAt?.advanced(milliseconds: Self.sessionMilliseconds)
        if session.isDirty, due.map({ $0 <= now }) != false { writeSession(at: now) }
        return wishes
    }

    private mutating func flush(_ id: PublicationID, at now: Instant) {
        guard var file = tracks[id]?.file, file.isDirty else { return }
        let due = file.flushedAt?.advanced(milliseconds: Self.flushMilliseconds)
        guard due.map({ $0 <= now }) != false else { return }
        post(file.muxer.flush(), of: file)
        file.flushedAt = now
        file.isDirty = false
        tracks[id]?.file = file
    }

    private mutating func writeSession(at now: Instant) {
        writtenAt = now
        let path = "\(setup.directory)/session.json"
        jobs.append(.replace(setup.id, path: path, session.text(files)))
    }

    /// Ends all files and the record; only `takeJobs` is left to be called.
    mutating func finish(at now: Instant) {
        for id in Array(tracks.keys) { detach(id) }
        session.stopped = unixTime(now)
        writeSession(at: now)
        jobs.append(.end(setup.id))
    }
}
