import Contract
import JSON
import LoadPeer
import RTP
import SFU
import TestSupport
import WorkerInterface

/// A room in the callers' view.
final class SimulatedRoom {
    let name: String
    /// Number in the marks of its packets; a room created again has another.
    let number: UInt32
    /// Whether it is a lecture: only the floor's holder is seen and heard, besides moderators.
    let isLecture: Bool
    var floorHolder: SimulatedParticipant?
    var seats: [SimulatedParticipant] = []
    /// Whether a call about the whole room is pending.
    var isBusy = false
    var isOpen = false
    var isMuted = false
    /// Whether a call about it was lost, so that its state is unknown.
    var isUnknown = false
    /// Index of the client that sends each stream.
    var publishers: [String: UInt32] = [:]
    /// The hostile participant, if any.
    var adversary: Adversary?
    /// Reason by which the daemon has disabled each subscription's video.
    ///
    /// The notice may arrive before the reply to the call that made the subscription.
    var heldBack: [String: String] = [:]

    init(name: String, number: UInt32, isLecture: Bool) {
        self.name = name
        self.isLecture = isLecture
        self.number = number
    }
}

// Actions of participants: each is one call or a few, with their known outcome.
extension World {
    func params(_ hall: SimulatedRoom, _ more: [String: JSON] = [:]) -> [String: JSON] {
        more.merging(["room": .string(hall.name)]) { $1 }
    }

    /// Makes a call about a participant, who takes part in no other until it is answered.
    func ask(
        _ method: String,
        _ more: [String: JSON],
        about seat: SimulatedParticipant,
        in hall: SimulatedRoom,
        emitted: @escaping () -> Void,
        then: @escaping (JSON?) -> Void = { _ in }
    ) {
        seat.isBusy = true
        call(
            method,
            params(hall, more),
            emitted: { outcome in if outcome.result != nil { emitted() } },
            then: { outcome in
                seat.isBusy = false
                if case .lost = outcome { seat.isUnknown = true }
                then(outcome.result)
            }
        )
    }

    func ask(
        _ method: String,
        _ more: [String: JSON],
        about seat: SimulatedParticipant,
        in hall: SimulatedRoom,
        then: @escaping (JSON?) -> Void
    ) {
        ask(method, more, about: seat, in: hall, emitted: {}, then: then)
    }

    func openHall(named name: String? = nil) {
        lastHall += 1
        let hall = SimulatedRoom(
            name: name ?? "room-\(lastHall)",
            number: lastHall,
            isLecture: random.chance(0.2)
        )
        halls.append(hall)
        hall.isBusy = true
        let settings: JSON = hall.isLecture ? ["mode": "lecture"] : [:]
        call("room.create", params(hall, ["settings": settings])) { [unowned self] outcome in
            hall.isBusy = false
            hall.isOpen = outcome.result != nil
            if case .lost = outcome { hall.isUnknown = true }
            guard hall.isOpen else { return }
            enter(hall, publishes: true)
            for _ in 0..<random.pick(1...3) {
                enter(hall, publishes: random.chance(0.35))
            }
            addAdversary(hall)
        }
    }

    /// Adds a participant, unless the room has ended: one of the same name would be another room.
    func enter(_ hall: SimulatedRoom, publishes: Bool) {
        guard hall.isOpen else { return }
        lastSeat += 1
        let seat = SimulatedParticipant(number: lastSeat, publishes: publishes, using: &random)
        if hasAdversaries { seat.takesSendTimes = adversaryRandom.chance(0.5) }
        hall.seats.append(seat)
        var more: [String: JSON] = ["participant": .string(seat.name)]
        if seat.isModerator {
            more["role"] = "moderator"
        } else if hall.isLecture {
            rights.close(.floor(publisher: seat.number))
        }
        ask("participant.join", more, about: seat, in: hall) { [unowned self] result in
            guard result != nil else { return }
            seat.hasJoined = true
            connect(seat, in: hall)
        }
    }

