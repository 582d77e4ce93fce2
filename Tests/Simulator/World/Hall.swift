import Contract
import JSON
import LoadPeer
import RTP
import SFU
import WorkerInterface

/// A room as who makes the calls knows it.
final class Hall {
    let name: String
    /// What its packets are marked with; a room made anew has another.
    let number: UInt32
    /// Only who has the floor is seen and heard, besides moderators.
    let isLecture: Bool
    var floorHolder: Seat?
    var seats: [Seat] = []
    /// A call about the room as a whole is under way.
    var isBusy = false
    var isOpen = false
    var isMuted = false
    /// A call about it was lost: nobody knows what it is now.
    var isUnknown = false
    /// Whose client sends a stream.
    var publishers: [String: UInt32] = [:]
    /// A participant with keys that pursues goals of its own.
    var adversary: Adversary?
    /// Why the daemon has said that a subscription has no video now; it may say so before who
    /// asked for the subscription has read the reply.
    var heldBack: [String: String] = [:]

    init(name: String, number: UInt32, isLecture: Bool) {
        self.name = name
        self.isLecture = isLecture
        self.number = number
    }
}

/// A participant as who makes the calls knows it.
final class Seat {
    struct Subscription {
        var id: String
        var stream: String
        var publisher: UInt32
        /// What slots were free for.
        var kinds: Set<MediaKind>
    }

    let number: Int
    let name: String
    let isModerator: Bool
    let publishes: Bool
    /// Whether it sends two sizes of its video.
    let isSimulcast: Bool
    let slots: Int
    let takesRTX: Bool
    let tellsArrivals: Bool
    /// Its slots follow who talks.
    let follows: Bool
    let isAdversary: Bool
    /// Whether packets to it tell when they were sent.
    var takesSendTimes = false
    var client: WorldClient?
    /// A call about it is under way.
    var isBusy = false
    var hasJoined = false
    /// A call about it was lost, or its connection ended.
    var isUnknown = false
    var stream: String?
    var subscriptions: [Subscription] = []
    var muted: Set<MediaKind> = []
    var switchedOff: Set<MediaKind> = []
    var onlyReceives = false
    var onlyWatches = false
    var offers = 0

    init(number: Int, publishes: Bool, using random: inout SimulatedRandom) {
        self.number = number
        self.publishes = publishes
        name = "person-\(number)"
        isModerator = random.chance(0.2)
        isSimulcast = random.chance(0.4)
        slots = Int(random.pick(1...3))
        takesRTX = random.chance(0.8)
        tellsArrivals = random.chance(0.25)
        follows = random.chance(0.2)
        isAdversary = false
    }

    /// An adversary, with all that a client may agree on.
    init(adversary number: Int) {
        self.number = number
        name = "adversary-\(number)"
        publishes = true
        isModerator = false
        isSimulcast = false
        slots = 4
        takesRTX = true
        tellsArrivals = true
        follows = false
        isAdversary = true
        takesSendTimes = true
    }

    var mayWatch: Bool { isFree && !follows || isAdversary && hasJoined && !isUnknown }

    /// An adversary watches one stream; its other slots follow who talks.
    var watchLimit: Int { isAdversary ? 1 : slots }

    var isFree: Bool { hasJoined && !isBusy && !isUnknown && !isAdversary }
}

// What a room's people do; each act is one call or a few, and what they are known to come to.
extension World {
    func params(_ hall: Hall, _ more: [String: JSON] = [:]) -> [String: JSON] {
        more.merging(["room": .string(hall.name)]) { $1 }
    }

    /// A call about one participant, who takes part in no other until it is answered.
    func ask(
        _ method: String,
        _ more: [String: JSON],
        about seat: Seat,
        in hall: Hall,
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
        about seat: Seat,
        in hall: Hall,
        then: @escaping (JSON?) -> Void
    ) {
        ask(method, more, about: seat, in: hall, emitted: {}, then: then)
    }

    func openHall(named name: String? = nil) {
        lastHall += 1
        let hall = Hall(
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
            enterAdversary(hall)
        }
    }

