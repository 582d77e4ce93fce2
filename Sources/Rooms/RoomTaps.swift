package import WorkerInterface

// What reads along in a room and is no participant: a tap has the publications that it should
// have as mirrors in the tap's thread, which is one more worker to the rest of the room.

extension Room {
    /// One recording, a live stream, or a stream that goes out as plain RTP.
    package struct Tap: Sendable {
        package let id: TapID
        /// As it is known outside.
        package let name: String
        /// Of a recording.
        package let directory: String
        /// Unix time, in seconds.
        package let started: Double
        /// Who asked for it; `nil` for the signalling server, or where it began by itself.
        package let by: String?
        package let purpose: TapPurpose
        /// The only streams that it reads; `nil`: all there are and will be.
        let streams: Set<String>?
        /// The call that asked for it has not been answered: if it fails, that is the answer.
        var isAwaited: Bool
        /// The streams whose pictures a live stream shows, as its thread was told.
        var tiles: [String] = []
        /// What its thread was told that it has, by the publications' homes.
        var tracks: [RelayTarget: TapTrack] = [:]
    }

    /// What all rooms share of the tap's thread.
    package struct TapService: Sendable {
        /// Its number among the workers: one beyond the last.
        package var worker: Int
        /// Where recordings go, each into a directory of its own; an absolute path.
        package var directory: String
        /// Taps at one time, of all rooms.
        package var limit: Int
        package var lastID: TapID = 0
        package var open = 0

        package init(worker: Int, directory: String, limit: Int) {
            self.worker = worker
            self.directory = directory
            self.limit = limit
        }
    }

    package var recording: Tap? { recordingTap.flatMap { taps[$0] } }

    mutating func startRecording(
        of streams: [String]?,
        by actor: String?,
        _ shared: inout Shared
    ) throws(Refusal) -> Outcome {
        try check(
            actor,
            may: .record,
            orElse: .seed(5007, "starting a recording needs the permission record")
        )
        for id in streams ?? [] { _ = try stream(id) }
        guard !isInProcess(.recordingStop) else { throw .inProcess(5035, "stopping the recording") }
        guard !isInProcess(.recordingStart) else {
            throw .inProcess(5033, "starting the recording")
        }
        guard recording == nil else {
            throw Refusal(
                code: 5034,
                reason: "already-recording",
                message: "room \"\(name)\" is being recorded already"
            )
        }
        var outcome = Outcome()
        let id = try openRecording(
            of: streams.map { Set($0) },
            by: actor,
            isAwaited: true,
            &shared,
            &outcome.change
        )
        begin(.recordingStart, shared, &outcome)
        outcome.result = .recording(id)
        return outcome
    }

    mutating func stopRecording(
        by actor: String?,
        _ shared: inout Shared
    ) throws(Refusal) -> Outcome {
        try check(
            actor,
            may: .record,
            orElse: .seed(5008, "stopping the recording needs the permission record")
        )
        guard !isInProcess(.recordingStop) else { throw .inProcess(5035, "stopping the recording") }
        guard !isInProcess(.recordingStart) else {
            throw .inProcess(5033, "starting the recording")
        }
        guard let tap = recording else {
            throw Refusal(
                code: 5036,
                reason: "not-recording",
                message: "room \"\(name)\" is not being recorded"
            )
        }
        var outcome = Outcome()
        end(tap: tap.id, &shared, &outcome.change)
        outcome.change.announce(.recordingStopped(tap, reason: nil, by: actor), to: .everyone)
        begin(.recordingStop, shared, &outcome)
        return outcome
    }

    private mutating func openRecording(
        of streams: Set<String>?,
        by actor: String?,
        isAwaited: Bool,
        _ shared: inout Shared,
        _ change: inout Change
    ) throws(Refusal) -> TapID {
        guard var service = shared.taps else {
            throw .wrongState("this server does not record", reason: "no-recorder")
        }
        guard service.open < service.limit else {
            throw .limitReached("recordings", service.limit)
        }
        service.lastID += 1
        service.open += 1
        shared.taps = service
        let id = service.lastID
        let word = RandomText.word(&shared.random)
        let tap = Tap(
            id: id,
            name: "rec-\(word)",
            directory: "\(service.directory)/"
                + RecordingName.directory(room: name, at: shared.unixTime, word: word),
            started: shared.unixTime,
            by: actor,
            purpose: .recording,
            streams: streams,
            isAwaited: isAwaited
        )
        recordingTap = id
        begin(tap, in: service.worker, &change)
        return id
    }

