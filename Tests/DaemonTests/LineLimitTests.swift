import Testing

@testable import Contract
@testable import ControlPlane
@testable import JSON

/// Replies and events, filled to the brim, stay within a line.
@Suite struct LineLimitTests {
    /// An id as long as ids may be.
    private static func long(_ number: Int) -> String {
        let digits = "\(number)"
        return String(repeating: "x", count: 128 - digits.count) + digits
    }

    @Test func `results for as many participants as a call may name fit in a line`() throws {
        var driver = ControlDriver()
        try driver.room(Self.long(0))
        let calls: [(String, JSON, Int)] = [
            ("participant.hardMute", ["media": ["audio"]], Targets.countLimit),
            ("participant.approve", [:], Targets.countLimit),
            ("participant.drop", [:], ParticipantDrop.countLimit),
        ]
        for (method, more, count) in calls {
            var params = more.members
            params["room"] = .string(Self.long(0))
            params["participants"] = .words((0..<count).map(Self.long))
            let reply = try driver.done(method, .object(params))
            #expect(reply["results"]?.list.count == count)
            #expect(driver.longestLine <= IPCRequest.lineLimit, "\(method)")
        }
    }

    @Test func `a result longer than a line is an error, so that the connection goes on`() throws {
        for (length, isFitting) in [(1_000, true), (IPCRequest.lineLimit, false)] {
            let text = JSON.string(String(repeating: "r", count: length))
            let line = IPCReply.encoded(id: .integer(7), result: text)
            #expect(line.count <= IPCRequest.lineLimit)
            guard case .reply(let reply) = try IPCMessage(line: line) else {
                Issue.record("no reply")
                continue
            }
            #expect(reply.id == .integer(7))
            switch reply.outcome {
            case .success(let result): #expect(isFitting && result == text)
            case .failure(let error):
                #expect(!isFitting && error.code == 4029 && error.details["limit"] == "line")
            }
        }
    }

    @Test func `a room full of long names and custom data is read page by page`() throws {
        var driver = ControlDriver()
        let custom = JSON.string(String(repeating: "c", count: 60_000))
        try driver.room("r", ["knock": true])
        for number in 0..<40 {
            try driver.done(
                "participant.join",
                [
                    "room": "r", "participant": .string(Self.long(number)),
                    "role": number % 2 == 0 ? "moderator" : "participant",
                    "custom": ["c": custom],
                ]
            )
        }
        var seen: [String] = []
        var params: [String: JSON] = ["room": "r"]
        repeat {
            let page = try driver.done("participant.list", .object(params))
            seen += (page["participants"]?.list ?? []).compactMap { $0["participant"]?.word }
            params["after"] = page["next"]
        } while params["after"] != nil
        #expect(Set(seen) == Set((0..<40).map(Self.long)) && seen.count == 40)
        let room = try driver.shown()
        #expect(room.counts.participants == 20 && room.counts.awaited == 20)
        #expect(room.next?.participants != nil && room.next?.awaited != nil)
        #expect(driver.longestLine <= IPCRequest.lineLimit)
    }

    @Test func `L-14 thousands of rooms are listed page by page and by state`() throws {
        var driver = ControlDriver()
        for number in 0..<2_500 {
            let mode: JSON = number % 5 == 0 ? "single_host" : "group"
            try driver.room(Self.long(number), ["mode": mode])
        }
        for (state, count): (String?, Int) in [(nil, 2_500), ("created", 500), ("ended", 0)] {
            var seen: [String] = []
            var params: [String: JSON] = [:]
            params["state"] = state.map { .string($0) }
            repeat {
                let page = try driver.done("room.list", .object(params))
                seen += (page["rooms"]?.list ?? []).compactMap { $0["room"]?.word }
                params["after"] = page["next"]
            } while params["after"] != nil
            #expect(seen == seen.sorted() && seen.count == count)
        }
        #expect(driver.longestLine <= IPCRequest.lineLimit)
    }

