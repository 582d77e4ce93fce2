import Contract
import JSON
import Rooms

/// A participant's subscription to a topic.
struct Subscriber: Hashable {
    var participant: ParticipantID
    var topic: ShortText

    /// Name of its record: the participant, whose id has no slash, and the topic's bytes in
    /// hexadecimal, since records are told apart by bytes and texts are not.
    var name: String {
        let digits = topic.rawValue.utf8.map { byte in
            (byte < 16 ? "0" : "") + String(byte, radix: 16)
        }
        return "\(participant.rawValue)/\(digits.joined())"
    }

    init(participant: ParticipantID, topic: ShortText) {
        self.participant = participant
        self.topic = topic
    }

    init?(name: String) {
        let parts = name.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard parts.count == 2, parts[1].count % 2 == 0 else { return nil }
        var bytes: [UInt8] = []
        var rest = parts[1]
        while !rest.isEmpty {
            guard let byte = UInt8(String(Substring(rest.prefix(2))), radix: 16) else { return nil }
            bytes.append(byte)
            rest = rest.dropFirst(2)
        }
        guard let text = String(validating: bytes, as: UTF8.self),
            let topic = ShortText(rawValue: text)
        else { return nil }
        self.init(participant: ParticipantID(String(Substring(parts[0]))), topic: topic)
    }
}

/// Records of a message board that have changed; `nil` for messages that are gone.
struct UnsavedMessages {
    var messages: [UInt64: [UInt8]?] = [:]
    var subscribers: [Subscriber: Bool] = [:]
}

/// Topic subscriptions and kept messages of one room.
///
/// Messages have no effect on media, so the room itself does not know of them.
struct MessageBoard {
    private struct Kept: Codable {
        var message: Message
        var to: Set<ParticipantID>?
        var bytes: Int
    }

    private struct Topic {
        var subscribers: Set<ParticipantID> = []
        var kept: [Kept] = []
    }

    /// Audience of a topic as last made, which is not saved.
    private struct MadeAudience {
        /// The audience of all subscribers, for the members of a version of the room's list.
        var written: (members: UInt64, audience: Audience)?
        /// Members who are not subscribed, while they are few, at a version of the room's list.
        var others: (members: UInt64, ids: Set<ParticipantID>)?
    }

    private var topics: [ShortText: Topic] = [:]
    private var made: [ShortText: MadeAudience] = [:]
    private var bytes = 0
    private var last: UInt64 = 0
    /// Records that have changed since they were last taken to be saved.
    private var unsaved = UnsavedMessages()
    /// Number of times that all members were looked at for an audience; for tests.
    private(set) var scans = 0
    private let limits: ControlLimits

    init(limits: ControlLimits) { self.limits = limits }

    /// Returns whether a topic exists or can be created within the limit.
    func hasRoom(for topic: ShortText) -> Bool {
        topics[topic] != nil || topics.count < limits.messageTopics
    }

    /// Publishes a message; returns it with its number, and its audience.
    mutating func publish(
        _ params: MessagePublish.Params,
        among members: Roster<Room.Participant>,
        at time: Double
    ) -> (Message, Audience) {
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
        guard let to else { return (message, audience(of: params.topic, among: members)) }
        let subscribers = topics[params.topic]?.subscribers ?? []
        return (message, .participants(to.intersection(subscribers).sorted()))
    }

    /// Returns the audience of a topic, in the shortest form.
    ///
    /// It is made once for many messages, and follows the changes of the members, so that one to
    /// nearly everybody costs little in a room of any size.
    private mutating func audience(
        of topic: ShortText,
        among members: Roster<Room.Participant>
    ) -> Audience {
        guard let subscribers = topics[topic]?.subscribers else { return .participants([]) }
        if let written = made[topic]?.written, written.members == members.listVersion {
            return written.audience
        }
        let audience = makeAudience(of: topic, subscribers, among: members)
        made[topic, default: MadeAudience()].written = (members.listVersion, audience)
        return audience
    }

