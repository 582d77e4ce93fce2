package import RTP
package import WorkerInterface

extension Room {
    /// What a signalling server may ask of a room; who may ask it is checked in the room.
    package enum Call: Sendable {
        case join(Join)
        case leave(participant: String)
        case offer(Offer)
        case closeTransport(participant: String, transport: String)
        case updateStream(String, audio: Bool?, video: Bool?)
        case unpublish(String, by: String?)
        case subscribe(Subscribe)
        case updateSubscription(String, SubscriptionUpdate)
        case unsubscribe(String)
        case follow(Follow)
        case close(by: String?, reason: String)
        case setState(State, by: String?)
        case update(Settings?, by: String?)
        case lock(Bool, by: String?)
        case hardMuteRoom(Bool, by: String?)
        case hardMute(String, Set<MediaKind>, on: Bool, by: String?)
        case drop([String], by: String?, reason: String)
        case answerKnock(String, approve: Bool, by: String?)
        case setMode(String, Mode, ModeVocabulary?, by: String?)
        case changeRole(String, to: String, force: Bool, by: String?)
        case answerRoleRequest(String, of: String, accept: Bool)
        case changeRoles(to: String, from: [String]?, by: String?)
        case transfer(to: String, by: String)
        case floor(FloorStep, String, by: String?)
        case pin([String], on: Bool, by: String?)
        case startRecording(streams: [String]?, by: String?)
        case stopRecording(by: String?)
        case startStreaming(StreamingWish, by: String?)
        /// By its name; `nil`: all of the room.
        case stopStreaming(String?, by: String?)
        case startOutput(OutputWish, by: String?)
        case stopOutput(String, by: String?)
    }

    /// Carries a call out, or refuses it and leaves everything as it was.
    package mutating func apply(
        _ call: Call,
        _ shared: inout Shared
    ) throws(Refusal) -> Outcome {
        var outcome = try carryOut(call, &shared)
        settleTalkers(&shared, &outcome.change)
        settleTaps(&shared, &outcome.change)
        settleRelays(&outcome.change)
        return outcome
    }

    private mutating func carryOut(
        _ call: Call,
        _ shared: inout Shared
    ) throws(Refusal) -> Outcome {
        switch call {
        case .join(let join): return try self.join(join, &shared)
        case .leave(let participant): return try leave(participant, &shared)
        case .offer(let offer): return try self.offer(offer, &shared)
        case .closeTransport(let participant, let transport):
            return try closeTransport(transport, of: participant, &shared)
        case .updateStream(let stream, let audio, let video):
            return try update(stream: stream, audio: audio, video: video, &shared)
        case .unpublish(let stream, let actor):
            return try unpublish(stream: stream, by: actor, &shared)
        case .subscribe(let subscribe): return try self.subscribe(subscribe, &shared)
        case .updateSubscription(let subscription, let update):
            return try self.update(subscription: subscription, update, &shared)
        case .unsubscribe(let subscription): return try unsubscribe(subscription)
        case .follow(let follow): return try self.follow(follow, &shared)
        case .close(let actor, let reason):
            let refusal = Refusal(
                code: 5116,
                reason: "not-permitted",
                message: "closing the room needs the permission close"
            )
            try check(actor, may: .close, orElse: refusal)
            return close(by: actor, reason, &shared)
        default: return try moderate(call, &shared)
        }
    }

