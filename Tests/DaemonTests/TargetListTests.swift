import Contract
import Testing

@testable import JSON

/// Calls about several participants at once.
@Suite struct TargetListTests {
    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var by: JSON
        var code: Int
    }

    static let rows = [
        Row(testDescription: "somebody unknown", by: "x", code: 4005),
        Row(testDescription: "somebody without the permission", by: "a", code: 5009),
    ]

    @Test(arguments: [["none"], []] as [JSON])
    func `an unknown caller is named, whomever the call is about`(_ targets: JSON) throws {
        var driver = try ControlDriver.moderated(people: ["a"])
        let approve: JSON = ["room": "r", "participants": targets, "by": "x"]
        guard case .failure(let error) = driver.call("participant.approve", approve) else {
            Issue.record("not refused")
            return
        }
        #expect(error.code == 4005 && error.details["parameter"] == "by")
    }

    @Test(arguments: rows)
    func `a caller that may not make the call is refused once`(_ row: Row) throws {
        var driver = try ControlDriver.moderated(people: ["a", "b"])
        let mute: JSON = [
            "room": "r", "participants": ["b", "none"], "media": ["audio"], "by": row.by,
        ]
        driver.events = []
        guard case .failure(let error) = driver.call("participant.hardMute", mute) else {
            Issue.record("not refused")
            return
        }
        #expect(error.code == row.code && driver.takeEvents() == [])
    }

    /// Calls that concern nobody, with the code for a caller without the permission.
    static let idle: [(method: String, params: [String: JSON], code: Int)] = [
        ("participant.approve", ["participants": "all"], 4010),
        ("participant.approve", ["participants": []], 4010),
        ("participant.deny", ["participants": "all"], 4010),
        ("participant.hardMute", ["participants": [], "media": ["audio"]], 5009),
        ("participant.hardMute", ["participants": [], "media": ["video"]], 5011),
        ("participant.hardUnmute", ["participants": [], "media": ["audio"]], 5010),
    ]

    @Test(arguments: idle.indices)
    func `a caller needs the permission though the call concerns nobody`(_ index: Int) throws {
        let row = Self.idle[index]
        var driver = try ControlDriver.moderated(people: ["a"])
        let params = row.params.merging(["room": "r"]) { $1 }
        let viewer = JSON.object(params.merging(["by": "a"]) { $1 })
        guard case .failure(let error) = driver.call(row.method, viewer) else {
            Issue.record("not refused")
            return
        }
        #expect(error.code == row.code && error.reason == "not-permitted")
        for by in ["m", .null] as [JSON] {
            let allowed = JSON.object(params.merging(["by": by]) { $1 })
            #expect(try driver.done(row.method, allowed)["results"] == .array([]))
        }
    }

    @Test func `E-17 of several each has an answer of its own`() throws {
        var driver = try ControlDriver.moderated(people: ["a"])
        try driver.done("room.update", ["room": "r", "settings": ["knock": true]])
        for id in ["w", "x"] { try driver.join(id) }
        let approve: JSON = ["room": "r", "participants": ["w", "a", "none"], "by": "m"]
        let result = try driver.done("participant.approve", approve).decode(TargetResults.self)
        let codes = result.results?.map { $0.error?.code }
        #expect(codes == [nil, 4091, 4005])
        #expect(result.results?.map(\.participant) == ["w", "a", "none"])
        let states = try driver.shown().participants.map(\.participant)
        #expect(states == ["m", "a", "w"])
        let all = try driver.done("participant.approve", ["room": "r", "participants": "all"])
        #expect(all["results"] == [["participant": "x"]])
    }
}