    /// Keeps a tap, and has its thread make the place ready where its media goes.
    mutating func begin(_ tap: Tap, in worker: Int, _ change: inout Change) {
        taps[tap.id] = tap
        open(.tap(tap.id), for: "", &change)
        let setup = TapSetup(
            id: tap.id,
            name: tap.name,
            room: name,
            directory: tap.directory,
            started: tap.started,
            purpose: tap.purpose
        )
        change.tell(worker, .tap(.open(setup)))
        for member in members {
            let note = TapNote.joined(participant: member.id, name: member.name ?? "")
            change.tell(worker, .tap(.note(tap.id, note)))
        }
        if !talkers.noted.isEmpty {
            change.tell(worker, .tap(.note(tap.id, .talkers(talkers.noted))))
        }
    }

    /// Takes a tap's publications away and forgets it; the thread keeps what it has.
    mutating func end(tap id: TapID, _ shared: inout Shared, _ change: inout Change) {
        guard let tap = taps.removeValue(forKey: id), let worker = shared.taps?.worker else {
            return
        }
        change.tell(worker, .tap(.close(id)))
        for home in tap.tracks.keys { leave(home, in: worker, &change) }
        if recordingTap == id { recordingTap = nil }
        free(.tap(id), &change)
        switch tap.purpose {
        case .recording: shared.taps?.open -= 1
        case .streaming: shared.streaming.open -= 1
        case .output: shared.outputs.open -= 1
        }
    }

    /// Ends all taps because the room does.
    mutating func endTaps(
        _ reason: String,
        by actor: String?,
        _ shared: inout Shared,
        _ change: inout Change
    ) {
        for id in taps.keys.sorted() {
            guard let tap = taps[id] else { continue }
            end(tap: id, &shared, &change)
            announceEnd(of: tap, reason, by: actor, &change)
        }
    }

    private func announceEnd(
        of tap: Tap,
        _ reason: String?,
        by actor: String?,
        _ change: inout Change
    ) {
        let given = reason ?? EndReason.requested
        switch tap.purpose {
        case .recording:
            change.announce(.recordingStopped(tap, reason: reason, by: actor), to: .everyone)
        case .streaming where tap.isAwaited: break
        case .streaming:
            change.announce(.streamingStopped(tap, reason: given, by: actor), to: .everyone)
        case .output:
            change.announce(.outputStopped(tap, reason: given, by: actor), to: .everyone)
        }
    }

    /// Brings the taps to what there is to read, and tells them what has happened.
    ///
    /// At the end of each call and notice, before mirrors are settled.
    mutating func settleTaps(_ shared: inout Shared, _ change: inout Change) {
        guard let worker = shared.taps?.worker, !isClosed else { return }
        var notes = change.announcements.compactMap(\.news.tapNote)
        // As often as people are told, so that a noisy room does not fill the record.
        let talking = talkers.told.common.filter(\.isTalking).map(\.participant)
        if talkers.noted != talking {
            talkers.noted = talking
            notes.append(.talkers(talking))
        }
        for note in notes {
            for id in taps.keys.sorted() { change.tell(worker, .tap(.note(id, note))) }
        }
        if settings.autoRecord, !hasAutoRecorded, !streams.isEmpty {
            hasAutoRecorded = true
            // Where it cannot be, the room goes on without: nobody waits for an answer.
            if recording == nil {
                _ = try? openRecording(of: nil, by: nil, isAwaited: false, &shared, &change)
            }
        }
        for id in taps.keys.sorted() { settle(tap: id, in: worker, &shared, &change) }
    }

