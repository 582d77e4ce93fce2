import Contract
import JSON
import RTP
import Rooms
import WorkerInterface

/// Pending `participant.left` event that waits for the quality of the participant's transports.
struct DepartedParticipant: Sendable {
    var data: ParticipantLeft
    var to: Audience
    var room: String
    var time: Double
    /// Quality of its transports, as far as it is known.
    var quality: LinkQuality
    /// Transports whose quality the workers have not told yet.
    var awaiting: Set<Room.TransportLocation>

    /// Adds the quality of a transport that it awaits.
    mutating func settle(_ transport: Room.TransportLocation, _ quality: LinkQuality) {
        guard awaiting.remove(transport) != nil else { return }
        self.quality += quality
    }

    /// Encodes the event; the quality of what is still awaited is missing.
    func encoded(seq: UInt64) -> [UInt8] {
        var data = data
        data.session?.take(quality)
        return IPCEvent.encoded(
            data,
            room: RoomID(room),
            seq: Int64(seq),
            time: time,
            audience: to
        )
    }
}

extension ControlPlane {
    /// Numbers a `participant.left` event; its line is encoded at the fence behind the transports'
    /// end, when the workers have told their quality.
    mutating func events(
        _ left: ParticipantLeft,
        of participant: Room.Participant,
        to audience: Audience,
        in room: String
    ) -> [Operation.Event] {
        var departed = DepartedParticipant(
            data: left,
            to: audience,
            room: room,
            time: shared.unixTime,
            quality: participant.session.quality,
            awaiting: Set(participant.session.ending + participant.transports.map(\.place))
        )
        departed.data.session = SessionInfo(participant.session, until: shared.now)
        return audience.parts.map { part in
            departed.to = part
            return Operation.Event(
                seq: journals.number(room),
                line: EventLine(name: ParticipantLeft.event, line: []),
                departed: departed
            )
        }
    }

    /// Adds the quality of the transports that an operation has ended to their participants'
    /// accounts.
    ///
    /// Those who left with this operation or with one behind it have their account there.
    mutating func settleTransports(of operation: inout Operation, in room: String) {
        for case .transport(let worker, let id) in operation.freed {
            let transport = Room.TransportLocation(worker: worker, id: id)
            let quality = operations.takeQuality(of: transport)
            rooms.entries[room]?.room.settle(transport, quality)
            guard let quality else { continue }
            operation.settle(transport, quality)
            for epoch in journals.underWay(room) { operations.settle(transport, quality, epoch) }
        }
    }
}

extension SessionInfo {
    fileprivate init(_ session: Room.Session, until now: Instant) {
        self.init(duration: Self.rounded(Double(now.nanoseconds(since: session.began)) / 1e9))
        sent.take(session.sent, until: now)
        received.take(session.received, until: now)
    }

    fileprivate mutating func take(_ quality: LinkQuality) {
        // The worker's received media is what the participant sent.
        sent.take(quality.received)
        received.take(quality.sent)
        roundTripTime = MeanAndWorst(quality.roundTrip, times: 1_000)
        estimate = MeanAndWorst(lowestOf: quality.estimate)
        freezes.count = Int(clamping: quality.freezes.all.count)
        freezes.seconds = Self.rounded(quality.freezes.all.seconds)
        freezes.hops = HopFreezes.list(quality.freezes)
    }

    /// Rounds to a thousandth.
    fileprivate static func rounded(_ value: Double) -> Double { (value * 1_000).rounded() / 1_000 }
}

extension SessionMedia {
    fileprivate mutating func take(_ times: Room.MediaTimes, until now: Instant) {
        audioMinutes = SessionInfo.rounded(times.seconds(.audio, until: now) / 60)
        videoMinutes = SessionInfo.rounded(times.seconds(.video, until: now) / 60)
        screenMinutes = SessionInfo.rounded(times.seconds(.screen, until: now) / 60)
    }

    fileprivate mutating func take(_ quality: LinkQuality.Direction) {
        fractionLost = MeanAndWorst(quality.loss, times: 1)
        jitter = MeanAndWorst(quality.jitter, times: 1_000)
    }
}

extension MeanAndWorst {
    /// Returns `nil` if there are no values.
    fileprivate init?(_ spread: Spread, times factor: Double) {
        guard let mean = spread.mean else { return nil }
        self.init(
            mean: SessionInfo.rounded(mean * factor),
            worst: SessionInfo.rounded(spread.worst * factor)
        )
    }

    /// Takes the lowest value for the worst, in whole numbers; returns `nil` if there are no
    /// values.
    fileprivate init?(lowestOf spread: Spread?) {
        guard let mean = spread?.mean, let lowest = spread?.lowest else { return nil }
        self.init(mean: mean.rounded(), worst: lowest.rounded())
    }
}
