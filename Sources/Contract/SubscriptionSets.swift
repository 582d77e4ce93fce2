import JSON

/// Makes the whole of a participant's explicit subscriptions in one call.
///
/// A stream that is watched already keeps its subscription and slots; its preferences become those
/// of the call. What the call does not name ends.
public enum SubscriptionSet: IPCMethod {
    public static let name = "subscription.set"

    public struct Params: Codable, Hashable, Sendable {
        /// Most subscriptions that one call may name.
        public static let countLimit = 1_000

        public var room: RoomID
        public var participant: ParticipantID
        /// No stream may occur twice.
        public var subscriptions: [Wanted]
        public var by: ParticipantID?

        public init(
            room: RoomID,
            participant: ParticipantID,
            subscriptions: [Wanted],
            by: ParticipantID? = nil
        ) {
            self.room = room
            self.participant = participant
            self.subscriptions = subscriptions
            self.by = by
        }

        public init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            room = try container.decode(RoomID.self, forKey: .room)
            participant = try container.decode(ParticipantID.self, forKey: .participant)
            subscriptions = try container.list(.subscriptions, 0...Self.countLimit)
            guard Set(subscriptions.map(\.stream)).count == subscriptions.count else {
                throw container.refusal(.subscriptions, "names a stream twice")
            }
            by = try container.decodeIfPresent(ParticipantID.self, forKey: .by)
        }
    }

    /// One subscription of the set.
    public struct Wanted: Codable, Hashable, Sendable {
        public var stream: StreamID
        /// Slots for a subscription that begins; one that exists keeps its own.
        public var audioMid: Mid?
        public var videoMid: Mid?
        public var preferredResolution: Resolution?
        public var preferredFrameRate: FrameRate?
        public var priority: Priority?
        public var audioFallback: Bool?

        public init(stream: StreamID) { self.stream = stream }
    }

    public struct Result: Codable, Hashable, Sendable {
        /// One result for each stream, in the order of the call.
        public var results: [Watched]
        public var fence: Fence?
        /// `false` if the change is not in the room's journal yet.
        ///
        /// It is lost if the node is lost before the registry is back. Absent otherwise, and
        /// without a cluster.
        public var durable: Bool?

        public init(results: [Watched], fence: Fence? = nil) {
            self.results = results
            self.fence = fence
        }
    }

    /// The subscription to one stream, or the error that refused it.
    public struct Watched: Codable, Hashable, Sendable {
        public var stream: StreamID
        public var subscription: SubscriptionID?
        public var audioMid: Mid?
        public var videoMid: Mid?
        public var error: IPCError?

        public init(
            stream: StreamID,
            subscription: SubscriptionID? = nil,
            audioMid: Mid? = nil,
            videoMid: Mid? = nil,
            error: IPCError? = nil
        ) {
            self.stream = stream
            self.subscription = subscription
            self.audioMid = audioMid
            self.videoMid = videoMid
            self.error = error
        }
    }
}

/// Returns a participant's subscriptions, oldest first.
public enum SubscriptionList: IPCMethod {
    public static let name = "subscription.list"

    public struct Params: PagedParams {
        public var room: RoomID
        public var participant: ParticipantID
        public var limit: PageLimit?
        public var after: PageCursor?

        public init(
            room: RoomID,
            participant: ParticipantID,
            limit: PageLimit? = nil,
            after: PageCursor? = nil
        ) {
            self.room = room
            self.participant = participant
            self.limit = limit
            self.after = after
        }
    }

    public struct Result: PagedResult {
        public var subscriptions: [SubscriptionInfo]
        public var next: PageCursor?

        public init(subscriptions: [SubscriptionInfo], next: PageCursor? = nil) {
            self.subscriptions = subscriptions
            self.next = next
        }

        public var page: [SubscriptionInfo] { subscriptions }
    }
}

/// A subscription as results describe it.
public struct SubscriptionInfo: Codable, Hashable, Sendable {
    public var subscription: SubscriptionID
    public var participant: ParticipantID
    public var stream: StreamID
    public var audioMid: Mid?
    public var videoMid: Mid?
    /// The subscriber's own switches.
    public var audio: Bool
    public var video: Bool
    public var preferredResolution: Resolution?
    public var preferredFrameRate: FrameRate?
    public var priority: Priority?
    public var audioFallback: Bool?
    /// Whether slots that follow the active speakers made it.
    public var followsTalkers: Bool

    public init(
        subscription: SubscriptionID,
        participant: ParticipantID,
        stream: StreamID,
        audio: Bool = true,
        video: Bool = true,
        followsTalkers: Bool = false
    ) {
        self.subscription = subscription
        self.participant = participant
        self.stream = stream
        self.audio = audio
        self.video = video
        self.followsTalkers = followsTalkers
    }
}
