import Contract
import JSON
import RTP
import Rooms
import WorkerInterface

/// Catalog of present and past recordings, for `recording.list`.
struct RecordingCatalog {
    struct Entry {
        var tap: Room.Tap
        var room: String
        var state = RecordingInfo.State.starting
        /// Reason of its end, if nobody asked for it.
        var reason: String?
        var files: [OutputFile] = []
    }

    private let endedLimit: Int
    private var entries: [OutputID: Entry] = [:]
    /// Ended recordings, in the order of their end.
    private var ended: [OutputID] = []

    init(endedLimit: Int) { self.endedLimit = endedLimit }

    subscript(id: OutputID) -> Entry? {
        get { entries[id] }
        set { entries[id] = newValue }
    }

    /// Marks a recording as stopped; beyond the limit, the one that ended first is removed.
    mutating func end(_ id: OutputID, reason: String?, files: [OutputFile]) {
        guard let entry = entries[id], entry.state != .stopped else { return }
        entries[id]?.state = .stopped
        entries[id]?.reason = reason
        entries[id]?.files = files
        ended.append(id)
        if ended.count > endedLimit { entries[ended.removeFirst()] = nil }
    }

    /// Numbers of recordings by state.
    var states: [RecordingInfo.State: Int] {
        entries.values.reduce(into: [:]) { $0[$1.state, default: 0] += 1 }
    }

    /// All entries, in the order in which the recordings began.
    var inOrder: [Entry] { entries.sorted { $0.key < $1.key }.map(\.value) }

    func entry(named name: String) -> Entry? { entries.values.first { $0.tap.name == name } }
}

extension RecordingCatalog.Entry {
    var bytes: Int { files.reduce(0) { $0 + $1.bytes } }

    /// Returns a page of the files; a cursor is the number of files up to there.
    func page(limit: PageLimit?, after: PageCursor?) throws(IPCError) -> Page {
        try Page.numbered(
            files.enumerated(),
            by: { UInt64($0.offset + 1) },
            limit: limit,
            after: after
        ) { JSON.encoded(RecordedFile($0.element)) }
    }

    /// Returns the first files, and the cursor behind them if there are more.
    var firstPage: (files: [RecordedFile], next: PageCursor?) {
        guard let page = try? page(limit: nil, after: nil) else { return ([], nil) }
        return (
            files.prefix(page.count).map(RecordedFile.init),
            page.next.flatMap { PageCursor(rawValue: $0) }
        )
    }
}

/// Pending `recording.stopped` event that waits for the tap thread's list of files.
struct StoppedRecording: Sendable {
    var tap: Room.Tap
    var reason: String?
    var by: String?
    var to: Audience
    var room = ""
    var time = 0.0
}

extension Method {
    static let recordingMethods = [
        Method(RecordingStart.self) { plane, params, caller, now throws(IPCError) in
            try plane.start(params, for: caller, at: now)
        },
        Method(RecordingStop.self, in: \.room) { .stopRecording(by: $0.by?.rawValue) },
        Method(RecordingList.self) { plane, params, caller, _ throws(IPCError) in
            try plane.list(params, for: caller)
        },
        Method(RecordingFiles.self) { plane, params, caller, _ throws(IPCError) in
            let recordings = plane.roomOutputs.recordings
            guard let entry = recordings.entry(named: params.recording.rawValue) else {
                throw .noSuchRecording(params.recording)
            }
            let page = try entry.page(limit: params.limit, after: params.after)
            plane.answer(EncodedPage(name: "files", page: page), to: caller)
        },
    ]
}

extension ControlPlane {
    fileprivate mutating func start(
        _ params: RecordingStart.Params,
        for caller: Caller,
        at now: Instant
    ) throws(IPCError) {
        let start = Room.Call.startRecording(
            streams: params.streams?.map(\.rawValue),
            by: params.by?.rawValue
        )
        let outcome = try apply(start, in: params.room)
        conclude(outcome, in: params.room.rawValue, at: now) { _ in
            guard case .recording(let tap) = outcome.result else { return .none }
            return .recording(caller, tap)
        }
    }