    private mutating func settle(
        tap id: TapID,
        in worker: Int,
        _ shared: inout Shared,
        _ change: inout Change
    ) {
        let shown = settleTiles(of: id)
        guard let tap = taps[id] else { return }
        if let output = tap.output, streams[output.stream] == nil {
            end(tap: id, &shared, &change)
            return announceEnd(of: tap, "stream-ended", by: nil, &change)
        }
        var gone = tap.tracks
        for stream in streamsInOrder where tap.streams?.contains(stream.id) != false {
            for kind in MediaKind.allCases where tap.reads(stream, kind) {
                guard let home = stream.home(kind) else { continue }
                guard gone.removeValue(forKey: home) == nil else { continue }
                // Without a handle left, this one is not read; the others are.
                guard let mirror = join(home, in: worker, from: nil, &shared, &change) else {
                    continue
                }
                let track = TapTrack(
                    publication: mirror,
                    participant: stream.participant,
                    name: participants[stream.participant]?.name ?? "",
                    stream: stream.id,
                    source: stream.isScreen ? .screen : .usual(for: kind),
                    kind: kind
                )
                taps[id]?.tracks[home] = track
                tellWanted(of: home, &change)
                change.tell(worker, .tap(.attach(id, track)))
            }
        }
        for (home, track) in gone.sorted(by: {
            $0.value.publication.index < $1.value.publication.index
        }) {
            taps[id]?.tracks[home] = nil
            tellWanted(of: home, &change)
            if tap.target != nil, self.track(of: home)?.gate != true {
                change.tell(worker, .tap(.forget(id, track.publication)))
            }
            change.tell(worker, .tap(.detach(id, track.publication)))
            leave(home, in: worker, &change)
        }
        if let shown { change.tell(worker, .tap(.tiles(id, shown))) }
    }

    /// A tap's first packet is on disk, or at the server.
    mutating func begun(tap id: TapID, _ change: inout Change) {
        guard let tap = taps[id] else { return }
        switch tap.purpose {
        case .recording: change.announce(.recordingStarted(tap), to: .everyone)
        case .streaming:
            taps[id]?.isAwaited = false
            change.announce(.streamingStarted(tap), to: .everyone)
        case .output: break  // Its call has told of it.
        }
    }

    /// A tap has ended by itself.
    mutating func ended(
        tap id: TapID,
        _ reason: String?,
        _ shared: inout Shared,
        _ change: inout Change
    ) {
        guard let tap = taps[id] else { return }
        end(tap: id, &shared, &change)
        guard !tap.isAwaited else { return }
        announceEnd(of: tap, reason, by: nil, &change)
    }
}

extension Room.News {
    /// What goes into the record of the room.
    fileprivate var tapNote: TapNote? {
        switch self {
        case .joined(let participant, again: false):
            .joined(participant: participant.id, name: participant.name ?? "")
        case .left(let participant, _): .left(participant: participant.id)
        default: nil
        }
    }
}

/// What a recording's directory is called.
enum RecordingName {
    /// The room, when it began in UTC, and a word that makes it the only one.
    ///
    /// An id has no slash, and a name that ends like this is neither `.` nor `..`; one that
    /// began with a dot would be hidden.
    static func directory(room: String, at unixTime: Double, word: String) -> String {
        let name = room.hasPrefix(".") ? "_\(room.dropFirst())" : room
        return "\(name)-\(stamp(unixTime))-\(word)"
    }

    /// `20261121T192238Z` (ISO 8601, basic format).
    static func stamp(_ unixTime: Double) -> String {
        let range = 0.0...253_402_300_799.0
        let seconds = Int(min(max(unixTime, range.lowerBound), range.upperBound))
        let (days, time) = seconds.quotientAndRemainder(dividingBy: 86_400)
        // Days to a date by 400-year eras that begin in March (H. Hinnant, "chrono-compatible
        // low-level date algorithms").
        let shifted = days + 719_468
        let era = shifted / 146_097
        let day = shifted % 146_097
        let yearOfEra = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365
        let dayOfYear = day - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let month = (5 * dayOfYear + 2) / 153
        let dayOfMonth = dayOfYear - (153 * month + 2) / 5 + 1
        let calendarMonth = month < 10 ? month + 3 : month - 9
        let year = yearOfEra + era * 400 + (calendarMonth <= 2 ? 1 : 0)
        func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let date = String(repeating: "0", count: max(0, 4 - "\(year)".count)) + "\(year)"
        return date + two(calendarMonth) + two(dayOfMonth) + "T" + two(time / 3_600)
            + two(time / 60 % 60) + two(time % 60) + "Z"
    }
}
