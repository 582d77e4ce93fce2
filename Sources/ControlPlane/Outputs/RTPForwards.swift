import Contract
import JSON
import RTP
import Rooms
import WorkerInterface

/// RTP forward, as `tap.list` shows it.
struct RTPForwardEntry {
    var tap: Room.Tap
    var room: String
    var counts = RTPForwardCounts()
}

extension Method {
    static let rtpForwardMethods = [
        Method(TapStart.self) { plane, params, caller, now throws(IPCError) in
            try plane.start(params, for: caller, at: now)
        },
        Method(TapStop.self, in: \.room) {
            .stopRTPForward($0.tap.rawValue, by: $0.by?.rawValue)
        },
        Method(TapList.self) { plane, params, caller, _ throws(IPCError) in
            let shown = plane.roomOutputs.forwards.sorted { $0.key < $1.key }.filter {
                params.room == nil || $0.value.room == params.room?.rawValue
            }
            let page = try Page.numbered(
                shown,
                by: { UInt64($0.key) },
                limit: params.limit,
                after: params.after
            ) { JSON.encoded(TapInfo($0.value)) }
            plane.answer(EncodedPage(name: "taps", page: page), to: caller)
        },
    ]
}

extension ControlPlane {
    fileprivate mutating func start(
        _ params: TapStart.Params,
        for caller: Caller,
        at now: Instant
    ) throws(IPCError) {
        guard params.audio != nil || params.video != nil else {
            throw .invalidParameter("audio", "audio or video has to be there")
        }
        let request = Room.RTPForwardRequest(
            stream: params.stream.rawValue,
            audio: try address(params.audio, "audio.address"),
            video: try address(params.video, "video.address")
        )
        if let audio = request.audio, let video = request.video,
            audio.with(port: 0) == video.with(port: 0),
            abs(Int(audio.port) - Int(video.port)) < 2
        {
            throw .invalidParameter("video.address", "a port for RTCP has to lie between the two")
        }
        let start = Room.Call.startRTPForward(request, by: params.by?.rawValue)
        try call(start, in: params.room, for: caller, at: now) { outcome, plane in
            guard case .tapped(let id) = outcome.result,
                let tap = plane.rooms[params.room]?.room.taps[id],
                let output = tap.output
            else { return nil }
            let result = TapStart.Result(
                tap: TapName(tap.name),
                sdp: RTPForwardDescription.text(of: output, name: tap.name, number: id)
            )
            return IPCReply.encoded(id: caller.request, result: result)
        }
    }

    private func address(
        _ line: TapDestination?,
        _ parameter: String
    ) throws(IPCError) -> Address? {
        guard let line else { return nil }
        guard let address = Address(endpoint: line.address), !address.isWildcard,
            (1...UInt16.max - 1).contains(address.port)
        else {
            throw .invalidParameter(parameter, "is no ADDR:PORT with a port from 1 to 65534")
        }
        guard setup.tapNetworks.contains(where: { $0.contains(address) }) else {
            throw IPCError(
                code: 4010,
                message: "\(parameter) lies in none of the networks that tap-networks allows",
                reason: "address-not-allowed"
            )
        }
        return address
    }
}

// Events of RTP forwards; they contain no destination address.

extension TapStarted {
    init(_ tap: Room.Tap) {
        guard let output = tap.output else { preconditionFailure("an RTP forward has a target") }
        self.init(
            tap: TapName(tap.name),
            stream: StreamID(output.stream),
            by: ParticipantID(tap.by)
        )
    }
}

extension TapStopped {
    init(_ tap: Room.Tap, reason: String, by actor: String?) {
        guard let output = tap.output else { preconditionFailure("an RTP forward has a target") }
        self.init(
            tap: TapName(tap.name),
            stream: StreamID(output.stream),
            reason: reason,
            by: ParticipantID(actor)
        )
    }
}

extension TapInfo {
    fileprivate init(_ entry: RTPForwardEntry) {
        func line(_ kind: MediaKind) -> TapDestination? {
            entry.tap.output?.line(kind).map { TapDestination(address: $0.address.endpointText) }
        }
        self.init(
            tap: TapName(entry.tap.name),
            room: RoomID(entry.room),
            stream: StreamID(entry.tap.output?.stream ?? ""),
            audio: line(.audio),
            video: line(.video),
            started: entry.tap.started,
            packets: entry.counts.packets,
            bytes: entry.counts.bytes,
            dropped: entry.counts.dropped,
            refused: entry.counts.refused
        )
    }
}
