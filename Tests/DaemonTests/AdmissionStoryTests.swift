import Testing
import WorkerInterface

@testable import Contract
@testable import JSON

/// People who wait to be let in: what they can prepare, and what they learn when they are.
@Suite struct AdmissionStoryTests {
    @discardableResult
    private func act(
        _ method: String,
        _ more: [String: JSON],
        _ driver: inout ControlDriver
    ) throws -> JSON {
        let params: [String: JSON] = ["room": "r", "by": "m"]
        return try driver.done(method, .object(params.merging(more) { $1 }))
    }

    @Test func `E-16 who is let in learns about the room`() throws {
        var driver = try ControlDriver.moderated(["knock": true], people: [])
        try driver.join("w")
        try act("room.update", ["custom": ["k": 1]], &driver)
        try act("pin.add", ["participants": ["m"]], &driver)
        _ = driver.takeEventSummaries()
        try act("participant.approve", ["participant": "w"], &driver)
        let told = try #require(driver.events.first { $0.event == "participant.approved" })
        let info = try #require(try told.data["roomInfo"]?.decode(RoomInfo.self))
        #expect(info.room == "r" && info.custom == ["k": 1] && info.pins == ["m"])
        #expect(info.counts.participants == 2 && info.participants == nil)
        #expect(told.data["roomInfo"]?["streams"] == nil)

        // A long room is not repeated for everybody who is let in.
        try driver.join("x")
        let long = JSON.string(String(repeating: "x", count: 4_096))
        try act("room.update", ["custom": ["k": long]], &driver)
        _ = driver.takeEventSummaries()
        try act("participant.approve", ["participant": "x"], &driver)
        let short = try #require(driver.events.first { $0.event == "participant.approved" })
        #expect(short.data["roomInfo"] == nil && short.data["participant"] == "x")
    }

    @Test func `E-15 who lets somebody in by a role hears of it, moderator or not`() throws {
        let roles: JSON = [
            ["name": "participant", "publish": ["audio": true]],
            ["name": "host", "permissions": ["changeRole"]],
        ]
        var driver = try ControlDriver.moderated(["roles": roles], people: [])
        try driver.join("h", ["role": "host"])
        try act("room.update", ["settings": ["knock": true]], &driver)
        try driver.join("w")
        driver.events = []
        let change: JSON = [
            "room": "r", "participant": "w", "role": "moderator", "force": true, "by": "h",
        ]
        try driver.done("role.change", change)
        let told = try #require(driver.events.first { $0.event == "participant.approved" })
        #expect(told.audience == .participants(["w", "m", "h"]))
    }

    @Test(arguments: [16, 17])
    func `E-16 few are told about the room, and nothing that only moderators hear`(
        _ count: Int
    ) throws {
        let settings: JSON = ["knock": true, "mode": "lecture"]
        var driver = try ControlDriver.moderated(settings, people: [])
        try driver.join("a")
        try act("participant.approve", ["participant": "a"], &driver)
        try driver.done("floor.request", ["room": "r", "participant": "a"])
        let waiting = (0..<count).map { "w\($0)" }
        for id in waiting + ["late"] { try driver.join(id) }
        _ = driver.takeEventSummaries()
        try act("participant.approve", ["participants": .words(waiting)], &driver)
        let told = driver.events.filter { $0.event == "participant.approved" }
        #expect(told.count == count)
        for event in told {
            let info = try event.data["roomInfo"]?.decode(RoomInfo.self)
            #expect((info != nil) == (count == 16))
            #expect(info?.floor.requested ?? [] == [] && info?.counts.awaited ?? 0 == 0)
        }
    }

    @Test func `E-15 E-18 subscriptions are ready before, and flow when let in`() throws {
        var driver = try ControlDriver.moderated(["knock": true], people: [])
        let stream = try #require(
            try driver.offer("m", "0:audio:sendonly", "1:video:sendonly")[0].stream
        )
        try driver.join("w")
        try driver.join("f")
        for id in ["w", "f"] { try driver.offer(id, "0:audio:recvonly", "1:video:recvonly") }
        _ = driver.takeEventSummaries()
        _ = driver.takeCommands()
        let subscription = try driver.watch("w", stream).subscription
        try driver.done(
            "talkers.subscribe",
            ["room": "r", "participant": "f", "audioMids": ["0"], "videoMids": ["1"]]
        )
        #expect(driver.takeOpenings() == [false, false])
        let id = driver.send(
            "subscription.explain",
            ["room": "r", "subscription": .string(subscription.rawValue)]
        )
        let question = try #require(driver.questions.last)
        driver.tell(.explained(token: question.token, nil), from: question.worker)
        let explained = try #require(try driver.replies[id]?.get())
        #expect(explained["limit"] == "approval" && explained["sent"] == .null)
        // The awaited hear nothing of what others do.
        try act("stream.update", ["stream": .string(stream.rawValue), "video": false], &driver)
        try act("pin.add", ["participants": ["m"]], &driver)
        #expect(driver.takeOpenings() == [])
        let summaries = driver.takeEventSummaries()
        #expect(!summaries.contains { $0.hasSuffix(" w") || $0.hasSuffix(" f") }, "\(summaries)")
        try act("stream.update", ["stream": .string(stream.rawValue), "video": true], &driver)
        _ = driver.takeCommands()
        try act("participant.approve", ["participants": ["w", "f"]], &driver)
        #expect(driver.takeOpenings() == [true, true, true, true])
    }

    /// Roles of which guests watch some.
    private static func roles(watching watched: JSON) -> JSON {
        let publish: JSON = ["audio": true, "video": true]
        return [
            ["name": "speaker", "publish": publish], ["name": "participant", "publish": publish],
            ["name": "guest", "subscribe": ["roles": watched]],
        ]
    }

    /// Calls that take the speaker `s` from the guests.
    static let losses: [(method: String, params: [String: JSON])] = [
        ("role.change", ["participant": "s", "role": "participant", "force": true]),
        ("room.update", ["settings": ["roles": roles(watching: [])]]),
    ]

    @Test(arguments: losses)
    func `E-18 who waits is not told that a role ends its subscription`(
        _ loss: (method: String, params: [String: JSON])
    ) throws {
        let settings: JSON = ["knock": true, "roles": Self.roles(watching: ["speaker"])]
        var driver = try ControlDriver.moderated(settings, people: [])
        for (id, role) in [("s", "speaker"), ("w", "guest"), ("g", "guest")] {
            try driver.join(id, ["role": .string(role)])
        }
        try act("participant.approve", ["participants": ["s", "g"]], &driver)
        let stream = try #require(
            try driver.offer("s", "0:audio:sendonly", "1:video:sendonly")[0].stream
        )
        for id in ["w", "g"] {
            try driver.offer(id, "0:audio:recvonly", "1:video:recvonly")
            try driver.watch(id, stream)
        }
        _ = driver.takeEventSummaries()
        try act(loss.method, loss.params, &driver)
        let told = driver.takeEventSummaries().filter { $0.hasPrefix("subscription.") }
        // An admitted viewer hears of it; of a waiting one's, only the signalling server does.
        #expect(told.sorted() == ["subscription.disconnected ", "subscription.disconnected g"])
        for id in ["w", "g"] {
            let whose: JSON = ["room": "r", "participant": .string(id)]
            let listed = try driver.done("subscription.list", whose)
            #expect(listed["subscriptions"] == [])
        }
    }
}
