import Contract
import RTP
import Rooms
import WorkerInterface

/// Outputs of the rooms that the tap thread serves: recordings, live streams and RTP forwards.
struct RoomOutputs {
    /// Present and past recordings.
    var recordings: RecordingCatalog
    /// Live streams, running or starting.
    var streamings: [OutputID: StreamingEntry] = [:]
    var forwards: [OutputID: RTPForwardEntry] = [:]

    init(endedLimit: Int) { recordings = RecordingCatalog(endedLimit: endedLimit) }

    /// Adds an entry for an output that a call or notice began.
    mutating func add(_ id: OutputID, _ tap: Room.Tap, of room: String) {
        switch tap.purpose {
        case .recording: recordings[id] = RecordingCatalog.Entry(tap: tap, room: room)
        case .streaming: streamings[id] = StreamingEntry(name: tap.name, room: room)
        case .output: forwards[id] = RTPForwardEntry(tap: tap, room: room)
        }
    }

    /// Takes the caller that awaits the start of a live stream.
    mutating func takeCaller(of id: OutputID) -> (Caller, StreamingEntry)? {
        guard let entry = streamings[id], let caller = entry.caller else { return nil }
        streamings[id]?.caller = nil
        return (caller, entry)
    }

    /// Drops the replies to a closed connection.
    mutating func dropReplies(to connection: ConnectionID) {
        for (id, entry) in streamings where entry.caller?.connection == connection {
            streamings[id]?.caller = nil
        }
    }
}

extension ControlPlane {
    /// Adds an entry for each output that a call or notice began.
    mutating func noteOutputs(openedBy change: Room.Change, in room: String) {
        for case .tap(let id) in change.opened {
            guard let tap = rooms[room]?.room.taps[id] else { continue }
            roomOutputs.add(id, tap, of: room)
        }
    }

    /// Processes a notice of the tap thread.
    mutating func take(_ notice: OutputEvent, at now: Instant) {
        switch notice {
        case .started(let id):
            roomOutputs.recordings[id]?.state = .recording
            roomOutputs.streamings[id]?.isAccepted = true
            answerStart(of: id, failure: nil)
            take(.tapStarted(id), of: .tap(id), at: now)
        case .interrupted(let id, let cause):
            roomOutputs.streamings[id]?.isInterrupted = true
            take(.tapInterrupted(id, cause: cause), of: .tap(id), at: now)
        case .resumed(let id):
            roomOutputs.streamings[id]?.isInterrupted = false
            take(.tapResumed(id), of: .tap(id), at: now)
        case .sent(let id, let counts): roomOutputs.forwards[id]?.counts = counts
        case .files(let id, let files): roomOutputs.recordings[id]?.files = files
        case .ended(let id, let reason, let files):
            logRecordingEnd(id, reason)
            endStreaming(id, reason)
            roomOutputs.recordings.end(id, reason: reason, files: files)
            take(.tapEnded(id, reason: reason), of: .tap(id), at: now)
        }
    }

    private mutating func logRecordingEnd(_ id: OutputID, _ reason: String?) {
        guard let reason, let entry = roomOutputs.recordings[id] else { return }
        let fields = [("room", entry.room), ("recording", entry.tap.name), ("reason", reason)]
        output.append(.log(.warning, "recording has ended", fields))
    }

    private mutating func endStreaming(_ id: OutputID, _ reason: String?) {
        guard let entry = roomOutputs.streamings[id] else { return }
        let cause = reason ?? "ended"
        if !entry.isAccepted, reason != nil { rooms.counters.noteFailedStreaming(cause) }
        if entry.caller != nil {
            let fields = [("room", entry.room), ("streaming", entry.name), ("cause", cause)]
            output.append(.log(.warning, "no streaming", fields))
        }
        answerStart(of: id, failure: cause)
        roomOutputs.streamings[id] = nil
    }
}
