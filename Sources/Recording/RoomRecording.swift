import JSON
package import RTP
package import SFU
package import WorkerInterface

/// State of one recording on the recorder thread: tracks, their files, and the session record.
///
/// It produces bytes and jobs for the disk thread; it accesses neither files nor a clock.
package struct RoomRecording {
    /// Track whose recording ended while the room's recording continues.
    package struct TrackEnd {
        package var track: OutputTrack
        package var reason: String
    }

    package let setup: OutputSetup
    private let limits: RecordingLimits
    /// Unix time minus the monotonic clock, in seconds.
    private let epoch: Double
    private var tracks: [PublicationID: RecordedTrack] = [:]
    package private(set) var files: [RecordingFile] = []
    /// Number of files by their base name.
    private var names: [String: Int] = [:]
    /// Number of files begun by each participant's tracks.
    private var filesOfParticipants: [String: Int] = [:]
    private var session: SessionRecord
    private var writtenAt: Instant?
    private var events: [TrackEvent] = []
    /// Jobs for the disk thread, in order.
    private var jobs: [DiskWriter.Job] = []
    /// Tracks whose recording ended since the last call of `takeEnds`.
    private var ends: [TrackEnd] = []
    /// Whether a track without a file needed one after the limit of files was reached.
    package private(set) var isFull = false
    /// Largest number of listed gaps of all tracks; further ones are not listed.
    var gapLimit = 100_000
    private var gaps = 0
    /// Whether a gap was not listed, and whether `takeGapsEnd` has reported so.
    private var leavesOutGaps = false
    private var hasToldGapsEnd = false

    /// Longest time that the muxer holds recorded media back from the disk.
    private static let flushMilliseconds: Int64 = 500
    private static let keyframeRequestMilliseconds: Int64 = 1_000

    package init(_ setup: OutputSetup, _ limits: RecordingLimits, at now: Instant, unixTime: Double)
    {
        self.setup = setup
        self.limits = limits
        epoch = unixTime - Double(now.nanoseconds) / 1e9
        session = SessionRecord(setup)
    }

    /// Returns the jobs since the last call.
    package mutating func takeJobs() -> [DiskWriter.Job] {
        defer { jobs = [] }
        return jobs
    }

    /// Returns the tracks whose recording ended since the last call.
    package mutating func takeEnds() -> [TrackEnd] {
        defer { ends = [] }
        return ends
    }

    /// Returns `true` once, after the first gap that was not listed.
    package mutating func takeGapsEnd() -> Bool {
        guard leavesOutGaps, !hasToldGapsEnd else { return false }
        hasToldGapsEnd = true
        return true
    }

    /// Files as written so far, without their lengths on disk.
    package var shownFiles: [OutputFile] { files.map { $0.shown(in: setup.directory) } }

    private func unixTime(_ instant: Instant) -> Double {
        epoch + Double(instant.nanoseconds) / 1e9
    }
}

// Input from the room.
extension RoomRecording {
    package mutating func attach(_ track: OutputTrack, isOpen: Bool, at now: Instant) {
        tracks[track.publication] = RecordedTrack(track)
        if !isOpen { note(track, "muted", at: now) }
    }

    package mutating func detach(_ id: PublicationID) {
        closeFile(of: id)
        tracks[id] = nil
    }

    package mutating func note(_ note: OutputNote, at now: Instant) {
        session.note(note, at: unixTime(now))
    }

    package mutating func gate(_ id: PublicationID, open: Bool, at now: Instant) {
        guard let track = tracks[id]?.track else { return }
        if !open { tracks[id]?.reader.mute(at: now) }
        note(track, open ? "unmuted" : "muted", at: now)
    }

    private mutating func note(
        _ track: OutputTrack,
        _ type: String,
        at now: Instant,
        _ more: [String: JSON] = [:]
    ) {
        var members = more
        members["participant"] = .string(track.participant)
        members["stream"] = .string(track.stream)
        members["kind"] = track.kind == .audio ? "audio" : "video"
        session.note(type, at: unixTime(now), members)
    }

