import RTP
import Rooms
import Testing

@testable import Contract
@testable import ControlPlane
@testable import JSON

/// The seeds' stories over the IPC; a test's name begins with the rows that it proves.
@Suite struct SeedStoryTests {
    // VideoSDK.

    @Test func `V-3 V-5 V-6 V-8 V-11 V-14 a viewer is invited by messages alone`() throws {
        var driver = ControlDriver()
        try driver.room()
        try driver.join("host")
        try driver.join("guest", ["mode": "SIGNALLING_ONLY"])
        for (id, topic) in [("host", "ACK"), ("guest", "HOSTREQUESTED"), ("host", "HOSTREQUESTED")]
        {
            try driver.done(
                "message.subscribe",
                ["room": "r", "participant": .string(id), "topic": .string(topic)]
            )
        }
        _ = driver.takeEventSummaries()
        try driver.done(
            "message.publish",
            [
                "room": "r", "topic": "HOSTREQUESTED", "from": "host",
                "message": "Request for mode change your mode",
                "payload": ["receiverId": "guest", "senderId": "host", "senderName": "Host"],
            ]
        )
        #expect(driver.events.last?.data["payload"]?["receiverId"] == "guest")
        // V-11: the sender receives its own message too.
        #expect(driver.takeEventSummaries() == ["message.received all"])

        let before = driver.call(
            "transport.offer",
            [
                "room": "r", "participant": "guest",
                "sdp": .string(TestOffer(["0:audio:sendonly"]).text),
            ]
        )
        guard case .failure(let error) = before else {
            Issue.record("a transport in SIGNALLING_ONLY")
            return
        }
        #expect(error.code == 4091)
        try driver.done(
            "participant.setMode",
            ["room": "r", "participant": "guest", "mode": "SEND_AND_RECV", "by": "guest"]
        )
        try driver.done(
            "message.publish",
            [
                "room": "r", "topic": "ACK", "from": "guest", "message": "ACCEPTED",
                "payload": ["receiverId": "host", "accpeterName": "Guest"],
            ]
        )
        #expect(
            driver.takeEventSummaries() == ["participant.modeChanged all", "message.received host"]
        )
        let stream = try driver.offer("guest", "0:audio:sendonly")[0].stream
        #expect(stream != nil)
    }

    @Test func `V-7 V-9 going back to SIGNALLING_ONLY takes everything down`() throws {
        var driver = try ControlDriver.moderated()
        try driver.offer("a", "0:audio:sendonly")
        for _ in 0..<3 {
            try driver.done("pin.add", ["room": "r", "participants": ["a"], "by": "m"])
        }
        #expect(driver.takeEventSummaries().filter { $0.hasPrefix("pins") } == ["pins.changed all"])
        let reply = try driver.done(
            "participant.setMode",
            ["room": "r", "participant": "a", "mode": "VIEWER"]
        )
        #expect(try reply.decode(Done.self).fence != nil)
        #expect(
            driver.takeEventSummaries() == [
                "participant.modeChanged all", "stream.destroyed all", "pins.changed all",
            ]
        )
        #expect(try driver.shown().streams.isEmpty)
        #expect(driver.plane.rooms["r"]?.room.participants["a"]?.transports.isEmpty == true)
        // No change, so no event.
        try driver.done(
            "participant.setMode",
            ["room": "r", "participant": "a", "mode": "SIGNALLING_ONLY"]
        )
        #expect(driver.takeEventSummaries() == [])
    }

    @Test func `V-12 persisted messages wait for who subscribes later`() throws {
        var driver = try ControlDriver.moderated()
        for text in ["one", "two"] {
            try driver.done(
                "message.publish",
                [
                    "room": "r", "topic": "chat", "message": .string(text), "persist": true,
                    "from": "a",
                ]
            )
        }
        try driver.done(
            "message.publish",
            [
                "room": "r", "topic": "chat", "message": "for b", "persist": true, "from": "a",
                "to": ["b"],
            ]
        )
        let rows: [(JSON, [String])] = [("a", ["one", "two"]), ("b", ["one", "two", "for b"])]
        for (id, texts) in rows {
            let result = try driver.done(
                "message.subscribe",
                ["room": "r", "participant": id, "topic": "chat"]
            ).decode(MessageSubscribe.Result.self)
            #expect(result.messages.map(\.message) == texts)
        }
    }

    // 100ms.

    private static let school: JSON = [
        "roles": [
            ["name": "teacher", "publish": ["audio": true, "video": true]],
            ["name": "student", "subscribe": ["roles": ["teacher"]]],
            ["name": "speaker", "publish": ["audio": true]],
        ]
    ]

    @Test func `R-2 R-3 R-4 a role is taken with consent only`() throws {
        var driver = try ControlDriver.moderated()
        let change: JSON = ["room": "r", "participant": "a", "role": "viewer", "by": "m"]
        let first = try driver.done("role.change", change).decode(RoleChange.Result.self)
        let second = try driver.done("role.change", change).decode(RoleChange.Result.self)
        #expect(
            driver.takeEventSummaries() == [
                "role.changeRequested a,m", "role.requestExpired a,m", "role.changeRequested a,m",
            ]
        )
        let requests = [try #require(first.request), try #require(second.request)]
        #expect(try driver.shown().participants[1].role == "participant")

        let forged: [(JSON, String)] = [
            ("b", requests[1].rawValue), ("a", requests[0].rawValue), ("a", "req-99"),
        ]
        for (id, request) in forged {
            let call: JSON = ["room": "r", "participant": id, "request": .string(request)]
            guard case .failure(let error) = driver.call("role.accept", call) else {
                Issue.record("accepted \(request) of \(id)")
                continue
            }
            #expect(error.code == 4091 && error.reason == "no-such-request")
        }
        let accept: JSON = [
            "room": "r", "participant": "a", "request": .string(requests[1].rawValue),
        ]
        try driver.done("role.accept", accept)
        #expect(driver.takeEventSummaries() == ["participant.roleChanged all"])
        #expect(try driver.shown().participants[1].role == "viewer")
    }

    @Test func `R-3 a request is declined, or expires`() throws {
        var driver = try ControlDriver.moderated(["roleRequestSeconds": 2])
        let change: JSON = ["room": "r", "participant": "a", "role": "viewer", "by": "m"]
        for declines in [true, false] {
            let asked = try driver.done("role.change", change).decode(RoleChange.Result.self)
            let request = try #require(asked.request)
            let answer: JSON = [
                "room": "r", "participant": "a", "request": .string(request.rawValue),
            ]
            _ = driver.takeEventSummaries()
            if declines {
                try driver.done("role.decline", answer)
                #expect(driver.takeEventSummaries() == ["role.changeDeclined m,a"])
            } else {
                driver.now = driver.now.advanced(milliseconds: 2_001)
                guard case .failure(let error) = driver.call("role.accept", answer) else {
                    Issue.record("accepted too late")
                    return
                }
                #expect(error.code == 4091)
            }
        }
    }

    @Test func `R-5 R-6 a forced role stops media and subscriptions at once`() throws {
        var driver = ControlDriver()
        try driver.room("r", Self.school)
        try driver.join("m", ["role": "moderator"])
        try driver.join("t", ["role": "teacher"])
        try driver.join("s", ["role": "student"])
        let stream = try #require(
            try driver.offer("t", "0:audio:sendonly", "1:video:sendonly")[0].stream
        )
        try driver.offer("s", "0:audio:recvonly", "1:video:recvonly")
        try driver.watch("s", stream)
        _ = driver.takeEventSummaries()
        _ = driver.takeCommands()
        let reply = try driver.done(
            "role.change",
            ["room": "r", "participant": "t", "role": "speaker", "force": true, "by": "m"]
        )
        #expect(try reply.decode(RoleChange.Result.self).fence != nil)
        let events = driver.takeEventSummaries()
        #expect(events.first == "participant.roleChanged all")
        #expect(events.contains("stream.changed all"))
        #expect(events.contains("subscription.disconnected s"))
        #expect(driver.takeGates() == [false])
        #expect(driver.plane.rooms["r"]?.room.subscriptions.isEmpty == true)
    }

    @Test func `R-6 of a subscription that ends with the change nothing else is told`() throws {
        var driver = ControlDriver()
        let roles: JSON = [
            ["name": "moderator", "publish": ["audio": true, "video": true]],
            ["name": "silent", "publish": ["audio": false, "video": true]],
            ["name": "student", "subscribe": ["roles": ["moderator"]]],
        ]
        try driver.room("r", ["roles": roles])
        try driver.join("m", ["role": "moderator"])
        try driver.join("s", ["role": "student"])
        let stream = try #require(
            try driver.offer("m", "0:audio:sendonly", "1:video:sendonly")[0].stream
        )
        try driver.offer("s", "0:audio:recvonly", "1:video:recvonly")
        try driver.watch("s", stream)
        _ = driver.takeEventSummaries()
        try driver.done("role.changeAll", ["room": "r", "role": "silent", "from": ["moderator"]])
        #expect(
            driver.takeEventSummaries() == [
                "participant.roleChanged all", "stream.changed all", "subscription.disconnected s",
            ]
        )
    }

    @Test func `R-7 nobody is told anything of video that ends with the change`() throws {
        var driver = ControlDriver()
        try driver.room()
        for id in ["viewer", "publisher"] { try driver.join(id) }
        let stream = try #require(try driver.offer("publisher", "0:video:sendonly")[0].stream)
        try driver.offer("viewer", "0:video:recvonly")
        try driver.watch("viewer", stream)
        _ = driver.takeEventSummaries()
        try driver.done("role.changeAll", ["room": "r", "role": "viewer"])
        #expect(
            driver.takeEventSummaries() == [
                "participant.roleChanged all", "participant.roleChanged all",
                "stream.destroyed all",
            ]
        )
    }

    struct RoleRow: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var method = "role.changeAll"
        var params: [String: JSON]
        var code: Int
        var message: String
    }

    static let roleRows = [
        RoleRow(
            testDescription: "R-9 permission comes first",
            params: ["role": "king", "by": "a"],
            code: 4010,
            message: "role does not have required permission"
        ),
        RoleRow(
            testDescription: "R-9 target role",
            params: ["role": "king", "from": ["queen"], "by": "m"],
            code: 4044,
            message: "role invalid"
        ),
        RoleRow(
            testDescription: "R-9 source role",
            params: ["role": "viewer", "from": ["queen"], "by": "m"],
            code: 4044,
            message: "invalid role"
        ),
        RoleRow(
            testDescription: "R-9 clash",
            params: ["role": "viewer", "from": ["participant", "viewer"], "by": "m"],
            code: 4091,
            message: "target role clash with requested roles"
        ),
        RoleRow(
            testDescription: "R-9 caller has left",
            params: ["role": "viewer", "by": "x"],
            code: 4005,
            message: "peer left"
        ),
        RoleRow(
            testDescription: "R-9 target has left",
            method: "role.change",
            params: ["role": "viewer", "participant": "x", "by": "m"],
            code: 4005,
            message: "peer left"
        ),
        RoleRow(
            testDescription: "R-9 role of a single change",
            method: "role.change",
            params: ["role": "king", "participant": "x", "by": "m"],
            code: 4044,
            message: "role invalid"
        ),
    ]

    @Test(arguments: roleRows)
    func `R-9 refuses changes of roles by their exact words`(_ row: RoleRow) throws {
        var driver = try ControlDriver.moderated()
        let before = try driver.shown()
        let params = row.params.merging(["room": "r"]) { $1 }
        guard case .failure(let error) = driver.call(row.method, .object(params)) else {
            Issue.record("not refused")
            return
        }
        #expect(error.code == row.code && error.message == row.message, "\(error)")
        #expect(driver.takeEventSummaries() == [])
        #expect(try driver.shown() == before)
    }

    @Test func `R-7 R-8 R-10 all change at once, the protected do not`() throws {
        var driver = try ControlDriver.moderated(["protectedRoles": ["moderator"]])
        let all: JSON = ["room": "r", "role": "viewer", "by": "m"]
        try driver.done("role.changeAll", all)
        #expect(
            driver.takeEventSummaries() == [
                "participant.roleChanged all", "participant.roleChanged all",
            ]
        )
        #expect(try driver.shown().participants.map(\.role) == ["moderator", "viewer", "viewer"])
        try driver.done("role.changeAll", all)
        #expect(driver.takeEventSummaries() == [])
    }
}