    private mutating func moderate(
        _ call: Call,
        _ shared: inout Shared
    ) throws(Refusal) -> Outcome {
        switch call {
        case .setState(let state, let actor): return try setState(state, by: actor, &shared)
        case .update(let settings, let actor):
            return try update(settings: settings, by: actor, &shared)
        case .lock(let on, let actor): return try lock(on, by: actor)
        case .hardMuteRoom(let on, let actor): return try hardMute(on, by: actor, &shared)
        case .hardMute(let id, let media, let on, let actor):
            return try hardMute(id, media, on, by: actor, &shared)
        case .drop(let ids, let actor, let reason): return try drop(ids, by: actor, reason, &shared)
        case .answerKnock(let id, let approve, let actor):
            return try answerKnock(of: id, approve: approve, by: actor, &shared)
        case .setMode(let id, let mode, let vocabulary, let actor):
            return try setMode(of: id, mode, vocabulary, by: actor, &shared)
        case .changeRole(let id, let role, let force, let actor):
            return try changeRole(of: id, to: role, force: force, by: actor, &shared)
        case .answerRoleRequest(let request, let id, let accept):
            return try answerRoleRequest(request, of: id, accept: accept, &shared)
        case .changeRoles(let role, let sources, let actor):
            return try changeRoles(to: role, from: sources, by: actor, &shared)
        case .transfer(let id, let actor): return try transfer(to: id, by: actor, &shared)
        case .floor(let step, let id, let actor):
            return try floor(step, id, by: actor, &shared)
        case .pin(let ids, let on, let actor): return try pin(ids, on, by: actor)
        case .startRecording(let streams, let actor):
            return try startRecording(of: streams, by: actor, &shared)
        case .stopRecording(let actor): return try stopRecording(by: actor, &shared)
        case .startStreaming(let wish, let actor):
            return try startStreaming(wish, by: actor, &shared)
        case .stopStreaming(let name, let actor):
            return try stopStreaming(name, by: actor, &shared)
        case .startOutput(let wish, let actor): return try startOutput(wish, by: actor, &shared)
        case .stopOutput(let name, let actor): return try stopOutput(name, by: actor, &shared)
        case .join, .leave, .offer, .closeTransport, .updateStream, .unpublish, .subscribe,
            .updateSubscription, .unsubscribe, .follow, .close:
            preconditionFailure("carried out by `apply`")
        }
    }

    package struct Join: Sendable {
        package var participant: String
        package var name: String?
        package var role: String?
        package var mode: Mode?
        package var vocabulary: ModeVocabulary?

        package init(participant: String) { self.participant = participant }
    }

    package struct Offer: Sendable {
        package var participant: String
        package var sdp: String
        package var transport: String
        package var sources: [String: MediaSource]
        package var audioFallback: Bool?

        package init(
            participant: String,
            sdp: String,
            transport: String = Transport.usualName,
            sources: [String: MediaSource] = [:],
            audioFallback: Bool? = nil
        ) {
            self.participant = participant
            self.sdp = sdp
            self.transport = transport
            self.sources = sources
            self.audioFallback = audioFallback
        }
    }

    package struct Subscribe: Sendable {
        package var participant: String
        package var stream: String
        package var audioMid: String?
        package var videoMid: String?
        package var wishes: Wishes

        package init(
            participant: String,
            stream: String,
            audioMid: String? = nil,
            videoMid: String? = nil,
            wishes: Wishes = Wishes()
        ) {
            self.participant = participant
            self.stream = stream
            self.audioMid = audioMid
            self.videoMid = videoMid
            self.wishes = wishes
        }
    }

    package struct Follow: Sendable {
        package var participant: String
        /// None twice; both lists empty end the following.
        package var audioMids: [String]
        package var videoMids: [String]
        package var wishes: Wishes

        package init(
            participant: String,
            audioMids: [String],
            videoMids: [String],
            wishes: Wishes = Wishes()
        ) {
            self.participant = participant
            self.audioMids = audioMids
            self.videoMids = videoMids
            self.wishes = wishes
        }

        func mids(_ kind: MediaKind) -> [String] {
            switch kind {
            case .audio: audioMids
            case .video: videoMids
            }
        }
    }

    package struct SubscriptionUpdate: Sendable {
        package var stream: String?
        package var audio: Bool?
        package var video: Bool?
        package var size = Setting<Size>.keep
        package var frameRate = Setting<Double>.keep
        package var priority = Setting<Int>.keep

        package init() {}
    }

    /// In pixels.
    package struct Size: Hashable, Sendable {
        package var width: Int
        package var height: Int

        package init(width: Int, height: Int) {
            self.width = width
            self.height = height
        }
    }

    /// What an update says of one preference.
    package enum Setting<Value: Sendable>: Sendable {
        case keep, clear
        case set(Value)

        func applied(to old: Value?) -> Value? {
            switch self {
            case .keep: old
            case .clear: nil
            case .set(let value): value
            }
        }
    }

    /// What a call came to.
    package struct Outcome: Sendable {
        package var result = Result.none
        package var change = Change()
        /// It takes a right away: the reply says how the fence went.
        package var isFenced = false
        /// In process until all workers have passed it; `Room.settle` is told then.
        package var process: Process?

        package init(
            result: Result = .none,
            change: Change = Change(),
            isFenced: Bool = false
        ) {
            self.result = result
            self.change = change
            self.isFenced = isFenced
        }
    }