    /// Makes a transport for a participant without one.
    func connect(_ seat: SimulatedParticipant, in hall: SimulatedRoom) {
        guard seat.client == nil else { return }
        lastClient += 1
        let client = makeClient(lastClient, for: seat, in: hall)
        var more: [String: JSON] = [
            "participant": .string(seat.name), "sdp": .string(client.offer.text),
        ]
        if random.chance(0.2) { more["audioFallback"] = false }
        beginStream(of: seat)
        clients[client.index] = client
        tell("client \(client.index) of \(seat.name) begins, at \(client.path.remote)")
        clientsByPath[client.path] = client.index
        rights.note(
            client: UInt32(client.index),
            of: seat.number,
            isModerator: seat.isModerator
        )
        // Media may arrive from the moment that the answer is made.
        seat.client = client
        ask("transport.offer", more, about: seat, in: hall) { [unowned self] result in
            guard let result, let answer = result.sdp.flatMap(WorldAnswer.init) else { return }
            begin(client, answer)
            note(result, of: seat, in: hall)
        }
    }

    /// Records that a new stream may begin, with all its tracks on.
    func beginStream(of seat: SimulatedParticipant) {
        rights.open(.unpublished(publisher: seat.number))
        for kind in MediaKind.allCases { rights.open(.own(publisher: seat.number, kind)) }
        seat.switchedOff = []
    }

    /// Records the streams of an answer.
    private func note(_ result: JSON, of seat: SimulatedParticipant, in hall: SimulatedRoom) {
        if seat.follows || seat.isAdversary { follow(seat, in: hall) }
        seat.stream = result.streams.first
        guard let client = seat.client, let stream = seat.stream else { return }
        hall.publishers[stream] = UInt32(client.index)
        for other in hall.seats where other.number != seat.number { watchAll(other, in: hall) }
    }

    /// Makes all slots follow the active speakers.
    private func follow(_ seat: SimulatedParticipant, in hall: SimulatedRoom) {
        guard let offer = seat.client?.offer else { return }
        rights.follow(seat.number)
        let more: [String: JSON] = [
            "participant": .string(seat.name),
            "audioMids": .array(offer.mids(.audio, of: seat).map { .string($0) }),
            "videoMids": .array(offer.mids(.video, of: seat).map { .string($0) }),
        ]
        ask("talkers.subscribe", more, about: seat, in: hall) { _ in }
    }

    /// Subscribes to all streams, as far as there are slots.
    func watchAll(_ seat: SimulatedParticipant, in hall: SimulatedRoom) {
        guard seat.mayWatch, seat.client != nil, seat.subscriptions.count < seat.watchLimit
        else { return }
        let watched = Set(seat.subscriptions.map(\.stream))
        let streams = hall.seats.filter { $0.number != seat.number }.compactMap(\.stream)
        guard let stream = streams.first(where: { !watched.contains($0) }) else { return }
        watch(stream, seat, in: hall) { [unowned self] in watchAll(seat, in: hall) }
    }

    func watch(
        _ stream: String,
        _ seat: SimulatedParticipant,
        in hall: SimulatedRoom,
        then: @escaping () -> Void = {}
    ) {
        guard let publisher = hall.publishers[stream] else { return }
        rights.watch(viewer: seat.number, publisher: publisher)
        let more: [String: JSON] = [
            "participant": .string(seat.name), "stream": .string(stream),
        ]
        ask("subscription.add", more, about: seat, in: hall) { result in
            guard let id = result?["subscription"]?.text else { return }
            var kinds: Set<MediaKind> = []
            if result?["audioMid"] != nil { kinds.insert(.audio) }
            if result?["videoMid"] != nil { kinds.insert(.video) }
            seat.subscriptions.append(
                SimulatedParticipant.Subscription(
                    id: id,
                    stream: stream,
                    publisher: publisher,
                    kinds: kinds
                )
            )
            then()
        }
    }

