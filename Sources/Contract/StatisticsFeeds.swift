import JSON

/// Sends statistics of rooms to this connection at intervals, as `stats` events.
///
/// A connection has one such subscription; a second call replaces the first. It ends with the
/// connection and is independent of `events.subscribe`.
public enum StatsSubscribe: IPCMethod {
    public static let name = "stats.subscribe"
    public typealias Result = Done

    public struct Params: Codable, Hashable, Sendable {
        /// Most rooms that one call names.
        public static let roomLimit = 10_000

        /// Rooms to report on, present or future, at most 10,000; `nil` for all.
        public var rooms: [RoomID]?
        /// Seconds from one report of a room to the next: 1 to 60.
        public var seconds: Int

        public init(rooms: [RoomID]? = nil, seconds: Int) {
            self.rooms = rooms
            self.seconds = seconds
        }

        public init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            try container.note(.count(0...Self.roomLimit), .rooms)
            rooms = try container.decodeIfPresent([RoomID].self, forKey: .rooms)
            guard (rooms?.count ?? 0) <= Self.roomLimit else {
                throw container.refusal(.rooms, "must have 0 to \(Self.roomLimit) elements")
            }
            try container.note(.integers(Self.range), .seconds)
            seconds = try container.decode(Int.self, forKey: .seconds)
            guard Self.range.contains(seconds) else {
                throw container.refusal(.seconds, "must be 1 to 60")
            }
        }

        private static let range = 1...60
    }
}

/// Ends `stats.subscribe`; without effect if there is none.
public enum StatsUnsubscribe: IPCMethod {
    public static let name = "stats.unsubscribe"
    public typealias Params = Empty
    public typealias Result = Done
}

/// `stats`: statistics of a room, for `stats.subscribe`.
///
/// It is sent to one connection only; its `audience` is empty and its `seq` 0, as it is not one of
/// the room's events. The statistics of a large room come in several parts.
public struct RoomStats: EventData {
    public static let event = "stats"
    public var transports: [TransportStats]
    public var streams: [StreamStats]
    public var subscriptions: [SubscriptionStats]
    /// Number of this part, from 1.
    public var part: Int
    /// Number of the next part; `nil` in the last one.
    public var next: Int?

    public init(
        transports: [TransportStats] = [],
        streams: [StreamStats] = [],
        subscriptions: [SubscriptionStats] = [],
        part: Int = 1,
        next: Int? = nil
    ) {
        self.transports = transports
        self.streams = streams
        self.subscriptions = subscriptions
        self.part = part
        self.next = next
    }
}
