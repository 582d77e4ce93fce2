import Contract
import JSON

/// Topic subscriptions and kept messages of one room.
///
/// Messages have no effect on media, so the room itself does not know of them.
struct MessageBoard {
    private struct Kept {
        var message: Message
        var to: Set<ParticipantID>?
        var bytes: Int
    }

    private struct Topic {
        var subscribers: Set<ParticipantID> = []
        var kept: [Kept] = []
    }

    private var topics: [ShortText: Topic] = [:]
    private var bytes = 0
    private var last: UInt64 = 0
    private let limits: ControlLimits

    init(limits: ControlLimits) { self.limits = limits }

    /// Returns whether a topic exists or can be created within the limit.
    func hasRoom(for topic: ShortText) -> Bool {
        topics[topic] != nil || topics.count < limits.messageTopics
    }

    /// Publishes a message; returns it with its number, and the ids of its recipients, sorted.
    mutating func publish(
        _ params: MessagePublish.Params,
        at time: Double
    ) -> (Message, [ParticipantID]) {
        last += 1
        let message = Message(
            number: last,
            topic: params.topic,
            message: params.message,
            payload: params.payload,
            from: params.from,
            time: time
        )
        let to = params.to.map(Set.init)
        if params.persist == true { keep(message, to) }
        let subscribers = topics[params.topic]?.subscribers ?? []
        let audience = to.map(subscribers.intersection) ?? subscribers
        return (message, audience.sorted())
    }

    private mutating func keep(_ message: Message, _ to: Set<ParticipantID>?) {
        let size = JSON.encoded(message).count
        var topic = topics[message.topic] ?? Topic()
        topic.kept.append(Kept(message: message, to: to, bytes: size))
        bytes += size
        while topic.kept.count > limits.messagesPerTopic
            || (bytes > limits.messageBytes && !topic.kept.isEmpty)
        {
            bytes -= topic.kept.removeFirst().bytes
        }
        topics[message.topic] = topic
        forget(message.topic)
    }

    /// Subscribes to a topic; returns the kept messages for this participant, oldest first.
    mutating func subscribe(_ participant: ParticipantID, to topic: ShortText) -> [Message] {
        topics[topic, default: Topic()].subscribers.insert(participant)
        let kept = topics[topic]?.kept ?? []
        return kept.filter { $0.to?.contains(participant) != false }.map(\.message)
    }

    mutating func unsubscribe(_ participant: ParticipantID, from topic: ShortText) {
        guard topics[topic]?.subscribers.remove(participant) != nil else { return }
        forget(topic)
    }

    /// Removes the subscriptions of a participant that has left.
    mutating func remove(_ participant: ParticipantID) {
        for topic in Array(topics.keys) { unsubscribe(participant, from: topic) }
    }

    private mutating func forget(_ topic: ShortText) {
        guard let there = topics[topic], there.subscribers.isEmpty, there.kept.isEmpty else {
            return
        }
        topics[topic] = nil
    }
}
