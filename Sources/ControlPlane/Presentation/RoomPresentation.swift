import Contract
import JSON
import RTP
import Rooms
import WorkerInterface

// Presentation of rooms in the contract's types.

extension ControlPlane {
    /// Returns a room as JSON; `nil` if there is none of that name.
    mutating func show(_ room: String) -> EncodedJSON? {
        rooms.entries[room]?.shown(seq: journals.numbered(room))
    }

    /// Returns a room as JSON without its lists; `nil` if there is none of that name.
    func showWithoutLists(_ room: String) -> EncodedJSON? {
        rooms[room]?.shownWithoutLists(seq: journals.numbered(room))
    }

    func show(_ participant: Room.Participant, in room: String) -> ParticipantInfo {
        guard let entry = rooms[room] else {
            preconditionFailure("an event of a room that is gone")
        }
        return entry.show(participant)
    }

    var info: ServerInfo.Result {
        ServerInfo.Result(
            version: setup.version,
            workers: setup.workers,
            udp: setup.udp,
            tcp: setup.tcp.isEmpty ? nil : setup.tcp,
            fingerprint: setup.fingerprint.shown,
            limits: setup.shownLimits,
            boot: setup.bootID,
            started: setup.startTime,
            draining: life.isDraining
        )
    }
}

extension Fingerprint {
    /// SDP form: `sha-256 AB:CD:…` (RFC 8122 §5).
    fileprivate var shown: String {
        let name =
            switch algorithm {
            case .sha256: "sha-256"
            case .sha384: "sha-384"
            case .sha512: "sha-512"
            }
        let digits = Array("0123456789ABCDEF")
        let bytes = digest.map { byte in
            String([digits[Int(byte >> 4)], digits[Int(byte & 15)]])
        }
        return "\(name) \(bytes.joined(separator: ":"))"
    }
}

extension RoleRequestInfo {
    init(_ request: Room.RoleRequest) {
        self.init(
            request: RoleRequestID(request.id),
            participant: ParticipantID(request.target),
            role: RoleName(request.role),
            by: ParticipantID(request.requester),
            expires: request.expires
        )
    }
}

extension Talker {
    init(_ talker: Room.Talker) {
        self.init(
            participant: ParticipantID(talker.participant),
            stream: talker.stream.map { StreamID($0) },
            talking: talker.isTalking,
            pinned: talker.isPinned
        )
    }
}

extension StreamInfo {
    init(_ stream: Room.Stream) {
        self.init(
            stream: StreamID(stream.id),
            participant: ParticipantID(stream.participant),
            source: StreamSource(stream.source),
            name: stream.name,
            // The text is one that this process has written itself.
            custom: stream.custom.flatMap { try? JSON(parsing: Array($0.utf8)) } ?? [:],
            audioFallback: stream.audioFallback,
            created: stream.created
        )
        if stream.audio != nil, let codec = stream.audioCodec {
            audio = AudioInfo(codec: CodecName(codec), enabled: stream.isEnabled(.audio))
        }
        if stream.video != nil, let codec = stream.videoCodec {
            video = VideoInfo(
                codec: CodecName(codec),
                enabled: stream.isEnabled(.video),
                layers: stream.layers.map(LayerInfo.init)
            )
        }
    }
}

extension LayerInfo {
    init(_ layer: LayerDescription) {
        self.init(
            rid: layer.rid,
            width: layer.width,
            height: layer.height,
            // JSON cannot represent values that are not finite.
            frameRate: layer.frameRate.isFinite ? layer.frameRate : 0,
            bitrate: layer.bitrate,
            active: layer.active
        )
    }
}

extension TransportOffer.Result {
    init(_ answered: Room.Answered) {
        self.init(
            transport: TransportName(answered.transport),
            sdp: answered.sdp,
            mids: answered.media.compactMap(MidInfo.init)
        )
    }
}

extension MidInfo {
    /// Returns `nil` for an m-line whose mid the contract's type does not allow.
    fileprivate init?(_ line: Room.AnsweredLine) {
        guard let mid = Mid(rawValue: line.mid) else { return nil }
        self.init(
            mid: mid,
            kind: line.kind.map { StreamKind($0).rawValue } ?? "application",
            direction: MediaDirection(line.direction.mirrored),
            stream: line.stream.map { StreamID($0) },
            refused: line.refused ?? (line.kind == nil ? "kind" : nil)
        )
    }
}

extension SubscriptionAdd.Result {
    init(_ subscription: Room.Subscription) {
        self.init(
            subscription: SubscriptionID(subscription.id),
            audioMid: subscription.audioSlot.flatMap { Mid(rawValue: $0.mid) },
            videoMid: subscription.videoSlot.flatMap { Mid(rawValue: $0.mid) }
        )
    }
}
