package import WorkerInterface

// Taps: recordings, live streams and RTP forwards, which receive media without being participants.
// A tap gets its publications as mirrors in the tap thread, which the room treats as one more
// worker.

extension Room {
    /// Recording, live stream or RTP forward of a room.
    package struct Tap: Sendable {
        package let id: OutputID
        /// Public name.
        package let name: String
        /// Directory of a recording; empty for other taps.
        package let directory: String
        /// Unix time, in seconds.
        package let started: Double
        /// Participant that asked for it; `nil` for the signalling server or automatic recording.
        package let by: String?
        package let purpose: OutputPurpose
        /// Streams that it is limited to; `nil`: all present and future ones.
        let streams: Set<String>?
        /// Whether the call that asked for it is still unanswered; a failure is then its answer.
        var isAwaited: Bool
        /// Streams in the tiles of a live stream, as last sent to the tap thread.
        var tiles: [String] = []
        /// Tracks as last sent to the tap thread, by the publications' homes.
        var tracks: [RelayTarget: OutputTrack] = [:]
    }

    /// Settings, limits and counters of the tap thread, shared by all rooms.
    package struct TapService: Sendable {
        /// Worker number of the tap thread: one beyond the last worker.
        package var worker: Int
        /// Absolute path under which each recording gets a directory of its own.
        package var directory: String
        /// Concurrent recordings of all rooms.
        package var limit: Int
        package var lastID: OutputID = 0
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
        _ transaction: inout RoomTransaction
    ) throws(CallError) -> Result {
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
            throw CallError(
                code: 5034,
                reason: "already-recording",
                message: "room \"\(name)\" is being recorded already"
            )
        }
        let id = try openRecording(
            of: streams.map { Set($0) },
            by: actor,
            isAwaited: true,
            &transaction
        )
        begin(.recordingStart, &transaction)
        return .recording(id)
    }

    mutating func stopRecording(
        by actor: String?,
        _ transaction: inout RoomTransaction
    ) throws(CallError) {
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
            throw CallError(
                code: 5036,
                reason: "not-recording",
                message: "room \"\(name)\" is not being recorded"
            )
        }
        end(tap: tap.id, &transaction)
        transaction.announce(.recordingStopped(tap, reason: nil, by: actor), to: .everyone)
        begin(.recordingStop, &transaction)
    }

    private mutating func openRecording(
        of streams: Set<String>?,
        by actor: String?,
        isAwaited: Bool,
        _ transaction: inout RoomTransaction
    ) throws(CallError) -> OutputID {
        guard var service = transaction.shared.taps else {
            throw .wrongState("this server does not record", reason: "no-recorder")
        }
        guard service.open < service.limit else {
            throw .limitReached("recordings", service.limit)
        }
        service.lastID += 1
        service.open += 1
        transaction.shared.taps = service
        let id = service.lastID
        let word = RandomText.word(&transaction.shared.random)
        let tap = Tap(
            id: id,
            name: "rec-\(word)",
            directory: "\(service.directory)/"
                + RecordingName.directory(room: name, at: transaction.shared.unixTime, word: word),
            started: transaction.shared.unixTime,
            by: actor,
            purpose: .recording,
            streams: streams,
            isAwaited: isAwaited
        )
        recordingTap = id
        begin(tap, in: service.worker, &transaction)
        return id
    }

    /// Adds a tap and makes its thread prepare the output.
    mutating func begin(_ tap: Tap, in worker: Int, _ transaction: inout RoomTransaction) {
        taps[tap.id] = tap
        open(.tap(tap.id), for: "", &transaction)
        let setup = OutputSetup(
            id: tap.id,
            name: tap.name,
            room: name,
            directory: tap.directory,
            started: tap.started,
            purpose: tap.purpose
        )
        transaction.tell(worker, .tap(.open(setup)))
        for member in members {
            let note = OutputNote.joined(participant: member.id, name: member.name ?? "")
            transaction.tell(worker, .tap(.note(tap.id, note)))
        }
        if !talkers.noted.isEmpty {
            transaction.tell(worker, .tap(.note(tap.id, .talkers(talkers.noted))))
        }
    }

    /// Detaches a tap's publications and removes it; its thread keeps what it has received.
    mutating func end(tap id: OutputID, _ transaction: inout RoomTransaction) {
        guard let tap = taps.removeValue(forKey: id), let worker = transaction.shared.taps?.worker
        else {
            return
        }
        transaction.tell(worker, .tap(.close(id)))
        for home in tap.tracks.keys { leave(home, in: worker, &transaction) }
        if recordingTap == id { recordingTap = nil }
        free(.tap(id), &transaction)
        switch tap.purpose {
        case .recording: transaction.shared.taps?.open -= 1
        case .streaming: transaction.shared.streaming.open -= 1
        case .output: transaction.shared.outputs.open -= 1
        }
    }

    /// Ends all taps when the room closes.
    mutating func endTaps(
        _ reason: String,
        by actor: String?,
        _ transaction: inout RoomTransaction
    ) {
        for id in taps.keys.sorted() {
            guard let tap = taps[id] else { continue }
            end(tap: id, &transaction)
            announceEnd(of: tap, reason, by: actor, &transaction)
        }
    }

    private func announceEnd(
        of tap: Tap,
        _ reason: String?,
        by actor: String?,
        _ transaction: inout RoomTransaction
    ) {
        let given = reason ?? EndReason.requested
        switch tap.purpose {
        case .recording:
            transaction.announce(.recordingStopped(tap, reason: reason, by: actor), to: .everyone)
        case .streaming where tap.isAwaited: break
        case .streaming:
            transaction.announce(.streamingStopped(tap, reason: given, by: actor), to: .everyone)
        case .output:
            transaction.announce(.outputStopped(tap, reason: given, by: actor), to: .everyone)
        }
    }

    /// Updates the taps' tracks and sends them notes of events.
    ///
    /// Called at the end of each call and notice, before mirrors are reconciled.
    mutating func reconcileTaps(_ transaction: inout RoomTransaction) {
        guard let worker = transaction.shared.taps?.worker, !isClosed else { return }
        var notes = transaction.change.announcements.compactMap(\.news.tapNote)
        // Follows the announced lists, so that a noisy room does not fill the record.
        let talking = talkers.announced.common.filter(\.isTalking).map(\.participant)
        if talkers.noted != talking {
            talkers.noted = talking
            notes.append(.talkers(talking))
        }
        for note in notes {
            for id in taps.keys.sorted() { transaction.tell(worker, .tap(.note(id, note))) }
        }
        if settings.autoRecord, !hasAutoRecorded, !streams.isEmpty {
            hasAutoRecorded = true
            // If recording is not possible, the room continues without it; no caller awaits the
            // result.
            if recording == nil {
                _ = try? openRecording(of: nil, by: nil, isAwaited: false, &transaction)
            }
        }
        for id in taps.keys.sorted() { reconcile(tap: id, in: worker, &transaction) }
    }

    private mutating func reconcile(
        tap id: OutputID,
        in worker: Int,
        _ transaction: inout RoomTransaction
    ) {
        let shown = reconcileTiles(of: id)
        guard let tap = taps[id] else { return }
        if let output = tap.output, streams[output.stream] == nil {
            end(tap: id, &transaction)
            return announceEnd(of: tap, "stream-ended", by: nil, &transaction)
        }
        var gone = tap.tracks
        for stream in streamsInOrder where tap.streams?.contains(stream.id) != false {
            for kind in MediaKind.allCases where tap.reads(stream, kind) {
                guard let home = stream.home(kind) else { continue }
                guard gone.removeValue(forKey: home) == nil else { continue }
                // Without a free handle, only this publication is left out.
                guard let mirror = join(home, in: worker, from: nil, &transaction) else {
                    continue
                }
                let track = OutputTrack(
                    publication: mirror,
                    participant: stream.participant,
                    name: participants[stream.participant]?.name ?? "",
                    stream: stream.id,
                    source: stream.isScreen ? .screen : .defaultSource(for: kind),
                    kind: kind
                )
                taps[id]?.tracks[home] = track
                announceDemand(of: home, &transaction)
                transaction.tell(worker, .tap(.attach(id, track)))
            }
        }
        for (home, track) in gone.sorted(by: {
            $0.value.publication.index < $1.value.publication.index
        }) {
            taps[id]?.tracks[home] = nil
            announceDemand(of: home, &transaction)
            if tap.target != nil, self.track(of: home)?.gate != true {
                transaction.tell(worker, .tap(.forget(id, track.publication)))
            }
            transaction.tell(worker, .tap(.detach(id, track.publication)))
            leave(home, in: worker, &transaction)
        }
        if let shown { transaction.tell(worker, .tap(.tiles(id, shown))) }
    }

    /// Handles the first packet of a tap on disk or at the server.
    mutating func begun(tap id: OutputID, _ transaction: inout RoomTransaction) {
        guard let tap = taps[id] else { return }
        switch tap.purpose {
        case .recording: transaction.announce(.recordingStarted(tap), to: .everyone)
        case .streaming:
            taps[id]?.isAwaited = false
            transaction.announce(.streamingStarted(tap), to: .everyone)
        case .output: break  // Announced by the call itself.
        }
    }

    /// Handles a tap that has ended by itself.
    mutating func ended(
        tap id: OutputID,
        _ reason: String?,
        _ transaction: inout RoomTransaction
    ) {
        guard let tap = taps[id] else { return }
        end(tap: id, &transaction)
        guard !tap.isAwaited else { return }
        announceEnd(of: tap, reason, by: nil, &transaction)
    }
}

extension Room.Event {
    /// Note for the tap's record of the room, if the event belongs there.
    fileprivate var tapNote: OutputNote? {
        switch self {
        case .joined(let participant, again: false):
            .joined(participant: participant.id, name: participant.name ?? "")
        case .left(let participant, _): .left(participant: participant.id)
        default: nil
        }
    }
}

/// Naming of recording directories.
enum RecordingName {
    /// Returns the room's name, the UTC start time and a random word that makes it unique.
    ///
    /// A room's name has no slash, and with this suffix the result is neither `.` nor `..`. A
    /// leading dot is replaced, because it would hide the directory.
    static func directory(room: String, at unixTime: Double, word: String) -> String {
        let name = room.hasPrefix(".") ? "_\(room.dropFirst())" : room
        return "\(name)-\(stamp(unixTime))-\(word)"
    }

    /// Formats a time like `20261121T192238Z` (ISO 8601, basic format).
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
