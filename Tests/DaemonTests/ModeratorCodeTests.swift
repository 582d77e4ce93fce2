import Contract
import Testing

@testable import JSON

/// Each (method, code) pair of the seeds: the call fails with its code, and changes nothing.
///
/// A test's name begins with the row of the seeds that it proves.
@Suite struct ModeratorCodeTests {
    struct Step: Sendable {
        var method: String
        var params: JSON

        init(_ method: String, _ params: [String: JSON] = [:]) {
            self.method = method
            self.params = .object(params.merging(["room": "r"]) { own, _ in own })
        }
    }

    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var mode: JSON
        var before: [Step]
        /// Calls still in process when the tested call arrives.
        var inFlight: [Step]
        var call: Step
        var code: Int

        init(
            _ name: String,
            mode: JSON = "lecture",
            after before: [Step] = [],
            during inFlight: [Step] = [],
            _ call: Step,
            _ code: Int
        ) {
            testDescription = name
            self.mode = mode
            self.before = before
            self.inFlight = inFlight
            self.call = call
            self.code = code
        }
    }

    static func by(_ actor: JSON, _ participant: JSON? = nil) -> [String: JSON] {
        var params: [String: JSON] = ["by": actor]
        if let participant { params["participant"] = participant }
        return params
    }

    static func floor(_ step: String, _ participant: JSON) -> Step {
        Step("floor.\(step)", ["participant": participant])
    }

    static let muted = Step("room.hardMute")
    static let unmuted = Step("room.hardUnmute")
    static let asked = floor("request", "a")
    static let granted = floor("grant", "a")

    static let muteRows = [
        Row("E-6 5001 participant mutes all", Step("room.hardMute", by("a")), 5001),
        Row("E-6 5002 participant unmutes all", Step("room.hardUnmute", by("a")), 5002),
        Row("E-6 5037 mute in process", during: [muted], muted, 5037),
        Row("E-6 5038 muted already", after: [muted], muted, 5038),
        Row("E-6 5039 not muted", unmuted, 5039),
        Row("E-6 5040 unmute in process", after: [muted], during: [unmuted], unmuted, 5040),
        Row("E-9 5009 participant mutes audio", mute("hardMute", "audio"), 5009),
        Row("E-9 5010 participant unmutes audio", mute("hardUnmute", "audio"), 5010),
        Row("E-9 5011 participant mutes video", mute("hardMute", "video"), 5011),
        Row("E-9 5012 participant unmutes video", mute("hardUnmute", "video"), 5012),
        Row(
            "E-10 5045 mutes nobody known",
            Step("participant.hardMute", ["participant": "x", "media": ["audio"]]),
            5045
        ),
    ]

    static func mute(_ verb: String, _ kind: JSON) -> Step {
        Step("participant.\(verb)", ["participant": "b", "media": [kind], "by": "a"])
    }

    static let doorRows = [
        Row("E-11 5115 participant locks", Step("room.lock", by("a")), 5115),
        Row("E-11 5115 participant unlocks", Step("room.unlock", by("a")), 5115),
        Row("E-11 5117 locked already", after: [Step("room.lock")], Step("room.lock"), 5117),
        Row("E-11 5118 not locked", Step("room.unlock"), 5118),
        Row(
            "E-12 join of a locked room",
            after: [Step("room.lock")],
            Step("participant.join", ["participant": "new"]),
            4091
        ),
        Row(
            "E-12 approval in a locked room",
            after: [Step("participant.join", ["participant": "w"]), Step("room.lock")],
            Step("participant.approve", by("m", "w")),
            4091
        ),
        Row(
            "E-13 5116 participant drops",
            Step("participant.drop", ["participants": ["b"], "by": "a"]),
            5116
        ),
        Row("E-14 5116 participant closes", Step("room.close", by("a")), 5116),
        Row(
            "E-17 participant approves",
            after: [Step("participant.join", ["participant": "w"])],
            Step("participant.approve", by("a", "w")),
            4010
        ),
        Row(
            "E-17 participant denies",
            after: [Step("participant.join", ["participant": "w"])],
            Step("participant.deny", by("a", "w")),
            4010
        ),
        Row("E-17 approves who does not wait", Step("participant.approve", by("m", "a")), 4091),
        Row("E-27 5085 participant transfers", Step("moderator.transfer", by("a", "b")), 5085),
        Row("E-28 5045 transfer to nobody known", Step("moderator.transfer", by("m", "x")), 5045),
        Row("E-28 5045 transfer to itself", Step("moderator.transfer", by("m", "m")), 5045),
        Row(
            "E-28 5045 transfer to a moderator",
            after: [Step("participant.join", ["participant": "n", "role": "moderator"])],
            Step("moderator.transfer", by("m", "n")),
            5045
        ),
    ]

    static let ownFloorRows = [
        Row("E-19 5003 moderator requests", floor("request", "m"), 5003),
        Row("E-19 5041 request in process", during: [asked], asked, 5041),
        Row("E-19 5042 requested already", after: [asked], asked, 5042),
        Row("E-19 5082 request in a group room", mode: "group", asked, 5082),
        Row("E-20 5003 moderator cancels", floor("cancel", "m"), 5003),
        Row(
            "E-20 5041 cancel in process",
            after: [asked],
            during: [floor("cancel", "a")],
            floor("cancel", "a"),
            5041
        ),
        Row("E-20 5042 nothing to cancel", floor("cancel", "a"), 5042),
        Row("E-20 5082 cancel in a group room", mode: "group", floor("cancel", "a"), 5082),
        Row("E-23 5003 moderator finishes", floor("finish", "m"), 5003),
        Row(
            "E-23 5041 finish in process",
            after: [asked, granted],
            during: [floor("finish", "a")],
            floor("finish", "a"),
            5041
        ),
        Row("E-23 5042 nothing to finish", after: [asked], floor("finish", "a"), 5042),
        Row("E-23 5082 finish in a group room", mode: "group", floor("finish", "a"), 5082),
    ]

    static let moderatedFloorRows = [
        Row("E-21 5005 participant denies", after: [asked], act("deny", "b", "a"), 5005),
        Row("E-21 5045 denies nobody known", act("deny", "m", "x"), 5045),
        Row("E-25 5045 denies who has not asked", act("deny", "m", "a"), 5045),
        Row(
            "E-21 5047 deny in process",
            after: [asked],
            during: [act("deny", "m", "a")],
            act("deny", "m", "a"),
            5047
        ),
        Row("E-21 5048 denies the holder", after: [asked, granted], act("deny", "m", "a"), 5048),
        Row("E-22 5004 participant grants", after: [asked], act("grant", "b", "a"), 5004),
        Row("E-22 5045 grants to nobody known", act("grant", "m", "x"), 5045),
        Row(
            "E-22 5043 grant in process",
            after: [asked],
            during: [granted],
            act("grant", "m", "a"),
            5043
        ),
        Row("E-22 5044 granted already", after: [asked, granted], act("grant", "m", "a"), 5044),
        Row(
            "E-22 5046 another holds it",
            after: [asked, granted, floor("request", "b")],
            act("grant", "m", "b"),
            5046
        ),
        Row("E-25 5069 grants to who has not asked", act("grant", "m", "a"), 5069),
        Row(
            "E-22 5069 released already",
            after: [asked, granted, floor("release", "a")],
            act("grant", "m", "a"),
            5069
        ),
        Row(
            "E-22 5069 being released from another",
            after: [asked, granted, floor("request", "b")],
            during: [floor("release", "a")],
            act("grant", "m", "b"),
            5069
        ),
        Row(
            "E-24 5006 participant releases",
            after: [asked, granted],
            act("release", "b", "a"),
            5006
        ),
        Row("E-24 5045 releases nobody known", act("release", "m", "x"), 5045),
        Row(
            "E-24 5049 release in process",
            after: [asked, granted],
            during: [floor("release", "a")],
            act("release", "m", "a"),
            5049
        ),
        Row("E-24 5050 does not hold it", after: [asked], act("release", "m", "a"), 5050),
        Row(
            "E-22 5082 grant in a group room",
            mode: "group",
            act("grant", "m", "a"),
            5082
        ),
    ]

    static func act(_ step: String, _ actor: JSON, _ participant: JSON) -> Step {
        Step("floor.\(step)", by(actor, participant))
    }

    static let pinRows = [
        Row("E-31 5003 participant pins", pin("add", ["b"], "a"), 5003),
        Row("E-31 5003 participant unpins", pin("remove", ["b"], "a"), 5003),
        Row("E-31 5126 pins nobody known", pin("add", ["x"], "m"), 5126),
        Row("E-31 5126 pins nobody", pin("add", [], "m"), 5126),
        Row("E-31 5126 unpins nobody known", pin("remove", ["x"], "m"), 5126),
        Row(
            "E-32 5126 more than the list less one",
            after: [pin("add", ["a"], "m")],
            pin("add", ["b", "m"], "m"),
            5126
        ),
    ]

    static func pin(_ verb: String, _ participants: JSON, _ actor: JSON) -> Step {
        Step("pin.\(verb)", ["participants": participants, "by": actor])
    }

    static let rows = muteRows + doorRows + ownFloorRows + moderatedFloorRows + pinRows

    @Test(arguments: rows)
    func `meets its code and changes nothing`(_ row: Row) throws {
        var driver = ControlDriver(workers: 2)
        let settings: JSON = ["mode": row.mode, "maxActiveTalkers": 3]
        try driver.room("r", settings)
        try driver.join("m", ["role": "moderator"])
        for id in ["a", "b"] { try driver.join(id) }
        _ = try driver.done("room.update", ["room": "r", "settings": ["knock": true]])
        for step in row.before { _ = try driver.done(step.method, step.params) }
        let shown = try driver.shown()
        driver.holdsFences = true
        for step in row.inFlight { driver.send(step.method, step.params) }
        let events = driver.events.count
        let id = driver.send(row.call.method, row.call.params)
        guard case .failure(let error)? = driver.replies[id] else {
            Issue.record("not refused: \(String(describing: driver.replies[id]))")
            return
        }
        #expect(error.code == row.code, "\(error.message)")
        #expect(driver.events.count == events)
        driver.fence()
        guard row.inFlight.isEmpty else { return }
        #expect(try driver.shown() == shown)
    }
}