    package mutating func receive(_ packet: TapPacket, at now: Instant) {
        guard tracks[packet.publication]?.end == nil else { return }
        tracks[packet.publication]?.reader.receive(packet, at: now, into: &events)
        takeEvents(of: packet.publication, at: now)
    }

    private mutating func takeEvents(of id: PublicationID, at now: Instant) {
        guard !events.isEmpty else { return }
        for event in events { take(event, of: id, at: now) }
        events.removeAll(keepingCapacity: true)
        guard let track = tracks[id], track.refusedSince != nil, track.file == nil else { return }
        tracks[id]?.reader.restart()
    }

    private mutating func take(_ event: TrackEvent, of id: PublicationID, at now: Instant) {
        switch event {
        case .gap(let start, let end, let reason):
            guard tracks[id]?.file != nil else { return }
            noteGap(of: id, from: start, to: end, reason.rawValue)
        case .sample(let sample): write(sample, of: id, at: now)
        }
    }

    /// Lists a gap with the track's latest file.
    private mutating func noteGap(
        of id: PublicationID,
        from start: Instant,
        to end: Instant,
        _ reason: String
    ) {
        guard let track = tracks[id], let index = track.lastFile,
            track.gaps < RecordedTrack.gapLimit
        else { return }
        leavesOutGaps = gaps >= gapLimit
        guard !leavesOutGaps else { return }
        gaps += 1
        tracks[id]?.gaps += 1
        files[index].gaps.append(
            OutputGap(start: unixTime(start), end: unixTime(end), reason: reason)
        )
        session.touch()
    }

    private mutating func write(
        _ sample: TrackEvent.Sample,
        of id: PublicationID,
        at now: Instant
    ) {
        guard tracks[id]?.end == nil else { return }
        if let format = sample.format {
            noteSize(format, of: id, at: sample.instant)
            prepareFile(for: format, of: id, from: sample.instant, at: now)
        }
        guard var file = tracks[id]?.file else { return }
        let milliseconds = file.milliseconds(of: sample.instant)
        guard
            file.muxer.add(sample.bytes, milliseconds: milliseconds, isKeyframe: sample.isKeyframe)
        else { return refuse(id, captured: sample.instant, at: now) }
        file.lastMilliseconds = milliseconds
        file.isDirty = true
        tracks[id]?.file = file
        files[file.index].duration = Double(milliseconds) / 1_000
    }

    /// Counts a rejection by the muxer: the file ends, and another continues with a keyframe.
    private mutating func refuse(
        _ id: PublicationID,
        captured instant: Instant,
        at now: Instant
    ) {
        let isOnceTooOften = tracks[id]?.refuse(at: instant) == true
        closeFile(of: id)
        if isOnceTooOften { stopRecording(id, .refused, at: now) }
    }

    private mutating func stopRecording(
        _ id: PublicationID,
        _ end: RecordedTrack.End,
        at now: Instant
    ) {
        guard let track = tracks[id]?.track, tracks[id]?.end == nil else { return }
        closeFile(of: id)
        tracks[id]?.stopRecording(end)
        ends.append(TrackEnd(track: track, reason: end.rawValue))
        note(track, "ended", at: now, ["reason": .string(end.rawValue)])
    }

