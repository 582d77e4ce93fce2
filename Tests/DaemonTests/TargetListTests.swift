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