    fileprivate mutating func list(
        _ params: RecordingList.Params,
        for caller: Caller
    ) throws(IPCError) {
        let entries = roomOutputs.recordings.inOrder.filter {
            params.room == nil || $0.room == params.room?.rawValue
        }
        let page = try Page.numbered(
            entries,
            by: \.tap.id,
            limit: params.limit,
            after: params.after
        ) { JSON.encoded(RecordingInfo($0)) }
        answer(EncodedPage(name: "recordings", page: page), to: caller)
    }

    /// Numbers a `recording.stopped` event; its line is encoded when the files are known.
    mutating func event(_ stopped: StoppedRecording, in room: String) -> Operation.Event {
        var stopped = stopped
        stopped.time = shared.unixTime
        stopped.room = room
        return Operation.Event(
            seq: journals.number(room),
            line: EventLine(name: RecordingStopped.event, line: []),
            stopped: stopped
        )
    }

    func finished(_ event: Operation.Event) -> Operation.Event {
        if let departed = event.departed {
            let line = departed.encoded(seq: event.seq)
            return Operation.Event(
                seq: event.seq,
                line: EventLine(name: event.line.name, line: line)
            )
        }
        guard let stopped = event.stopped else { return event }
        let entry = roomOutputs.recordings[stopped.tap.id]
        let page = entry?.firstPage
        let data = RecordingStopped(
            recording: RecordingID(stopped.tap.name),
            directory: stopped.tap.directory,
            reason: stopped.reason ?? entry?.reason,
            by: ParticipantID(stopped.by),
            count: entry?.files.count ?? 0,
            bytes: entry?.bytes ?? 0,
            files: page?.files ?? [],
            next: page?.next
        )
        let line = IPCEvent.encoded(
            data,
            room: RoomID(stopped.room),
            seq: Int64(event.seq),
            time: stopped.time,
            audience: stopped.to
        )
        return Operation.Event(
            seq: event.seq,
            line: EventLine(name: RecordingStopped.event, line: line)
        )
    }

    /// Returns the reply to `recording.start`, once directory and files are ready or have failed.
    func recordingReply(of id: OutputID, to caller: Caller) -> [UInt8] {
        guard let entry = roomOutputs.recordings[id], entry.state != .stopped,
            // The room or its live event may have ended meanwhile.
            rooms[entry.room]?.room.taps[id] != nil
        else {
            return IPCReply.encoded(
                id: caller.request,
                error: .recordingFailed(roomOutputs.recordings[id]?.reason ?? "ended")
            )
        }
        let result = RecordingStart.Result(
            recording: RecordingID(entry.tap.name),
            directory: entry.tap.directory
        )
        return IPCReply.encoded(id: caller.request, result: result)
    }
}

extension IPCError {
    /// Makes the error of a recording that could not begin; `cause` is the recorder's reason word.
    fileprivate static func recordingFailed(_ cause: String) -> Self {
        Self(
            code: 4507,
            message: "the recording could not begin: \(cause)",
            reason: "recording-failed",
            details: ["cause": .string(cause)]
        )
    }
}

extension RecordingInfo {
    fileprivate init(_ entry: RecordingCatalog.Entry) {
        let page = entry.firstPage
        self.init(
            recording: RecordingID(entry.tap.name),
            room: RoomID(entry.room),
            directory: entry.tap.directory,
            state: entry.state,
            started: entry.tap.started,
            count: entry.files.count,
            bytes: entry.bytes,
            files: page.files,
            next: page.next
        )
    }
}

extension RecordingStarted {
    init(_ tap: Room.Tap) {
        self.init(
            recording: RecordingID(tap.name),
            directory: tap.directory,
            by: ParticipantID(tap.by)
        )
    }
}

extension RecordedFile {
    fileprivate init(_ file: OutputFile) {
        self.init(
            path: file.path,
            participant: ParticipantID(file.participant),
            stream: StreamID(file.stream),
            kind: StreamKind(file.kind),
            start: file.start,
            duration: file.duration,
            bytes: file.bytes,
            gaps: file.gaps.map { Gap(start: $0.start, end: $0.end, reason: $0.reason) }
        )
    }
}