    /// Removes a participant's client, with all that was known of its media.
    ///
    /// `isProven` says that the reply to the call that ended it has arrived. A refusal, for
    /// instance for an absent participant, does not prove that an earlier call has passed all
    /// workers.
    func retire(_ seat: SimulatedParticipant, isProven: Bool = true) {
        guard let client = seat.client else { return }
        if isProven { rights.close(.client(UInt32(client.index))) }
        client.mayHear = !isProven
        client.isGone = true
        tell("client \(client.index) of \(seat.name) ends")
        seat.client = nil
        seat.stream = nil
        // The subscriptions have ended with the transport.
        for subscription in seat.subscriptions {
            rights.leave(viewer: seat.number, publisher: subscription.publisher)
        }
        seat.subscriptions = []
        ledgers[client.index] = nil
        after(milliseconds: Self.remembered) { [unowned self] in forget(client) }
    }

    /// Inspects what still arrives for a client that has left, for a while.
    private func forget(_ client: WorldClient) {
        tally.frames += client.frames
        clients[client.index] = nil
        clientsByPath = clientsByPath.filter { $0.value != client.index }
    }

    private static let remembered: Int64 = 60_000

    private func makeClient(
        _ index: Int,
        for seat: SimulatedParticipant,
        in hall: SimulatedRoom
    ) -> WorldClient {
        let layers = seat.publishes ? layers(of: seat, client: index) : []
        var offer = WorldOffer(
            fragment: LoadPeer.fragment(seed: UInt64(index) << 16),
            password: LoadPeer.password(seed: UInt64(index) << 16),
            fingerprint: identity.fingerprint,
            layers: layers
        )
        offer.slots = seat.slots
        offer.takesRTX = seat.takesRTX
        offer.tellsArrivals = seat.tellsArrivals
        offer.takesSendTimes = seat.takesSendTimes
        offer.carriesEverything = seat.isAdversary
        var links = (
            up: Link(delay: random.pick(500_000...60_000_000)),
            down: Link(delay: random.pick(500_000...60_000_000))
        )
        if hasFaults, !seat.isAdversary { links = (Link(using: &random), Link(using: &random)) }
        let client = WorldClient(
            index: index,
            room: hall.number,
            seat: seat.number,
            offer: offer,
            peer: LoadPeer(
                identity: identity,
                context: context,
                path: WorldClient.path(of: index),
                seed: UInt64(index) << 16
            ),
            links: links
        )
        client.isAdversary = seat.isAdversary
        return client
    }

    private func layers(of seat: SimulatedParticipant, client: Int) -> [SentLayer] {
        let base = UInt32(client) * 64
        let rids: [String?] = seat.isSimulcast ? ["l", "h"] : [nil]
        let video = rids.enumerated().map { place, rid in
            layer(.video, mid: "1", rid: rid, UInt8(place), ssrc: base + 3 + 2 * UInt32(place))
        }
        return [layer(.audio, mid: "0", rid: nil, 0, ssrc: base + 1)] + video
    }

    private func layer(
        _ kind: MediaKind,
        mid: String,
        rid: String?,
        _ layer: UInt8,
        ssrc: UInt32
    ) -> SentLayer {
        // Close enough to the end that the numbers wrap, but not before they are known.
        let isLate = random.chance(0.2)
        return SentLayer(
            kind,
            mid: mid,
            rid: rid,
            layer: layer,
            ssrc: ssrc,
            firstIndex: UInt64(isLate ? random.pick(64_000...64_500) : random.pick(1...30_000))
        )
    }

    /// Starts a client's checks.
    func begin(_ client: WorldClient, _ answer: WorldAnswer) {
        client.worker = answer.worker
        client.begunAt = now
        client.answer = answer
        client.repaired = answer.repaired
        client.peer.connect(
            fragment: answer.fragment,
            password: answer.password,
            fingerprint: identity.fingerprint,
            at: now,
            into: &sent
        )
        sendAll(from: client)
        plan(client, at: now)
    }
}

extension JSON {
    var text: String? { if case .string(let text) = self { text } else { nil } }

    /// The SDP of an offer's result.
    var sdp: String? { self["sdp"]?.text }

    /// Distinct streams of the m-lines of an offer's result.
    var streams: [String] {
        guard case .array(let mids)? = self["mids"] else { return [] }
        var found: [String] = []
        for case let stream? in mids.map({ $0["stream"]?.text }) where !found.contains(stream) {
            found.append(stream)
        }
        return found
    }
}
