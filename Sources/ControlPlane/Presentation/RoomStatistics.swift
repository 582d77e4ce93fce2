import Contract
import JSON
import RTP
import Rooms
import WorkerInterface

/// Statistics that workers have reported, by the object.
struct ReportedFigures {
    fileprivate private(set) var transports: [Room.WorkerResource: TransportStatistics] = [:]
    fileprivate private(set) var publications: [Room.WorkerResource: PublicationStatistics] = [:]
    fileprivate private(set) var slots: [Room.WorkerResource: SlotStatistics] = [:]
    /// Unix time of each worker's figures, in seconds.
    fileprivate private(set) var times: [Int: Double] = [:]

    init(_ answers: [Int: WorkerStatistics], _ clock: WallClock) {
        for (worker, statistics) in answers {
            times[worker] = clock.unixTime(at: statistics.time)
            for one in statistics.transports {
                transports[.transport(worker: worker, one.id)] = one
            }
            for one in statistics.publications {
                publications[.publication(worker: worker, one.id)] = one
            }
            for one in statistics.slots { slots[.slot(worker: worker, one.id)] = one }
        }
    }
}

/// Statistics of a room, out of what its workers have reported.
struct RoomStatistics {
    private let room: Room
    private let figures: ReportedFigures

    init(_ room: Room, _ figures: ReportedFigures) {
        self.room = room
        self.figures = figures
    }

    /// Makes a page of the result; a cursor is the creation number of the last participant.
    ///
    /// For one subscription it has its slots only, for a participant everything that it sends and
    /// receives.
    func page(_ params: StatsGet.Params) -> StatsGet.Result {
        var page = StatsGet.Result()
        var (count, bytes, last) = (0, 0, UInt64(0))
        let after = (try? Page.cursor(params.after)) ?? 0
        let limit = params.limit?.rawValue ?? PageLimit.range.upperBound
        for (name, birth) in room.participants.allNames(after: after)
        where params.participant.map({ $0.rawValue == name }) ?? true {
            guard let participant = room.participants[name] else { continue }
            let found = result(of: participant, params.subscription?.rawValue)
            let size = JSON.encoded(found).count
            guard count < limit, count == 0 || bytes + size < Page.byteLimit else {
                page.next = ShortText(rawValue: "\(last)")
                break
            }
            page += found
            (count, bytes, last) = (count + 1, bytes + size, birth)
        }
        return page
    }

    /// Returns the statistics of some participants; those who are gone have none.
    func result(of participants: [String]) -> StatsGet.Result {
        var result = StatsGet.Result()
        for participant in participants.compactMap({ room.participants[$0] }) {
            result += self.result(of: participant, nil)
        }
        return result
    }

    private func result(
        of participant: Room.Participant,
        _ subscription: String?
    ) -> StatsGet.Result {
        var result = StatsGet.Result()
        for transport in participant.transports where !transport.isSuccessor {
            result.subscriptions += subscriptions(participant, transport, subscription)
            guard subscription == nil else { continue }
            result.transports.append(shown(participant, transport))
            result.streams += streams(participant, transport)
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
        if let found = figures.transports[.transport(worker: place.worker, place.id)] {
            stats.time = figures.times[place.worker]
            stats.protocol = found.isTCP.map { $0 ? .tcp : .udp }
            stats.estimate = found.estimate
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
                guard let found = figures.publications[place], let mid = Mid(rawValue: track.mid)
                else {
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
                        time: figures.times[transport.place.worker],
                        encodings: found.encodings.map { EncodingStats($0, clockRate) }
                    )
                )
            }
        }
        return all
    }

    private func subscriptions(
        _ participant: Room.Participant,
        _ transport: Room.Transport,
        _ wanted: String?
    ) -> [SubscriptionStats] {
        var all: [SubscriptionStats] = []
        for slot in transport.slots {
            let place = Room.WorkerResource.slot(worker: transport.place.worker, slot.id)
            guard let number = slot.subscription, let subscription = room.subscriptions[number],
                let found = figures.slots[place], let mid = Mid(rawValue: slot.mid),
                wanted.map({ $0 == subscription.id }) ?? true
            else { continue }
            var stats = SubscriptionStats(
                subscription: SubscriptionID(subscription.id),
                participant: ParticipantID(participant.id),
                stream: StreamID(subscription.stream),
                mid: mid,
                kind: StreamKind(slot.kind)
            )
            stats.time = figures.times[transport.place.worker]
            stats.take(found, slot.kind)
            all.append(stats)
        }
        return all
    }
}

extension StatsGet.Result {
    fileprivate static func += (sum: inout Self, other: Self) {
        sum.transports += other.transports
        sum.streams += other.streams
        sum.subscriptions += other.subscriptions
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
        freezes = slot.freezes.count
        freezeSeconds = slot.freezes.seconds
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
        fractionLost = Double(encoding.fractionLost) / 256
        jitter = Double(encoding.jitter) / Double(clockRate) * 1_000
        nacks = encoding.nacksSent
        plis = encoding.pictureLossesSent
        retransmissions = encoding.retransmissionsReceived
    }
}