    private mutating func noteSize(_ format: FrameFormat, of id: PublicationID, at now: Instant) {
        guard format.width > 0, let track = tracks[id],
            track.size != (format.width, format.height), track.sizes < RecordedTrack.sizeLimit
        else { return }
        tracks[id]?.sizes += 1
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
    /// Ensures that a file is open that can hold `format`; closes one that cannot.
    private mutating func prepareFile(
        for format: FrameFormat,
        of id: PublicationID,
        from start: Instant,
        at now: Instant
    ) {
        if let file = tracks[id]?.file {
            guard !file.format.canContinue(with: format) else { return }
            closeFile(of: id)
        }
        guard let track = tracks[id], mayBeginFile(for: track) else {
            return stopRecording(id, .tooManyFiles, at: now)
        }
        guard files.count < limits.files else {
            isFull = true
            return stopRecording(id, .tooManyFiles, at: now)
        }
        guard let muxer = MediaMuxer(format) else {
            return refuse(id, captured: start, at: now)
        }
        if let since = tracks[id]?.takeRefusal() {
            noteGap(of: id, from: since, to: start, "refused")
        }
        let index = begin(format, of: track.track, at: start)
        tracks[id]?.files += 1
        filesOfParticipants[track.track.participant, default: 0] += 1
        tracks[id]?.lastFile = index
        tracks[id]?.file = RecordedTrack.OpenFile(
            muxer: muxer,
            index: index,
            start: start,
            format: format
        )
    }

    /// Whether a track may begin another file.
    ///
    /// A track may use a tenth of the recording's files, and all tracks of a participant a fifth.
    ///
    /// A participant may join under a new id each time, which evades these shares. The last half of
    /// the files is therefore reserved for tracks without a file, a few per participant, so that
    /// using up the first half takes no newcomer's files.
    private func mayBeginFile(for track: RecordedTrack) -> Bool {
        let ofParticipant = filesOfParticipants[track.track.participant] ?? 0
        guard ofParticipant < max(1, limits.files / 5) else { return false }
        guard files.count < limits.files / 2 else {
            return track.files == 0 && ofParticipant < max(4, limits.files / 100)
        }
        return track.files < max(1, limits.files / 10)
    }

    /// Adds a file to the recording; returns its index.
    private mutating func begin(
        _ format: FrameFormat,
        of track: OutputTrack,
        at start: Instant
    ) -> Int {
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
        session.touchFiles()
        jobs.append(.create(setup.id, file: index, path: "\(setup.directory)/\(name)"))
        return index
    }

    /// Returns a new file name.
    ///
    /// Ids contain no slash; a leading dot is replaced, as it would hide the file.
    private mutating func name(of track: OutputTrack, _ codec: Codec) -> String {
        let kind = track.kind == .audio ? "audio" : "video"
        var stem = "\(track.participant)-\(track.stream)-\(track.source.rawValue)-\(kind)"
        if stem.hasPrefix(".") { stem = "_\(stem.dropFirst())" }
        let number = (names[stem] ?? 0) + 1
        names[stem] = number
        return "\(stem)-\(number).\(MediaMuxer.fileExtension(for: codec))"
    }

    private mutating func closeFile(of id: PublicationID) {
        guard let file = tracks[id]?.file else { return }
        tracks[id]?.file = nil
        post(file.muxer.finish(), of: file)
        jobs.append(.close(setup.id, file: file.index))
        files[file.index].isComplete = true
        session.touchFiles()
    }

    private mutating func post(_ runs: [MediaMuxer.Run], of file: RecordedTrack.OpenFile) {
        let seconds = Double(file.lastMilliseconds ?? 0) / 1_000
        for run in runs {
            jobs.append(.write(setup.id, file: file.index, run, seconds: seconds))
        }
    }

    /// Runs timers: abandons gaps, flushes muxers, requests keyframes, writes the session record.
    ///
    /// - Returns: the encodings that need a keyframe.
    package mutating func expire(at now: Instant) -> [(PublicationID, position: Int)] {
        var wishes: [(PublicationID, position: Int)] = []
        for id in Array(tracks.keys) {
            tracks[id]?.reader.expire(at: now, into: &events)
            takeEvents(of: id, at: now)
            flush(id, at: now)
            guard let position = tracks[id]?.reader.neededKeyframe else {
                tracks[id]?.askedAt = nil
                continue
            }
            let due = tracks[id]?.askedAt?.advanced(milliseconds: Self.keyframeRequestMilliseconds)
            guard due.map({ $0 <= now }) != false else { continue }
            tracks[id]?.askedAt = now
            wishes.append((id, position))
        }
        let passed = writtenAt.map { now.milliseconds(since: $0) } ?? .max
        if session.isDue(after: passed, others: files.count + gaps) { writeSession(at: now) }
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
        jobs.append(.replace(setup.id, path: path, session.snapshot(files)))
    }

    /// Closes all files and the session record; afterwards only `takeJobs` may be called.
    package mutating func finish(at now: Instant) {
        for id in Array(tracks.keys) { detach(id) }
        session.stopped = unixTime(now)
        writeSession(at: now)
        jobs.append(.end(setup.id))
    }
}
