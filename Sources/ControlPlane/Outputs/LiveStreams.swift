import Contract
import JSON
import RTP
import Rooms
import WorkerInterface

/// Live stream, with the call that waits for its server.
struct StreamingEntry {
    var name: String
    var room: String
    /// Whether its server has accepted it.
    var isAccepted = false
    /// Whether its server is gone, and sfud reconnects.
    var isInterrupted = false
    /// Caller to answer when the server has accepted or refused the stream.
    var caller: Caller?
}

extension Method {
    static let streamingMethods = [
        Method(StreamingStart.self) { plane, params, caller, now throws(IPCError) in
            try plane.start(params, for: caller, at: now)
        },
        Method(StreamingList.self) { plane, params, caller, _ throws(IPCError) in
            let shown = plane.streamings(of: params.room?.rawValue)
            let page = try Page.numbered(
                shown,
                by: { UInt64($0.tap.id) },
                limit: params.limit,
                after: params.after
            ) { JSON.encoded(StreamingInfo($0.tap, $0.entry)) }
            plane.answer(EncodedPage(name: "streamings", page: page), to: caller)
        },
        Method(StreamingStop.self, in: \.room) {
            .stopStreaming($0.streaming?.rawValue, by: $0.by?.rawValue)
        },
    ]
}

extension ControlPlane {
    fileprivate mutating func start(
        _ params: StreamingStart.Params,
        for caller: Caller,
        at now: Instant
    ) throws(IPCError) {
        var request = Room.StreamingRequest(url: params.url)
        request.layout = params.layout
        request.page = params.page?.url
        request.width = params.width
        request.height = params.height
        request.bitrate = params.bitrate
        let start = Room.Call.startStreaming(request, by: params.by?.rawValue)
        let outcome = try apply(start, in: params.room)
        // The server may be slow, so this reply is not ordered with the room's other replies.
        conclude(outcome, in: params.room.rawValue, at: now) { plane in
            if case .streaming(let tap) = outcome.result {
                plane.roomOutputs.streamings[tap]?.caller = caller
            }
            return .none
        }
    }

    /// Returns the live streams of a room, or of all, in the order in which they started.
    ///
    /// One that was stopped is no longer among them, even while its connection still closes.
    fileprivate func streamings(of room: String?) -> [(tap: Room.Tap, entry: StreamingEntry)] {
        roomOutputs.streamings.sorted { $0.key < $1.key }.compactMap { id, entry in
            guard room == nil || entry.room == room,
                let tap = rooms[entry.room]?.room.taps[id]
            else { return nil }
            return (tap, entry)
        }
    }

    /// Replies to `streaming.start`; `cause` is the reason of a failure, `nil` means success.
    mutating func answerStart(of id: OutputID, failure cause: String?) {
        guard let (caller, entry) = roomOutputs.takeCaller(of: id) else { return }
        guard let cause else {
            let result = StreamingStart.Result(streaming: StreamingID(entry.name))
            return answer(result, to: caller)
        }
        refuse(.streamingFailed(cause), to: caller)
    }
}

extension IPCError {
    /// Makes the error of a live stream that could not begin; `cause` is a reason word.
    fileprivate static func streamingFailed(_ cause: String) -> Self {
        Self(
            code: 4508,
            message: "the live stream could not begin: \(cause)",
            reason: "streaming-failed",
            details: ["cause": .string(cause)]
        )
    }
}

// Events of live streams; they contain no URL.

extension StreamingStarted {
    init(_ tap: Room.Tap) {
        guard let target = tap.target else { preconditionFailure("a live stream has a target") }
        self.init(
            streaming: StreamingID(tap.name),
            layout: target.layout.rawValue,
            width: target.width,
            height: target.height,
            by: ParticipantID(tap.by)
        )
    }
}

extension StreamingInfo {
    fileprivate init(_ tap: Room.Tap, _ entry: StreamingEntry) {
        guard let target = tap.target else { preconditionFailure("a live stream has a target") }
        self.init(
            streaming: StreamingID(tap.name),
            room: RoomID(entry.room),
            state: tap.isAwaited ? .starting : entry.isInterrupted ? .interrupted : .streaming,
            layout: target.layout.rawValue,
            width: target.width,
            height: target.height,
            started: tap.started,
            by: ParticipantID(tap.by)
        )
    }
}

extension StreamingStopped {
    init(_ tap: Room.Tap, reason: String, by actor: String?) {
        self.init(streaming: StreamingID(tap.name), reason: reason, by: ParticipantID(actor))
    }
}
