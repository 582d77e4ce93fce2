import Contract
import ControlPlane
import Rooms
import Testing
import WorkerInterface

@testable import JSON

@Suite struct ControlRefusalTests {
    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var method: String
        var params: JSON
        var code: Int
        var reason: String

        init(_ name: String, _ method: String, _ params: JSON, _ code: Int, _ reason: String) {
            testDescription = name
            self.method = method
            self.params = params
            self.code = code
            self.reason = reason
        }
    }

    /// Refused calls; `STREAM`, `SUBSCRIPTION` and `OFFER` stand for those of the test's room.
    static let rows = [
        Row("room twice", "room.create", ["room": "r"], 4009, "already-exists"),
        Row("no room", "room.get", ["room": "x"], 4004, "no-such-room"),
        Row("no room to close", "room.close", ["room": "x"], 4004, "no-such-room"),
        Row(
            "closed by nobody known",
            "room.close",
            ["room": "r", "by": "x"],
            4005,
            "no-such-participant"
        ),
        Row(
            "closed by a participant",
            "room.close",
            ["room": "r", "by": "a"],
            5116,
            "not-permitted"
        ),
        Row(
            "join nowhere",
            "participant.join",
            ["room": "x", "participant": "p"],
            4004,
            "no-such-room"
        ),
        Row(
            "join in no role",
            "participant.join",
            ["room": "r", "participant": "p", "role": "king"],
            4044,
            "role-invalid"
        ),
        Row(
            "join a full room",
            "participant.join",
            ["room": "r", "participant": "e"],
            4029,
            "limit-reached"
        ),
        Row(
            "leave unseen",
            "participant.leave",
            ["room": "r", "participant": "x"],
            4005,
            "no-such-participant"
        ),
        Row(
            "offer of nobody",
            "transport.offer",
            ["room": "r", "participant": "x", "sdp": "OFFER"],
            4005,
            "no-such-participant"
        ),
        Row(
            "offer of one who only signals",
            "transport.offer",
            ["room": "r", "participant": "c", "sdp": "OFFER"],
            4091,
            "signalling-only"
        ),
        Row(
            "bad SDP",
            "transport.offer",
            ["room": "r", "participant": "a", "sdp": "v=0\r\nx"],
            4022,
            "bad-sdp"
        ),
        Row(
            "bad first SDP",
            "transport.offer",
            ["room": "r", "participant": "a", "sdp": "x", "transport": "second"],
            4022,
            "bad-sdp"
        ),
        Row(
            "no transport to close",
            "transport.close",
            ["room": "r", "participant": "c"],
            4008,
            "no-such-transport"
        ),
        Row(
            "no stream to update",
            "stream.update",
            ["room": "r", "stream": "x", "audio": false],
            4006,
            "no-such-stream"
        ),
        Row(
            "no stream to end",
            "stream.unpublish",
            ["room": "r", "stream": "x"],
            4006,
            "no-such-stream"
        ),
        Row(
            "another's stream",
            "stream.unpublish",
            ["room": "r", "stream": "STREAM", "by": "b"],
            4010,
            "not-permitted"
        ),
        Row(
            "by nobody",
            "stream.unpublish",
            ["room": "r", "stream": "STREAM", "by": "x"],
            4005,
            "no-such-participant"
        ),
        Row(
            "watched twice",
            "subscription.add",
            ["room": "r", "participant": "b", "stream": "STREAM"],
            4009,
            "already-exists"
        ),
        Row(
            "no stream to watch",
            "subscription.add",
            ["room": "r", "participant": "b", "stream": "x"],
            4006,
            "no-such-stream"
        ),
        Row(
            "no slots at all",
            "subscription.add",
            ["room": "r", "participant": "a", "stream": "STREAM"],
            4030,
            "no-free-slot"
        ),
        Row(
            "no such mid",
            "subscription.add",
            ["room": "r", "participant": "a", "stream": "STREAM", "audioMid": "9"],
            4011,
            "no-such-mid"
        ),
        Row(
            "watching while only signalling",
            "subscription.add",
            ["room": "r", "participant": "c", "stream": "STREAM"],
            4091,
            "signalling-only"
        ),
        Row(
            "a role that may not watch",
            "subscription.add",
            ["room": "r", "participant": "d", "stream": "STREAM"],
            4010,
            "role-may-not-watch"
        ),
        Row(
            "no subscription to update",
            "subscription.update",
            ["room": "r", "subscription": "sub-99"],
            4007,
            "no-such-subscription"
        ),
        Row(
            "another stream that is none",
            "subscription.update",
            ["room": "r", "subscription": "SUBSCRIPTION", "stream": "x"],
            4006,
            "no-such-stream"
        ),
        Row(
            "no subscription to remove",
            "subscription.remove",
            ["room": "r", "subscription": "1"],
            4007,
            "no-such-subscription"
        ),
        Row("stats of no room", "stats.get", ["room": "x"], 4004, "no-such-room"),
        Row(
            "stats of nobody",
            "stats.get",
            ["room": "r", "participant": "x"],
            4005,
            "no-such-participant"
        ),
        Row(
            "stats of no subscription",
            "stats.get",
            ["room": "r", "subscription": "sub-9"],
            4007,
            "no-such-subscription"
        ),
        Row(
            "since what was not asked for",
            "events.subscribe",
            ["rooms": ["q"], "since": ["r": 1]],
            -32602,
            "invalid-params"
        ),
        Row("not of the contract", "room.paint", [:], -32601, "no-such-method"),
    ]

    @Test(arguments: rows)
    func `refuses and leaves everything as it was`(_ row: Row) throws {
        var driver = ControlDriver()
        try driver.room(
            "r",
            [
                "maxParticipants": 4,
                "roles": [
                    ["name": "participant", "publish": ["audio": true, "video": true]],
                    ["name": "deaf", "subscribe": ["roles": ["moderator"]]],
                ],
            ]
        )
        for (id, more): (String, [String: JSON]) in [
            ("a", [:]), ("b", [:]), ("c", ["mode": "SIGNALLING_ONLY"]), ("d", ["role": "deaf"]),
        ] {
            try driver.join(id, more)
        }
        let stream = try #require(
            try driver.offer("a", "0:audio:sendonly", "1:video:sendonly")[0].stream
        )
        try driver.offer("b", "0:audio:recvonly", "1:video:recvonly")
        let subscription = try driver.watch("b", stream).subscription
        let before = try driver.shown()
        let handles = driver.plane.shared.identifiers[0].transports.used
        _ = driver.takeEvents()
        _ = driver.takeCommands()

        let words: [String: JSON] = [
            "STREAM": .string(stream.rawValue), "SUBSCRIPTION": .string(subscription.rawValue),
            "OFFER": .string(TestOffer(["0:audio:sendonly"]).text),
        ]
        let outcome = driver.call(row.method, row.params.replacing(words))
        guard case .failure(let refusal) = outcome else {
            Issue.record("it was done")
            return
        }
        #expect(refusal.code == row.code)
        #expect(refusal.reason == row.reason)
        #expect(driver.takeEvents() == [])
        #expect(driver.takeCommands() == [])
        #expect(try driver.shown() == before)
        #expect(driver.plane.shared.identifiers[0].transports.used == handles)
    }

    static let methods: [(name: String, params: JSON, required: [String])] = [
        ("server.info", [:], []), ("server.stats", [:], []),
        ("events.subscribe", ["rooms": ["r"], "since": ["r": 0]], []),
        ("room.create", ["room": "n", "settings": ["mode": "group"]], ["room"]),
        ("room.get", ["room": "r"], ["room"]), ("room.list", [:], []),
        ("room.close", ["room": "r", "by": "a", "detail": "late"], ["room"]),
        (
            "participant.join",
            [
                "room": "r", "participant": "p", "name": "P", "role": "participant",
                "mode": "RECV_ONLY", "custom": [:],
            ], ["room", "participant"]
        ),
        ("participant.leave", ["room": "r", "participant": "a"], ["room", "participant"]),
        (
            "transport.offer",
            [
                "room": "r", "participant": "a", "sdp": "v=0", "transport": "main",
                "sources": ["0": "screen"], "streams": ["0": ["name": "A"]],
                "audioFallback": true,
            ], ["room", "participant", "sdp"]
        ),
        (
            "transport.close", ["room": "r", "participant": "a", "transport": "main"],
            ["room", "participant"]
        ),
        ("stream.list", ["room": "r"], ["room"]),
        (
            "stream.update", ["room": "r", "stream": "s", "audio": true, "video": true],
            ["room", "stream"]
        ),
        ("stream.unpublish", ["room": "r", "stream": "s", "by": "a"], ["room", "stream"]),
        (
            "subscription.add",
            [
                "room": "r", "participant": "a", "stream": "s", "audioMid": "0",
                "videoMid": "1", "preferredResolution": ["width": 1, "height": 1],
                "preferredFrameRate": 15, "priority": 1, "audioFallback": false,
            ], ["room", "participant", "stream"]
        ),
        (
            "subscription.update",
            ["room": "r", "subscription": "sub-1", "stream": "s", "audio": true, "video": true],
            ["room", "subscription"]
        ),
        ("subscription.remove", ["room": "r", "subscription": "sub-1"], ["room", "subscription"]),
        (
            "stats.get", ["room": "r", "participant": "a", "subscription": "sub-1"], ["room"]
        ),
    ]

    @Test(arguments: methods.indices)
    func `params are closed`(_ index: Int) throws {
        let (name, params, required) = Self.methods[index]
        guard case .object(let members) = params else { return }
        var driver = ControlDriver()
        try driver.room()
        try driver.join("a")
        let before = try driver.shown()
        _ = driver.takeEvents()

        var bad: [(key: String, params: [String: JSON])] = []
        bad.append(("surplus", members.merging(["surplus": 1]) { $1 }))
        for key in required { bad.append((key, members.filter { $0.key != key })) }
        for key in members.keys.sorted() {
            // Null unsets whatever is optional.
            if required.contains(key) { bad.append((key, members.merging([key: .null]) { $1 })) }
            bad.append((key, members.merging([key: .array([.array([])])]) { $1 }))
        }
        for (key, params) in bad {
            guard case .failure(let refusal) = driver.call(name, .object(params)) else {
                Issue.record("\(name) took \(params)")
                continue
            }
            #expect(refusal.code == -32602, "\(name) \(params): \(refusal)")
            #expect(refusal.message.contains(key), "\(name): \(refusal.message)")
        }
        #expect(driver.takeEvents() == [])
        #expect(try driver.shown() == before)
    }

    @Test func `lines that are no requests are answered too`() {
        var driver = ControlDriver()
        for line in ["", "{", "[]", "17", "{}", "{\"jsonrpc\":\"2.0\",\"method\":\"room.list\"}"] {
            driver.trace = []
            driver.send(line: Array(line.utf8))
            #expect(driver.trace == ["reply without id"], "\(line)")
        }
    }
}

extension JSON {
    /// Returns a copy with each string that is a key of `words` replaced by its value.
    func replacing(_ words: [String: JSON]) -> JSON {
        switch self {
        case .string(let string): words[string] ?? self
        case .array(let elements): .array(elements.map { $0.replacing(words) })
        case .object(let members): .object(members.mapValues { $0.replacing(words) })
        case .null, .bool, .integer, .number: self
        }
    }
}
