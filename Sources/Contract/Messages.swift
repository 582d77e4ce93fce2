public import JSON

/// A message published to a topic of a room.
public struct Message: Codable, Hashable, Sendable {
    /// Longest message text, and longest payload as JSON, in bytes.
    public static let byteLimit = 65_536

    /// Number of the message in its room, counted from 1.
    public var number: UInt64
    public var topic: ShortText
    public var message: String
    public var payload: JSON?
    /// Sender; `nil` for the signalling server itself.
    public var from: ParticipantID?
    /// Unix time, in seconds.
    public var time: Double

    public init(
        number: UInt64,
        topic: ShortText,
        message: String,
        payload: JSON?,
        from: ParticipantID?,
        time: Double
    ) {
        self.number = number
        self.topic = topic
        self.message = message
        self.payload = payload
        self.from = from
        self.time = time
    }
}

/// Publishes a message to the subscribers of its topic, including the sender.
public enum MessagePublish: IPCMethod {
    public static let name = "message.publish"
    public typealias Result = Done

    public struct Params: Codable, Hashable, Sendable {
        public var room: RoomID
        public var topic: ShortText
        public var message: String
        /// Any JSON value, of at most 65,536 bytes and 32 levels of nesting.
        public var payload: JSON?
        public var from: ParticipantID?
        /// Restricts delivery to those of these participants who are subscribed.
        public var to: [ParticipantID]?
        /// Whether the message is kept for later subscribers.
        public var persist: Bool?

        public init(
            room: RoomID,
            topic: ShortText,
            message: String,
            payload: JSON? = nil,
            from: ParticipantID? = nil,
            to: [ParticipantID]? = nil,
            persist: Bool? = nil
        ) {
            self.room = room
            self.topic = topic
            self.message = message
            self.payload = payload
            self.from = from
            self.to = to
            self.persist = persist
        }

        public init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            room = try container.decode(RoomID.self, forKey: .room)
            topic = try container.decode(ShortText.self, forKey: .topic)
            try container.note(.bytes(Message.byteLimit), .message)
            message = try container.decode(String.self, forKey: .message)
            guard message.utf8.count <= Message.byteLimit else {
                throw container.refusal(.message, "is longer than \(Message.byteLimit) bytes")
            }
            if let payload = try container.decodeIfPresent(JSON.self, forKey: .payload) {
                if let cause = payload.cause(toRefuseMoreThan: Message.byteLimit) {
                    throw container.refusal(.payload, cause)
                }
                self.payload = payload
            }
            from = try container.decodeIfPresent(ParticipantID.self, forKey: .from)
            if try !container.isAbsent(.to) {
                to = try container.list(.to, 0...ParticipantDrop.countLimit)
            }
            persist = try container.decodeIfPresent(Bool.self, forKey: .persist)
        }
    }
}

/// Params of a participant's subscription to a topic.
public struct TopicOfParticipant: Codable, Hashable, Sendable {
    public var room: RoomID
    public var participant: ParticipantID
    public var topic: ShortText

    public init(room: RoomID, participant: ParticipantID, topic: ShortText) {
        self.room = room
        self.participant = participant
        self.topic = topic
    }
}

/// Subscribes a participant to a topic; returns the kept messages, oldest first.
public enum MessageSubscribe: IPCMethod {
    public static let name = "message.subscribe"

    public struct Params: PagedParams {
        public var room: RoomID
        public var participant: ParticipantID
        public var topic: ShortText
        public var limit: PageLimit?
        public var after: PageCursor?

        public init(
            room: RoomID,
            participant: ParticipantID,
            topic: ShortText,
            limit: PageLimit? = nil,
            after: PageCursor? = nil
        ) {
            self.room = room
            self.participant = participant
            self.topic = topic
            self.limit = limit
            self.after = after
        }
    }

    public struct Result: PagedResult {
        public var messages: [Message]
        public var next: PageCursor?
        /// `false` if the change is not in the room's journal yet.
        ///
        /// It is lost if the node is lost before the registry is back. Absent otherwise, and
        /// without a cluster.
        public var durable: Bool?

        public init(messages: [Message], next: PageCursor? = nil) {
            self.messages = messages
            self.next = next
        }

        public var page: [Message] { messages }
    }
}

/// Ends a participant's subscription to a topic.
public enum MessageUnsubscribe: IPCMethod {
    public static let name = "message.unsubscribe"
    public typealias Params = TopicOfParticipant
    public typealias Result = Done
}

/// `message.received`.
public struct MessageReceived: EventData {
    public static let event = "message.received"
    public var number: UInt64
    public var topic: ShortText
    public var message: String
    public var payload: JSON?
    public var from: ParticipantID?

    public init(_ message: Message) {
        number = message.number
        topic = message.topic
        self.message = message.message
        payload = message.payload
        from = message.from
    }
}

/// Returns a room's message topics, or those of one participant, in the order of their names.
public enum MessageTopics: IPCMethod {
    public static let name = "message.topics"

    public struct Params: PagedParams {
        public var room: RoomID
        /// Participant whose subscriptions are wanted; `nil` for all topics.
        public var participant: ParticipantID?
        public var limit: PageLimit?
        public var after: PageCursor?

        public init(
            room: RoomID,
            participant: ParticipantID? = nil,
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
        public var topics: [TopicInfo]
        public var next: PageCursor?

        public init(topics: [TopicInfo], next: PageCursor? = nil) {
            self.topics = topics
            self.next = next
        }

        public var page: [TopicInfo] { topics }
    }
}

/// A topic that has subscribers or kept messages.
public struct TopicInfo: Codable, Hashable, Sendable {
    public var topic: ShortText
    /// Number of its subscribers.
    public var subscribers: Int
    /// Number of its kept messages.
    public var kept: Int

    public init(topic: ShortText, subscribers: Int, kept: Int) {
        self.topic = topic
        self.subscribers = subscribers
        self.kept = kept
    }
}
