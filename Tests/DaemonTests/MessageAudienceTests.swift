import TestSupport
import Testing

@testable import Contract
@testable import ControlPlane
@testable import JSON
@testable import Rooms

/// Audiences of messages while members come, go, subscribe and unsubscribe.
@Suite struct MessageAudienceTests {
    private func topic(_ id: String) -> JSON {
        ["room": "r", "participant": .string(id), "topic": "chat"]
    }

    private static let publish: JSON = ["room": "r", "topic": "chat", "message": "x"]

    @Test func `of those named the subscribers get it, and nobody may be unknown`() throws {
        var driver = try ControlDriver.moderated()
        try driver.done("message.subscribe", topic("a"))
        let rows: [(to: JSON, code: Int?)] = [
            (["a", "b"], nil), (["x"], 4005), (["a", "x"], 4005),
        ]
        for (to, code) in rows {
            let message: JSON = ["room": "r", "topic": "chat", "message": "hi", "to": to]
            driver.events = []
            switch driver.call("message.publish", message) {
            case .success:
                #expect(code == nil && driver.takeEventSummaries() == ["message.received a"])
            case .failure(let error):
                #expect(error.code == code && error.message.contains("\"x\""))
                #expect(driver.takeEvents() == [])
            }
        }
    }

    @Test func `a join does not have all members looked at again`() throws {
        var driver = ControlDriver()
        try driver.room()
        for number in 0..<200 {
            try driver.join("p\(number)", ["snapshot": false])
            if number > 0 { try driver.done("message.subscribe", topic("p\(number)")) }
        }
        try driver.done("message.publish", Self.publish)
        for number in 200..<400 {
            try driver.join("p\(number)", ["snapshot": false])
            try driver.done("message.publish", Self.publish)
            #expect(driver.events.last?.audience == .except(["p0", ParticipantID("p\(number)")]))
            try driver.done("message.subscribe", topic("p\(number)"))
            try driver.done("participant.leave", topic("p\(number - 199)").members.leaving)
            try driver.done("message.publish", Self.publish)
            #expect(driver.events.last?.audience == .except(["p0"]))
        }
        #expect(driver.plane.rooms["r"]?.messages.scans == 1)
    }

    @Test(arguments: Extent.seeds(3, short: 1))
    func `an audience is that of the subscribers`(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        var driver = ControlDriver()
        try driver.room("r", ["emptySeconds": .null, "knock": true])
        var members: Set<String> = []
        var waiting: Set<String> = []
        var subscribed: Set<String> = []
        for _ in 0..<3_000 {
            let id = "p\(Int.random(in: 0..<12, using: &random))"
            let person: JSON = ["room": "r", "participant": .string(id)]
            switch Int.random(in: 0..<8, using: &random) {
            case 0 where !members.contains(id) && !waiting.contains(id):
                try driver.join(id)
                waiting.insert(id)
            case 1, 2:
                guard waiting.remove(id) != nil else { continue }
                try driver.done("participant.approve", person)
                members.insert(id)
            case 3 where Bool.random(using: &random):
                guard members.remove(id) != nil || waiting.remove(id) != nil else { continue }
                try driver.done("participant.leave", person)
                subscribed.remove(id)
            case 4, 5:
                guard members.contains(id) else { continue }
                try driver.done("message.subscribe", topic(id))
                subscribed.insert(id)
            case 6 where Bool.random(using: &random):
                guard members.contains(id) else { continue }
                try driver.done("message.unsubscribe", topic(id))
                subscribed.remove(id)
            default:
                driver.events = []
                try driver.done("message.publish", Self.publish)
                let audience = try #require(driver.events.last?.audience)
                let reached = members.filter { audience.includes(ParticipantID($0)) }
                #expect(reached == subscribed)
                if case .except(let ids) = audience {
                    #expect(Set(ids.map(\.rawValue)) == members.subtracting(subscribed))
                }
            }
        }
    }
}

extension [String: JSON] {
    /// Params of `participant.leave` from those of a topic.
    fileprivate var leaving: JSON { .object(filter { $0.key != "topic" }) }
}
