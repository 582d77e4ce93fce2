public import JSON

/// A picture's size, in pixels.
public struct Resolution: Codable, Hashable, Sendable {
    public var width: Int
    public var height: Int

    public init(width: Int, height: Int) {
        self.width = width
        self.height = height
    }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        try container.note(.integers(Limits.pixels), .width)
        try container.note(.integers(Limits.pixels), .height)
        width = try container.decode(Int.self, forKey: .width)
        height = try container.decode(Int.self, forKey: .height)
        for (key, value) in [(CodingKeys.width, width), (.height, height)] {
            guard Limits.pixels.contains(value) else {
                throw container.refusal(key, "must be 1 to \(Limits.pixels.upperBound)")
            }
        }
    }
}

/// Highest frame rate that a subscriber wants, in frames a second: 1 to 240.
public struct FrameRate: Codable, Hashable, Sendable {
    public var framesPerSecond: Double

    public init(_ framesPerSecond: Double) { self.framesPerSecond = framesPerSecond }

    public init(from decoder: any Decoder) throws {
        framesPerSecond = try decoder.singleValueContainer().decode(Double.self)
        guard Limits.frameRate.contains(framesPerSecond) else {
            throw decoder.refusal("must be 1 to 240")
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(framesPerSecond)
    }
}

/// Priority of a video among those that a participant watches: 0 to 1000, the highest is served
/// first.
public struct Priority: Codable, Hashable, Sendable {
    public var rawValue: Int

    public init(_ rawValue: Int) { self.rawValue = rawValue }

    public init(from decoder: any Decoder) throws {
        rawValue = try decoder.singleValueContainer().decode(Int.self)
        guard Limits.priority.contains(rawValue) else {
            throw decoder.refusal("must be 0 to 1000")
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(rawValue)
    }
}

/// Subscribes a participant to a stream, on slots of its transports.
public enum SubscriptionAdd: IPCMethod {
    public static let name = "subscription.add"

    public struct Params: Codable, Hashable, Sendable {
        public var room: RoomID
        public var participant: ParticipantID
        public var stream: StreamID
        public var audioMid: Mid?
        public var videoMid: Mid?
        public var preferredResolution: Resolution?
        public var preferredFrameRate: FrameRate?
        public var priority: Priority?
        public var audioFallback: Bool?
        /// `refuse` by default.
        public var ifExists: IfExists?

        public init(
            room: RoomID,
            participant: ParticipantID,
            stream: StreamID,
            audioMid: Mid? = nil,
            videoMid: Mid? = nil
        ) {
            self.room = room
            self.participant = participant
            self.stream = stream
            self.audioMid = audioMid
            self.videoMid = videoMid
        }
    }

    /// Effect of subscribing to a stream that is watched already.
    public enum IfExists: String, Codable, Hashable, Sendable, CaseIterable {
        /// The call is refused with 4009, which names the subscription.
        case refuse
        /// The existing subscription is the result, unchanged.
        case `return`
    }

    public struct Result: Codable, Hashable, Sendable {
        public var subscription: SubscriptionID
        public var audioMid: Mid?
        public var videoMid: Mid?
        /// `false` if the change is not in the room's journal yet.
        ///
        /// It is lost if the node is lost before the registry is back. Absent otherwise, and
        /// without a cluster.
        public var durable: Bool?

        public init(subscription: SubscriptionID, audioMid: Mid?, videoMid: Mid?) {
            self.subscription = subscription
            self.audioMid = audioMid
            self.videoMid = videoMid
        }
    }
}

/// Changes the stream or the preferences of a subscription.
public enum SubscriptionUpdate: IPCMethod {
    public static let name = "subscription.update"
    public typealias Result = Done

    public struct Params: Codable, Hashable, Sendable {
        public var room: RoomID
        public var subscription: SubscriptionID
        /// Another stream for the same slots.
        public var stream: StreamID?
        /// The subscriber's own switches for audio and video.
        public var audio: Bool?
        public var video: Bool?
        public var preferredResolution: Change<Resolution>
        public var preferredFrameRate: Change<FrameRate>
        public var priority: Change<Priority>
        public var audioFallback: Change<Bool>
        public var by: ParticipantID?

        public init(
            room: RoomID,
            subscription: SubscriptionID,
            stream: StreamID? = nil,
            audio: Bool? = nil,
            video: Bool? = nil,
            preferredResolution: Change<Resolution> = .keep,
            preferredFrameRate: Change<FrameRate> = .keep,
            priority: Change<Priority> = .keep,
            audioFallback: Change<Bool> = .keep,
            by: ParticipantID? = nil
        ) {
            self.room = room
            self.subscription = subscription
            self.stream = stream
            self.audio = audio
            self.video = video
            self.preferredResolution = preferredResolution
            self.preferredFrameRate = preferredFrameRate
            self.priority = priority
            self.audioFallback = audioFallback
            self.by = by
        }
    }
}

/// Ends a subscription and frees its slots.
public enum SubscriptionRemove: IPCMethod {
    public static let name = "subscription.remove"
    public typealias Result = Done

    public struct Params: Codable, Hashable, Sendable {
        public var room: RoomID
        public var subscription: SubscriptionID
        public var by: ParticipantID?

        public init(room: RoomID, subscription: SubscriptionID, by: ParticipantID? = nil) {
            self.room = room
            self.subscription = subscription
            self.by = by
        }
    }
}
