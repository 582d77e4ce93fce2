import Contract
import RTP
import Rooms
import WorkerInterface

/// Selection of the workers' statistics that answers one `stats.get`.
struct StatisticsSelection {
    private let params: StatsGet.Params
    private let room: Room
    private var transports: [Room.WorkerResource: TransportStatistics] = [:]
    private var publications: [Room.WorkerResource: PublicationStatistics] = [:]
    private var slots: [Room.WorkerResource: SlotStatistics] = [:]

    init(_ params: StatsGet.Params, _ room: Room, _ answers: [Int: WorkerStatistics]) {
        self.params = params
        self.room = room
        for (worker, statistics) in answers {
            for one in statistics.transports {
                transports[.transport(worker: worker, one.id)] = one
            }
            for one in statistics.publications {
                publications[.publication(worker: worker, one.id)] = one
            }
            for one in statistics.slots { slots[.slot(worker: worker, one.id)] = one }
        }
    }

    /// Makes the result.
    ///
    /// For one subscription it has its slots only, for a participant everything that it sends and
    /// receives.
    func result() -> StatsGet.Result {
        var result = StatsGet.Result()
        for participant in room.members
        where params.participant.map({ $0.rawValue == participant.id }) ?? true {
            for transport in participant.transports {
                result.subscriptions += subscriptions(participant, transport)
                guard params.subscription == nil else { continue }
                result.transports.append(shown(participant, transport))
                result.streams += streams(participant, transport)
            }
        }
        return result
    }

    private func shown(
        _ participant: Room.Participant,
        _ transport: Room.Transport
    ) -> TransportStats {
        let place = transport.place
        var stats = TransportStats(
            transport: TransportName(transport.name),
            participant: ParticipantID(participant.id),
            connection: ConnectionState(transport.connection)
        )
        if let found = transports[.transport(worker: place.worker, place.id)] {
            stats.remote = found.remote.map(\.endpointText)
            stats.srtpProfile = found.srtpProfile
            stats.packetsIn = found.packetsIn
            stats.bytesIn = found.bytesIn
            stats.packetsOut = found.packetsOut
            stats.bytesOut = found.bytesOut
            stats.roundTripTime = found.roundTripNanoseconds.map { Double($0) / 1e6 }
        }
        return stats
    }

    private func streams(
        _ participant: Room.Participant,
        _ transport: Room.Transport
    ) -> [StreamStats] {
        var all: [StreamStats] = []
        for id in participant.streams {
            guard let stream = room.streams[id], stream.transport == transport.name else {
                continue
            }
            for track in transport.tracks where stream.carries(track) {
                let place = Room.WorkerResource.publication(
                    worker: transport.place.worker,
                    track.publication
                )
                guard let found = publications[place], let mid = Mid(rawValue: track.mid) else {
                    continue
                }
                let clockRate = (found.codec ?? (track.kind == .audio ? .opus : .vp8)).clockRate
                all.append(
                    StreamStats(
                        stream: StreamID(id),
                        participant: ParticipantID(participant.id),
                        mid: mid,
                        kind: StreamKind(track.kind),
                        codec: found.codec.map(CodecName.init),
                        encodings: found.encodings.map { EncodingStats($0, clockRate) }
                    )
                )
            }
        }
        return all
    }

    private func subscriptions(
        _ participant: Room.Participant,
        _ transport: Room.Transport
    ) -> [SubscriptionStats] {
        var all: [SubscriptionStats] = []
        for slot in transport.slots {
            let place = Room.WorkerResource.slot(worker: transport.place.worker, slot.id)
            guard let number = slot.subscription, let subscription = room.subscriptions[number],
                let found = slots[place], let mid = Mid(rawValue: slot.mid),
                params.subscription.map({ $0.rawValue == subscription.id }) ?? true
            else { continue }
            var stats = SubscriptionStats(
                subscription: SubscriptionID(subscription.id),
                participant: ParticipantID(participant.id),
                stream: StreamID(subscription.stream),
                mid: mid,
                kind: StreamKind(slot.kind)
            )
            stats.take(found, slot.kind)
            all.append(stats)
        }
        return all
    }
}

extension SubscriptionStats {
    fileprivate mutating func take(_ slot: SlotStatistics, _ kind: MediaKind) {
        let clockRate = (slot.codec ?? (kind == .audio ? .opus : .vp8)).clockRate
        codec = slot.codec.map(CodecName.init)
        rid = slot.rid
        packets = slot.packets
        bytes = slot.bytes
        packetsLost = slot.packetsLost
        // Fixed point number with the binary point at the left edge (RFC 3550 §6.4.1).
        fractionLost = Double(slot.fractionLost) / 256
        jitter = Double(slot.jitter) / Double(clockRate) * 1_000
        nacks = slot.nacksReceived
        plis = slot.pictureLossesReceived
        retransmissions = slot.retransmissionsSent
    }
}

extension EncodingStats {
    fileprivate init(_ encoding: EncodingStatistics, _ clockRate: Int) {
        self.init(
            rid: encoding.layer.rid,
            ssrc: encoding.ssrc.rawValue,
            active: encoding.layer.active
        )
        width = encoding.layer.width
        height = encoding.layer.height
        frameRate = encoding.layer.frameRate.isFinite ? encoding.layer.frameRate : 0
        bitrate = encoding.layer.bitrate
        packets = encoding.packets
        bytes = encoding.bytes
        packetsLost = encoding.packetsLost
        jitter = Double(encoding.jitter) / Double(clockRate) * 1_000
        nacks = encoding.nacksSent
        plis = encoding.pictureLossesSent
        retransmissions = encoding.retransmissionsReceived
    }
}
