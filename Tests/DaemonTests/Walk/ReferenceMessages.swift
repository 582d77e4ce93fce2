import JSON
import Rooms

/// Topics with their subscribers, and the messages kept.
struct ReferenceMessages {
    struct Kept {
        var topic: String
        var to: Set<String>?
        var shown: [String: JSON]
    }

    var hearers: [String: Set<String>] = [:]
    var kept: [Kept] = []
    var number: Int64 = 0

    mutating func forget(_ person: String) {
        hearers = hearers.mapValues { $0.subtracting([person]) }
    }
}

extension ReferenceRoom {
    mutating func carryOutMessage(_ call: ReferenceCall) throws(Refusal) -> JSON {
        let topic = call["topic"]
        switch call.method {
        case "message.publish":
            try publish(call)
            return [:]
        case "message.subscribe":
            let person = try target(call)
            guard !person.isAwaited else { throw Refusal(4010, "awaits-approval") }
            try checkChat()
            messages.hearers[topic, default: []].insert(person.id)
            let heard = messages.kept.filter {
                $0.topic == topic && $0.to?.contains(person.id) != false
            }
            return ["messages": .array(heard.map { .object($0.shown) })]
        default:
            let person = try target(call)
            messages.hearers[topic]?.remove(person.id)
            return [:]
        }
    }

    private func checkChat() throws(Refusal) {
        if state == "created" { throw Refusal(4091, "event-not-open") }
        if state == "ended" { throw Refusal(4091, "event-ended") }
    }

    private mutating func publish(_ call: ReferenceCall) throws(Refusal) {
        let topic = call["topic"]
        if case .string(let from)? = call.params["from"] {
            guard let sender = person(from) else { throw Refusal(4005, "no-such-participant") }
            guard !sender.isAwaited else { throw Refusal(4010, "awaits-approval") }
        }
        for id in call.params["to"]?.list ?? [] where person(id.word ?? "") == nil {
            throw Refusal(4005, "no-such-participant")
        }
        try checkChat()
        let addressed = call.params["to"].map { Set($0.list.compactMap(\.word)) }
        messages.number += 1
        var data: [String: JSON] = [
            "number": .integer(messages.number), "topic": .string(topic),
            "message": .string(call["message"]),
        ]
        data["payload"] = call.params["payload"]
        data["from"] = call.params["from"]
        if call.params["persist"] == true {
            var shown = data
            shown["time"] = "$time"
            messages.kept.append(.init(topic: topic, to: addressed, shown: shown))
            let ofTopic = messages.kept.indices.filter { messages.kept[$0].topic == topic }
            if ofTopic.count > 200 { messages.kept.remove(at: ofTopic[0]) }
        }
        let hearers = messages.hearers[topic] ?? []
        tell("message.received", to: addressed.map(hearers.intersection) ?? hearers, data)
    }
}