    /// Somebody comes, if the room has not ended: one of the same name would be another one.
    func enter(_ hall: Hall, publishes: Bool) {
        guard hall.isOpen else { return }
        lastSeat += 1
        let seat = Seat(number: lastSeat, publishes: publishes, using: &random)
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

    /// Makes a transport for somebody who has none.
    func connect(_ seat: Seat, in hall: Hall) {
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
        // Media may come from the moment on that the answer is made.
        seat.client = client
        ask("transport.offer", more, about: seat, in: hall) { [unowned self] result in
            guard let result, let answer = result.sdp.flatMap(WorldAnswer.init) else { return }
            begin(client, answer)
            note(result, of: seat, in: hall)
        }
    }

    /// A new stream may come of it, and all of that is on.
    func beginStream(of seat: Seat) {
        rights.open(.unpublished(publisher: seat.number))
        for kind in MediaKind.allCases { rights.open(.own(publisher: seat.number, kind)) }
        seat.switchedOff = []
    }

    /// Notes what an answer says of the streams.
    private func note(_ result: JSON, of seat: Seat, in hall: Hall) {
        if seat.follows || seat.isAdversary { follow(seat, in: hall) }
        seat.stream = result.streams.first
        guard let client = seat.client, let stream = seat.stream else { return }
        hall.publishers[stream] = UInt32(client.index)
        for other in hall.seats where other.number != seat.number { watchAll(other, in: hall) }
    }

    /// Has all slots follow who talks.
    private func follow(_ seat: Seat, in hall: Hall) {
        guard let offer = seat.client?.offer else { return }
        rights.follow(seat.number)
        let more: [String: JSON] = [
            "participant": .string(seat.name),
            "audioMids": .array(offer.mids(.audio, of: seat).map { .string($0) }),
            "videoMids": .array(offer.mids(.video, of: seat).map { .string($0) }),
        ]
        ask("talkers.subscribe", more, about: seat, in: hall) { _ in }
    }

    /// Watches what there is, as far as there are slots.
    func watchAll(_ seat: Seat, in hall: Hall) {
        guard seat.mayWatch, seat.client != nil, seat.subscriptions.count < seat.watchLimit
        else { return }
        let watched = Set(seat.subscriptions.map(\.stream))
        let streams = hall.seats.filter { $0.number != seat.number }.compactMap(\.stream)
        guard let stream = streams.first(where: { !watched.contains($0) }) else { return }
        watch(stream, seat, in: hall) { [unowned self] in watchAll(seat, in: hall) }
    }

    func watch(_ stream: String, _ seat: Seat, in hall: Hall, then: @escaping () -> Void = {}) {
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
                Seat.Subscription(id: id, stream: stream, publisher: publisher, kinds: kinds)
            )
            then()
        }
    }

    /// Somebody's client is there no longer; what was known of its media goes with it.
    ///
    /// `isProven` says that the reply to the call that ended it has come. A refusal, as of who is
    /// not there, does not say that an earlier call has passed all workers.
    func retire(_ seat: Seat, isProven: Bool = true) {
        guard let client = seat.client else { return }
        if isProven { rights.close(.client(UInt32(client.index))) }
        client.mayHear = !isProven
        client.isGone = true
        tell("client \(client.index) of \(seat.name) ends")
        seat.client = nil
        seat.stream = nil
        // With the transport the subscriptions have ended.
        for subscription in seat.subscriptions {
            rights.leave(viewer: seat.number, publisher: subscription.publisher)
        }
        seat.subscriptions = []
        ledgers[client.index] = nil
        after(milliseconds: Self.remembered) { [unowned self] in forget(client) }
    }

    /// What still comes for somebody who has gone is looked at for a while.
    private func forget(_ client: WorldClient) {
        tally.frames += client.frames
        clients[client.index] = nil
        clientsByPath = clientsByPath.filter { $0.value != client.index }
    }

    private static let remembered: Int64 = 60_000

    private func makeClient(_ index: Int, for seat: Seat, in hall: Hall) -> WorldClient {
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

    private func layers(of seat: Seat, client: Int) -> [SentLayer] {
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
        // Near enough to the end that the numbers wrap, and not before they are known.
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

    /// A client begins with its checks.
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

    /// Of the result of an offer.
    var sdp: String? { self["sdp"]?.text }

    /// The streams of the m-lines of the result of an offer, none twice.
    var streams: [String] {
        guard case .array(let mids)? = self["mids"] else { return [] }
        var found: [String] = []
        for case let stream? in mids.map({ $0["stream"]?.text }) where !found.contains(stream) {
            found.append(stream)
        }
        return found
    }
}