    package enum Result: Hashable, Sendable {
        case none
        case joined
        case awaited
        case answered(Answered)
        /// The number of the new subscription.
        case subscribed(UInt64)
        /// The id of a request to change role.
        case requested(String)
        /// Those of the participants named who were there.
        case dropped([String])
        /// A recording has begun.
        case recording(TapID)
        /// A live stream is about to begin: it has when its server takes it.
        case streaming(TapID)
        /// A stream goes out as plain RTP.
        case tapped(TapID)
    }

    package struct Answered: Hashable, Sendable {
        package var sdp: String
        package var transport: String
        package var media: [AnsweredLine]
    }

    package struct AnsweredLine: Hashable, Sendable {
        package var mid: String
        package var kind: MediaKind?
        package var direction: Direction
        package var stream: String?
        package var refused: String?
    }

    /// All that follows from one call or notice, collected while the room changes.
    package struct Change: Sendable {
        /// By worker, in order.
        package private(set) var commands: [Int: [WorkerCommand]] = [:]
        package internal(set) var announcements: [Announcement] = []
        package internal(set) var opened: [Place] = []
        /// Go back to their pools once the workers have passed the fence.
        package internal(set) var freed: [Place] = []
        /// Homes whose mirrors may be other ones than the workers were told.
        private var touched: Set<RelayTarget> = []

        mutating func tell(_ worker: Int, _ command: WorkerCommand) {
            commands[worker, default: []].append(command)
        }

        /// This worker has to pass the fence, though it may have nothing to do.
        mutating func fence(_ worker: Int) { commands[worker, default: []] += [] }

        mutating func touch(_ home: RelayTarget) { touched.insert(home) }

        /// The homes touched until now, in order; they are handed out once.
        mutating func takeTouched() -> [RelayTarget] {
            defer { touched = [] }
            return touched.sorted {
                ($0.worker, $0.publication.index) < ($1.worker, $1.publication.index)
            }
        }

        mutating func announce(_ news: News, to audience: Audience) {
            announcements.append(Announcement(news: news, to: audience))
        }
    }

    /// What all rooms share, lent to one of them for a call.
    package struct Shared: Sendable {
        /// One a worker.
        package var identifiers: [WorkerIdentifiers]
        package var locals: [LocalDescription]
        package var random: RandomSource
        package var lastSubscription: UInt64 = 0
        /// `nil`: nothing can read along.
        package var taps: TapService?
        /// What live streams are held to.
        package var streaming = StreamingService()
        /// What streams that go out as plain RTP are held to.
        package var outputs = OutputService()
        package var limits: Limits
        /// How busy the workers are.
        package var load: LoadBook
        package var memory: MemoryBook
        /// In seconds; renewed before each call.
        package var unixTime = 0.0
        /// The same moment on the workers' clock.
        package var now = Instant(nanoseconds: 0)

        package init(
            identifiers: [WorkerIdentifiers],
            locals: [LocalDescription],
            random: RandomSource,
            limits: Limits
        ) {
            self.identifiers = identifiers
            self.locals = locals
            self.random = random
            self.limits = limits
            load = LoadBook(workers: locals.count, loadPercent: limits.workerLoadPercent)
            memory = MemoryBook(limitMegabytes: limits.memoryMegabytes)
        }
    }

    /// Bounds on what one room keeps; past one the call is refused with `4029 limit-reached`.
    package struct Limits: Hashable, Sendable {
        /// Where a room's settings name no lower number.
        package var participantsPerRoom = 1_000
        package var transportsPerParticipant = 2
        package var subscriptionsPerParticipant = 100
        /// By how many transports a room's least loaded worker may exceed the least loaded of all
        /// before the room spreads to that one.
        package var workerSpread = 8
        /// Percent of a worker's time from which on it gets nobody new.
        package var workerLoadPercent = 85
        /// What may be resident before nobody new is let in, in 2^20 bytes; 0: no limit.
        package var memoryMegabytes = 0

        package init() {}
    }
}

/// Where random numbers come from: the system in the daemon, a seed in tests.
package struct RandomSource: RandomNumberGenerator, Sendable {
    private let draw: @Sendable () -> UInt64

    package init(_ draw: @escaping @Sendable () -> UInt64) { self.draw = draw }

    package mutating func next() -> UInt64 { draw() }

    /// Fit for secrets.
    package static let system = Self {
        var generator = SystemRandomNumberGenerator()
        return generator.next()
    }
}