    private mutating func makeAudience(
        of topic: ShortText,
        _ chosen: Set<ParticipantID>,
        among members: Roster<Room.Participant>
    ) -> Audience {
        let left = members.listedCount - chosen.count
        guard left > 0 else { return .all }
        guard left < chosen.count, left <= Audience.idLimit else {
            made[topic]?.others = nil
            return .participants(chosen.sorted())
        }
        var others = made[topic]?.others?.ids ?? []
        // In place, so that the set is not copied.
        let version = made[topic]?.others?.members
        made[topic]?.others = nil
        if let version, let changes = members.listChanges(since: version) {
            for name in changes {
                let id = ParticipantID(name)
                let isOther = members[name]?.admitted == true && !chosen.contains(id)
                if isOther { others.insert(id) } else { others.remove(id) }
            }
        } else {
            scans += 1
            let listed = members.listedNames.map { ParticipantID($0) }
            others = Set(listed.filter { !chosen.contains($0) })
        }
        made[topic, default: MadeAudience()].others = (members.listVersion, others)
        return .except(others.sorted())
    }

    private mutating func keep(_ message: Message, _ to: Set<ParticipantID>?) {
        let size = JSON.encoded(message).count
        var topic = topics[message.topic] ?? Topic()
        // In place, so that the list is not copied.
        topics[message.topic] = nil
        let kept = Kept(message: message, to: to, bytes: size)
        topic.kept.append(kept)
        unsaved.messages[message.number] = .some(JSON.compact(kept))
        bytes += size
        while topic.kept.count > limits.messagesPerTopic
            || (bytes > limits.messageBytes && !topic.kept.isEmpty)
        {
            let oldest = topic.kept.removeFirst()
            unsaved.messages[oldest.message.number] = .some(nil)
            bytes -= oldest.bytes
        }
        topics[message.topic] = topic
        forget(message.topic)
    }

    /// Subscribes to a topic; returns the kept messages for this participant, oldest first.
    mutating func subscribe(_ participant: ParticipantID, to topic: ShortText) -> [Message] {
        set(participant, of: topic, isSubscribed: true)
        let kept = topics[topic]?.kept ?? []
        return kept.filter { $0.to?.contains(participant) != false }.map(\.message)
    }

    /// Returns the topics behind a name, in the order of their names.
    ///
    /// `participant` leaves those that it is subscribed to.
    func topics(of participant: ParticipantID?, after name: String?) -> [TopicInfo] {
        topics.filter { topic, about in
            name.map { $0 < topic.rawValue } != false
                && participant.map(about.subscribers.contains) != false
        }
        .map { topic, about in
            TopicInfo(topic: topic, subscribers: about.subscribers.count, kept: about.kept.count)
        }
        .sorted { $0.topic.rawValue < $1.topic.rawValue }
    }

    mutating func unsubscribe(_ participant: ParticipantID, from topic: ShortText) {
        guard topics[topic]?.subscribers.contains(participant) == true else { return }
        set(participant, of: topic, isSubscribed: false)
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
        made[topic] = nil
    }

    private mutating func set(
        _ participant: ParticipantID,
        of topic: ShortText,
        isSubscribed: Bool
    ) {
        var changed = topics[topic] ?? Topic()
        topics[topic] = nil
        if isSubscribed {
            changed.subscribers.insert(participant)
            made[topic]?.others?.ids.remove(participant)
        } else {
            changed.subscribers.remove(participant)
            // Somebody who has left is removed again with that change of the list.
            made[topic]?.others?.ids.insert(participant)
        }
        topics[topic] = changed
        unsaved.subscribers[Subscriber(participant: participant, topic: topic)] = isSubscribed
        made[topic]?.written = nil
    }
}

// Topics as they are saved.
extension MessageBoard {
    /// Number of the last message.
    var lastNumber: UInt64 { last }

    /// Returns what has changed since the last call.
    mutating func takeUnsaved() -> UnsavedMessages {
        var taken = UnsavedMessages()
        swap(&taken, &unsaved)
        return taken
    }

    /// Takes the saved subscribers, and the kept messages in any order.
    mutating func restore(_ subscribers: [Subscriber], _ messages: [JSON]) throws {
        for one in subscribers { set(one.participant, of: one.topic, isSubscribed: true) }
        let kept = try messages.map { try $0.decode(Kept.self, isClosed: false) }
        for one in kept.sorted(by: { $0.message.number < $1.message.number }) {
            topics[one.message.topic, default: Topic()].kept.append(one)
            unsaved.messages[one.message.number] = .some(JSON.compact(one))
            bytes += one.bytes
        }
    }

    mutating func restore(lastNumber: UInt64) { last = lastNumber }
}
