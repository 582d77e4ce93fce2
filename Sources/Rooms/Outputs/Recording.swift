import WorkerInterface

// Recording of a room, at a caller's request or automatic.

extension Room {
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
        guard !isInProcess(.recordingStop) else { throw .inProcess(5035, "recording.stop") }
        guard !isInProcess(.recordingStart) else { throw .inProcess(5033, "recording.start") }
        try checkHasNotEnded()
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
        guard !isInProcess(.recordingStop) else { throw .inProcess(5035, "recording.stop") }
        guard !isInProcess(.recordingStart) else { throw .inProcess(5033, "recording.start") }
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

    mutating func openRecording(
        of streams: Set<String>?,
        by actor: String?,
        isAwaited: Bool,
        _ transaction: inout RoomTransaction
    ) throws(CallError) -> OutputID {
        guard var service = transaction.shared.taps else {
            throw .noRecorder
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
        begin(tap, in: service.worker, &transaction)
        return id
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
