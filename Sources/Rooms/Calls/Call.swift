package import RTP
package import WorkerInterface

extension Room {
    /// Call of a signalling server on a room; permissions are checked in the room.
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
        case startStreaming(StreamingRequest, by: String?)
        /// Stops one live stream by name; `nil`: all of the room.
        case stopStreaming(String?, by: String?)
        case startRTPForward(RTPForwardRequest, by: String?)
        case stopRTPForward(String, by: String?)
    }

    /// Applies a call, or throws a refusal and changes nothing.
    package mutating func apply(
        _ call: Call,
        _ shared: inout Shared
    ) throws(CallError) -> Outcome {
        var outcome = try carryOut(call, &shared)
        reconcileSpeakers(&shared, &outcome.change)
        reconcileTaps(&shared, &outcome.change)
        reconcileRelays(&outcome.change)
        return outcome
    }

    private mutating func carryOut(
        _ call: Call,
        _ shared: inout Shared
    ) throws(CallError) -> Outcome {
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
            let refusal = CallError(
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
    ) throws(CallError) -> Outcome {
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
        case .startStreaming(let request, let actor):
            return try startStreaming(request, by: actor, &shared)
        case .stopStreaming(let name, let actor):
            return try stopStreaming(name, by: actor, &shared)
        case .startRTPForward(let request, let actor):
            return try startRTPForward(request, by: actor, &shared)
        case .stopRTPForward(let name, let actor):
            return try stopRTPForward(name, by: actor, &shared)
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
            transport: String = Transport.defaultName,
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
        package var preferences: Preferences

        package init(
            participant: String,
            stream: String,
            audioMid: String? = nil,
            videoMid: String? = nil,
            preferences: Preferences = Preferences()
        ) {
            self.participant = participant
            self.stream = stream
            self.audioMid = audioMid
            self.videoMid = videoMid
            self.preferences = preferences
        }
    }

    package struct Follow: Sendable {
        package var participant: String
        /// Slots that follow the active speakers, without repetition.
        ///
        /// Two empty lists end the following.
        package var audioMids: [String]
        package var videoMids: [String]
        package var preferences: Preferences

        package init(
            participant: String,
            audioMids: [String],
            videoMids: [String],
            preferences: Preferences = Preferences()
        ) {
            self.participant = participant
            self.audioMids = audioMids
            self.videoMids = videoMids
            self.preferences = preferences
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

    /// Video size, in pixels.
    package struct Size: Hashable, Sendable {
        package var width: Int
        package var height: Int

        package init(width: Int, height: Int) {
            self.width = width
            self.height = height
        }
    }

    /// Change of one preference.
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

    /// Outcome of a call.
    package struct Outcome: Sendable {
        package var result = Result.none
        package var change = Change()
        /// Whether the call revokes a right; the reply then carries the fence's figures.
        package var isFenced = false
        /// Operation that is pending until all workers have passed the fence.
        package var process: PendingOperation?

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
        /// A subscription was made; its number.
        case subscribed(UInt64)
        /// A role change was requested; the request's id.
        case requested(String)
        /// The named participants that were present and have been dropped.
        case dropped([String])
        /// A recording was started.
        case recording(OutputID)
        /// A live stream was requested; it begins when its server accepts it.
        case streaming(OutputID)
        /// Forwarding a stream as plain RTP was started.
        case tapped(OutputID)
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

    /// Effects of one call or notice, collected while the room changes.
    package struct Change: Sendable {
        /// Commands for each worker, in order.
        package private(set) var commands: [Int: [WorkerCommand]] = [:]
        package internal(set) var announcements: [Announcement] = []
        package internal(set) var opened: [WorkerResource] = []
        /// Objects whose handles return to their pools once the workers have passed the fence.
        package internal(set) var freed: [WorkerResource] = []
        /// Publications whose mirrors may differ from the state the workers were told.
        private var touched: Set<RelayTarget> = []

        mutating func tell(_ worker: Int, _ command: WorkerCommand) {
            commands[worker, default: []].append(command)
        }

        /// Makes a worker pass the fence even if it has no commands.
        mutating func fence(_ worker: Int) { commands[worker, default: []] += [] }

        mutating func touch(_ home: RelayTarget) { touched.insert(home) }

        /// Returns the touched publications, sorted, and clears the set.
        mutating func takeTouched() -> [RelayTarget] {
            defer { touched = [] }
            return touched.sorted {
                ($0.worker, $0.publication.index) < ($1.worker, $1.publication.index)
            }
        }

        mutating func announce(_ news: Event, to audience: Audience) {
            announcements.append(Announcement(news: news, to: audience))
        }
    }

    /// State shared by all rooms, lent to one of them for a call.
    package struct Shared: Sendable {
        /// Handle pools, one for each worker.
        package var identifiers: [WorkerIdentifiers]
        package var locals: [LocalParameters]
        package var random: RandomSource
        package var lastSubscription: UInt64 = 0
        /// Service for recordings and other outputs; `nil`: not available.
        package var taps: TapService?
        /// Limits and permitted schemes of live streams.
        package var streaming = StreamingService()
        /// Limits of RTP forwards.
        package var outputs = RTPForwardService()
        package var limits: Limits
        /// Load of the workers, for admission.
        package var load: WorkerLoadTracker
        package var memory: MemoryAdmission
        /// Unix time, in seconds; set before each call.
        package var unixTime = 0.0
        /// The same moment on the workers' monotonic clock.
        package var now = Instant(nanoseconds: 0)

        package init(
            identifiers: [WorkerIdentifiers],
            locals: [LocalParameters],
            random: RandomSource,
            limits: Limits
        ) {
            self.identifiers = identifiers
            self.locals = locals
            self.random = random
            self.limits = limits
            load = WorkerLoadTracker(workers: locals.count, loadPercent: limits.workerLoadPercent)
            memory = MemoryAdmission(limitMegabytes: limits.memoryMegabytes)
        }
    }

    /// Limits of one room; exceeding one is refused with `4029 limit-reached`.
    package struct Limits: Hashable, Sendable {
        /// Participants, unless the room's settings have a lower limit.
        package var participantsPerRoom = 1_000
        package var transportsPerParticipant = 2
        package var subscriptionsPerParticipant = 100
        /// Largest accepted imbalance before a room spreads to another worker, in transports.
        ///
        /// It is the difference between the least loaded of the room's workers and the least loaded
        /// of all.
        package var workerSpread = 8
        /// Load at which a worker takes no new participants, in percent of its time.
        package var workerLoadPercent = 85
        /// Resident memory at which nobody new is admitted, in MiB (2^20 bytes); 0: no limit.
        package var memoryMegabytes = 0

        package init() {}
    }
}

/// Random number source: the system's in the daemon, a seeded one in tests.
package struct RandomSource: RandomNumberGenerator, Sendable {
    private let draw: @Sendable () -> UInt64

    package init(_ draw: @escaping @Sendable () -> UInt64) { self.draw = draw }

    package mutating func next() -> UInt64 { draw() }

    /// Cryptographically secure generator of the system.
    package static let system = Self {
        var generator = SystemRandomNumberGenerator()
        return generator.next()
    }
}
