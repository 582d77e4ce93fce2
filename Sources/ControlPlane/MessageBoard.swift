import Contract
import JSON

/// The messages of one room: who hears which topic, and what is kept of it.
///
/// Messages decide nothing, so the room itself knows nothing of them.
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

    /// Whether a topic is there, or can be made.
    func hasRoom(for topic: ShortText) -> Bool {
        topics[topic] != nil || topics.count < limits.messageTopics
    }

    /// Takes a message; returns it with its number, and who should hear it, by their ids.
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

    /// Begins to hear a topic; returns what was kept of it for this participant, oldest first.
    mutating func subscribe(_ participant: ParticipantID, to topic: ShortText) -> [Message] {
        topics[topic, default: Topic()].subscribers.insert(participant)
        let kept = topics[topic]?.kept ?? []
        return kept.filter { $0.to?.contains(participant) != false }.map(\.message)
    }

    mutating func unsubscribe(_ participant: ParticipantID, from topic: ShortText) {
        guard topics[topic]?.subscribers.remove(participant) != nil else { return }
        forget(topic)
    }

    /// Somebody has left the room.
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
