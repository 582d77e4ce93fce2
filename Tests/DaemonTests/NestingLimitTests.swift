import Testing

@testable import Contract
@testable import ControlPlane
@testable import JSON

/// The nesting of what callers attach, and whether a client can read what comes back.
@Suite struct NestingLimitTests {
    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        /// The parameter that a refusal names.
        var field: String
        var params: @Sendable (JSON) -> [String: JSON]
    }

    static let rows = [
        Row(testDescription: "room.create", field: "custom") {
            ["room": "s", "custom": $0]
        },
        Row(testDescription: "room.update", field: "custom") {
            ["room": "r", "custom": $0]
        },
        Row(testDescription: "participant.join", field: "custom") {
            ["room": "r", "participant": "b", "custom": $0]
        },
        Row(testDescription: "participant.update", field: "custom") {
            ["room": "r", "participant": "a", "custom": $0]
        },
        Row(testDescription: "transport.offer", field: "streams.0.custom") {
            [
                "room": "r", "participant": "a",
                "sdp": .string(TestOffer(["0:audio:sendonly"]).text),
                "streams": ["0": ["custom": $0]],
            ]
        },
        Row(testDescription: "message.publish", field: "payload") {
            ["room": "r", "topic": "t", "message": "m", "payload": $0, "persist": true]
        },
    ]

    /// Returns objects in objects, so many levels of them.
    private func nested(_ levels: Int) -> JSON {
        var value: JSON = [:]
        for _ in 1..<levels { value = ["k": value] }
        return value
    }

    private func driver() throws -> ControlDriver {
        var driver = ControlDriver()
        try driver.room()
        try driver.join("a")
        let topic: JSON = ["room": "r", "participant": "a", "topic": "t"]
        try driver.done("message.subscribe", topic)
        return driver
    }

    /// Returns the replies and events that show what callers have attached.
    ///
    /// The driver reads each line as a client does, and records those that it cannot read.
    private func shown(_ driver: inout ControlDriver) throws -> [JSON] {
        var all: [JSON] = []
        let topic: JSON = ["room": "r", "participant": "a", "topic": "t"]
        for (method, params): (String, JSON) in [
            ("room.list", [:]), ("room.get", ["room": "r"]),
            ("participant.list", ["room": "r"]), ("stream.list", ["room": "r"]),
            ("participant.join", ["room": "r", "participant": "a"]),
            ("message.subscribe", topic),
        ] {
            all.append(try driver.done(method, params))
        }
        return all
    }

    @Test(arguments: rows)
    func `32 levels are taken, and come back so that a client can read them`(_ row: Row) throws {
        var driver = try driver()
        let before = driver.events.count
        let value = nested(JSON.attachedDepthLimit)
        try driver.done(row.testDescription, .object(row.params(value)))
        let text = String(decoding: JSON.encoded(value), as: UTF8.self)
        let events = driver.events.dropFirst(before).map(\.data)
        let isShown = (try shown(&driver) + events).contains {
            String(decoding: JSON.encoded($0), as: UTF8.self).contains(text)
        }
        #expect(isShown)
    }

    @Test(arguments: rows)
    func `33 levels are refused by name, and nothing changes`(_ row: Row) throws {
        var driver = try driver()
        let rooms = try driver.done("room.list")
        let people = try driver.done("participant.list", ["room": "r"])
        let events = driver.events.count
        for levels in [33, 40, 58] {
            let params = JSON.object(row.params(nested(levels)))
            guard case .failure(let error) = driver.call(row.testDescription, params) else {
                Issue.record("\(levels) levels were taken")
                continue
            }
            #expect(error.code == -32602 && error.reason == "invalid-params")
            #expect(error.details["parameter"] == .string(row.field))
        }
        #expect(driver.events.count == events)
        #expect(try driver.done("room.list") == rooms)
        #expect(try driver.done("participant.list", ["room": "r"]) == people)
        let topic: JSON = ["room": "r", "participant": "a", "topic": "t"]
        let kept = try driver.done("message.subscribe", topic)
        #expect(kept.decodedMessages == 0)
    }

    @Test func `levels are those of arrays and objects`() {
        let rows: [(value: JSON, levels: Int)] = [
            (1, 0), ("x", 0), (.null, 0), ([], 1), ([:], 1), ([1, "x"], 1), (["k": []], 2),
            ([[], [[1]]], 3),
        ]
        for row in rows {
            #expect(!row.value.isNested(deeperThan: row.levels), "\(row.value)")
            let isDeeper = row.levels > 0 && row.value.isNested(deeperThan: row.levels - 1)
            #expect(isDeeper == (row.levels > 0), "\(row.value)")
        }
    }
}

extension JSON {
    /// Number of the messages in the result of `message.subscribe`.
    fileprivate var decodedMessages: Int? {
        guard case .array(let messages) = self["messages"] else { return nil }
        return messages.count
    }
}