    @Test func `L-15 a join and a message to all are short in a large room`() throws {
        var limits = ControlLimits()
        limits.participantsPerRoom = 3_000
        var driver = ControlDriver(limits: limits)
        try driver.room()
        let last = 2_999
        for number in 0...last {
            let id = JSON.string("person-\(number)")
            if number == last { driver.longestLine = 0 }
            let join: JSON = ["room": "r", "participant": id, "snapshot": false]
            try driver.done("participant.join", join)
            let topic: JSON = ["room": "r", "participant": id, "topic": "chat"]
            try driver.done("message.subscribe", topic)
        }
        let publish: JSON = ["room": "r", "topic": "chat", "message": "hello"]
        driver.events = []
        try driver.done("message.publish", publish)
        #expect(driver.events.map(\.audience) == [.all])
        let unsubscribe: JSON = ["room": "r", "participant": "person-7", "topic": "chat"]
        try driver.done("message.unsubscribe", unsubscribe)
        driver.events = []
        try driver.done("message.publish", publish)
        #expect(driver.events.map(\.audience) == [.except(["person-7"])])
        #expect(driver.longestLine <= 2_000)
    }

    @Test func `null unsets a room's limit and its custom data`() throws {
        var driver = ControlDriver()
        try driver.room("r", ["maxParticipants": 1])
        try driver.done("room.update", ["room": "r", "custom": ["k": 1]])
        try driver.join("a")
        #expect(throws: IPCError.self) { try driver.join("b") }
        let update: JSON = ["room": "r", "custom": .null, "settings": ["maxParticipants": .null]]
        try driver.done("room.update", update)
        try driver.join("b")
        #expect(try driver.shown().custom == [:])
        #expect(try driver.shown().settings.maxParticipants == nil)
    }

    @Test func `what names its slots has them before any other takes them`() throws {
        var driver = ControlDriver()
        try driver.room()
        for id in ["a", "b", "v"] { try driver.join(id) }
        let first = try #require(try driver.offer("a", "0:audio:sendonly")[0].stream)
        let second = try #require(try driver.offer("b", "0:audio:sendonly")[0].stream)
        try driver.offer("v", "0:audio:recvonly", "1:audio:recvonly")
        let set: JSON = [
            "room": "r", "participant": "v",
            "subscriptions": [
                ["stream": .string(first.rawValue)],
                ["stream": .string(second.rawValue), "audioMid": "0"],
            ],
        ]
        let results = try driver.done("subscription.set", set).decode(SubscriptionSet.Result.self)
        #expect(results.results.map(\.audioMid) == ["1", "0"])
        #expect(results.results.map(\.stream) == [first, second])
        // A stream that is no longer named ends; one that stays keeps its subscription.
        let kept = try #require(results.results[1].subscription)
        let smaller: JSON = [
            "room": "r", "participant": "v",
            "subscriptions": [["stream": .string(second.rawValue)], ["stream": "none"]],
        ]
        let less = try driver.done("subscription.set", smaller).decode(SubscriptionSet.Result.self)
        #expect(less.results[0].subscription == kept && less.fence != nil)
        #expect(less.results[1].error?.reason == "no-such-stream")
        let list = try driver.done("subscription.list", ["room": "r", "participant": "v"])
        #expect(list["subscriptions"]?.list.map { $0["subscription"]?.word } == [kept.rawValue])
    }

    @Test func `a request is worth what its requester may do when it is accepted`() throws {
        var driver = try ControlDriver.moderated(people: ["a"])
        try driver.join("n", ["role": "moderator"])
        let change: JSON = ["room": "r", "participant": "a", "role": "moderator", "by": "m"]
        let request = try #require(try driver.done("role.change", change)["request"])
        try driver.done(
            "role.change",
            ["room": "r", "participant": "m", "role": "viewer", "force": true, "by": "n"]
        )
        let accept: JSON = ["room": "r", "participant": "a", "request": request]
        #expect(throws: IPCError.self) { try driver.done("role.accept", accept) }
        let target = try driver.shown().participants.first { $0.participant == "a" }
        #expect(target?.role == "participant")
    }
}
