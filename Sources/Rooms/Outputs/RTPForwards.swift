import RTP
package import WorkerInterface

// Forwarding of streams as plain RTP to other tools. Packets keep their payload; SSRC, sequence
// numbers and timestamps are rewritten.

extension Room {
    /// Request to forward a stream as plain RTP; `nil` addresses leave out that kind.
    package struct RTPForwardRequest: Sendable {
        package var stream: String
        package var audio: Address?
        package var video: Address?

        package init(stream: String, audio: Address? = nil, video: Address? = nil) {
            self.stream = stream
            self.audio = audio
            self.video = video
        }

        func address(_ kind: MediaKind) -> Address? {
            switch kind {
            case .audio: audio
            case .video: video
            }
        }
    }

    /// Limits and count of RTP forwards, shared by all rooms.
    package struct RTPForwardService: Sendable {
        /// Concurrent RTP forwards of all rooms.
        package var limit = 100
        /// Concurrent RTP forwards of one room.
        package var roomLimit = 16
        package var open = 0

        package init() {}
    }

    /// RTP forwards of the room, in the order in which they began.
    package var outputs: [Tap] { taps.forwards }

    mutating func startRTPForward(
        _ request: RTPForwardRequest,
        by actor: String?,
        _ transaction: inout RoomTransaction
    ) throws(CallError) -> Result {
        try check(actor, may: .stream, orElse: Self.mayNotSendOut)
        let stream = try stream(request.stream)
        var lines: [RTPForwardTarget.Line] = []
        for kind in MediaKind.allCases {
            guard let address = request.address(kind) else { continue }
            lines.append(try line(kind, of: stream, to: address, &transaction))
        }
        guard var service = transaction.shared.taps else { throw .noTaps }
        let limits = transaction.shared.outputs
        guard limits.open < limits.limit else { throw .limitReached("taps", limits.limit) }
        guard outputs.count < limits.roomLimit else {
            throw .limitReached("tapsPerRoom", limits.roomLimit)
        }
        transaction.shared.outputs.open += 1
        service.lastID += 1
        transaction.shared.taps = service
        let tap = Tap(
            id: service.lastID,
            name: "tap-\(RandomText.word(&transaction.shared.random))",
            directory: "",
            started: transaction.shared.unixTime,
            by: actor,
            purpose: .output(RTPForwardTarget(stream: stream.id, lines: lines)),
            streams: [stream.id],
            isAwaited: false
        )
        begin(tap, in: service.worker, &transaction)
        transaction.announce(.outputStarted(tap), to: .everyone)
        return .tapped(tap.id)
    }

    mutating func stopRTPForward(
        _ name: String,
        by actor: String?,
        _ transaction: inout RoomTransaction
    ) throws(CallError) {
        try check(actor, may: .stream, orElse: Self.mayNotSendOut)
        guard let tap = outputs.first(where: { $0.name == name }) else { throw .noSuchTap(name) }
        end(tap: tap.id, &transaction)
        let reason = EndReason.requested
        transaction.announce(.outputStopped(tap, reason: reason, by: actor), to: .everyone)
    }

    private static let mayNotSendOut = CallError.notPermitted("taps need the permission stream")

    private func line(
        _ kind: MediaKind,
        of stream: Stream,
        to address: Address,
        _ transaction: inout RoomTransaction
    ) throws(CallError) -> RTPForwardTarget.Line {
        guard let home = stream.home(kind), let track = track(of: home),
            let codec = stream.codec(kind) ?? track.codec
        else {
            throw .noSuchTrack(kind, of: stream.id)
        }
        return RTPForwardTarget.Line(
            kind: kind,
            address: address,
            // RED is forwarded as the Opus it carries.
            codec: codec == .red ? .opus : codec,
            ssrc: SSRC(
                rawValue: UInt32.random(in: 1...UInt32.max, using: &transaction.shared.random)
            ),
            firstNumber: UInt16.random(in: 0...UInt16.max, using: &transaction.shared.random),
            firstTimestamp: UInt32.random(in: 0...UInt32.max, using: &transaction.shared.random)
        )
    }
}

extension Room.Stream {
    fileprivate func codec(_ kind: MediaKind) -> Codec? {
        switch kind {
        case .audio: audioCodec
        case .video: videoCodec
        }
    }
}

extension CallError {
    fileprivate static func noSuchTap(_ tap: String) -> Self {
        Self(code: 4012, reason: "no-such-tap", message: "no tap \"\(tap)\"")
    }
}
