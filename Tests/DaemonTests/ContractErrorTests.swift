import Contract
import Foundation
import Testing

@testable import JSON

/// Errors of the contract: what `x-errors` lists, what `docs/ipc.md` says, and what calls give.
///
/// `ControlDriver` compares every refusal of all other tests with the list.
@Suite struct ContractErrorTests {
    @Test func `each reason is listed once, and each code once for it`() {
        let reasons = ContractErrors.all.map(\.reason)
        #expect(Set(reasons).count == reasons.count)
        for error in ContractErrors.all {
            #expect(Set(error.codes).count == error.codes.count, "\(error.reason)")
            #expect(error.reason.wholeMatch(of: /[a-z]+(-[a-z]+)*/) != nil, "\(error.reason)")
        }
    }

    @Test func `docs/ipc.md has the same errors`() throws {
        let page = try DocumentationTests.page("ipc.md")
        let section = page.components(separatedBy: "\n## Errors\n").dropFirst().first ?? ""
        let rows = (section.components(separatedBy: "\n## ").first ?? "").split(separator: "\n")
        var documented: Set<String> = []
        for row in rows where row.hasPrefix("| ") {
            let cells = row.dropFirst(2).components(separatedBy: " | ")
            let codes = cells[0].components(separatedBy: ", ").compactMap { Int($0) }
            let words = cells[1].matches(of: /`([a-z-]+)`/).map { String($0.1) }
            if codes.count > 1, words.count > 1 {
                documented.formUnion(zip(codes, words).map { "\($0) \($1)" })
            } else {
                for code in codes { documented.formUnion(words.map { "\(code) \($0)" }) }
            }
        }
        let listed = ContractErrors.all.flatMap { error in
            error.codes.map { "\($0) \(error.reason)" }
        }
        #expect(documented.symmetricDifference(listed).sorted() == [])
    }

    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var method: String
        var params: JSON
        var expected: String
        var data: JSON

        init(
            _ name: String,
            _ method: String,
            _ params: [String: JSON],
            _ expected: String,
            _ data: JSON = [:]
        ) {
            testDescription = name
            self.method = method
            self.params = .object(params.merging(["room": "r"]) { own, _ in own })
            self.expected = expected
            self.data = data
        }
    }

    /// Calls in a lecture with the moderator `m`, `a`, `s` who only signals, `w` who waits, and the
    /// viewer `v`; and in the live event `e`, which is not open.
    static let rows = [
        Row("state of a lecture", "room.setState", ["state": "ready"], "4091 wrong-state"),
        Row(
            "state off the way",
            "room.setState",
            ["room": "e", "state": "ongoing"],
            "4091 wrong-state"
        ),
        Row(
            "event not open",
            "participant.join",
            ["room": "e", "participant": "x"],
            "4091 event-not-open"
        ),
        Row(
            "event over",
            "participant.join",
            ["room": "over", "participant": "x"],
            "4091 event-ended"
        ),
        Row(
            "talkers of who signals",
            "talkers.subscribe",
            ["participant": "s", "audioMids": ["0"], "videoMids": []],
            "4091 signalling-only"
        ),
        Row(
            "topic of who waits",
            "message.subscribe",
            ["participant": "w", "topic": "t"],
            "4010 awaits-approval"
        ),
        Row(
            "message of who waits",
            "message.publish",
            ["from": "w", "topic": "t", "message": "m"],
            "4010 awaits-approval"
        ),
        Row("waits not", "participant.approve", ["participant": "a"], "4091 not-awaited"),
        Row(
            "lacks a permission",
            "participant.approve",
            ["participant": "w", "by": "a"],
            "4010 not-permitted",
            ["permission": "approve"]
        ),
        Row("locks", "room.lock", ["by": "a"], "5115 not-permitted", ["permission": "lock"]),
        Row("closes", "room.close", ["by": "a"], "5116 not-permitted", ["permission": "close"]),
        Row(
            "by nobody known",
            "room.lock",
            ["by": "x"],
            "4005 no-such-participant",
            ["parameter": "by"]
        ),
        Row(
            "a viewer wants to send",
            "participant.setMode",
            ["participant": "v", "mode": "SEND_AND_RECV", "by": "v"],
            "4010 role-may-not-publish",
            ["role": "viewer"]
        ),
        Row(
            "transfers",
            "moderator.transfer",
            ["participant": "a", "by": "a"],
            "5085 not-moderator"
        ),
        Row(
            "to itself",
            "moderator.transfer",
            ["participant": "m", "by": "m"],
            "5045 transfer-to-self"
        ),
        Row(
            "to a moderator",
            "moderator.transfer",
            ["participant": "n", "by": "m"],
            "5045 already-moderator"
        ),
        Row(
            "to who waits",
            "moderator.transfer",
            ["participant": "w", "by": "m"],
            "5045 awaits-approval"
        ),
        Row("floor of a moderator", "floor.request", ["participant": "m"], "5003 floor-not-needed"),
        Row("floor of who waits", "floor.request", ["participant": "w"], "5045 awaits-approval"),
        Row("cancels nothing", "floor.cancel", ["participant": "a"], "5042 no-floor-request"),
        Row("finishes nothing", "floor.finish", ["participant": "a"], "5042 floor-not-held"),
        Row("asks twice", "floor.request", ["participant": "v"], "5042 floor-already-requested"),
        Row("denies nobody", "floor.deny", ["participant": "a"], "5045 no-floor-request"),
        Row("grants unasked", "floor.grant", ["participant": "a"], "5069 no-floor-request"),
        Row(
            "grants to a viewer",
            "floor.grant",
            ["participant": "v"],
            "4010 role-may-not-publish",
            ["role": "viewer"]
        ),
        Row(
            "grants to who signals",
            "floor.grant",
            ["participant": "s"],
            "4091 mode-may-not-publish"
        ),
        Row("pins who waits", "pin.add", ["participants": ["w"]], "5126 awaits-approval"),
        Row("room twice", "room.create", ["room": "r"], "4009 already-exists", ["room": "r"]),
        Row(
            "participant twice",
            "participant.join",
            ["participant": "a", "ifPresent": "refuse"],
            "4009 already-exists",
            ["participant": "a"]
        ),
        Row("records", "recording.start", [:], "4091 no-recorder"),
        Row("streams", "streaming.start", ["url": "rtmp://h/a/k"], "4091 no-streamer"),
    ]

    @Test(arguments: rows)
    func `each condition has its reason`(_ row: Row) throws {
        var driver = ControlDriver()
        for (room, mode) in [("r", "lecture"), ("e", "single_host"), ("over", "single_host")] {
            try driver.room(room, ["mode": .string(mode)])
        }
        _ = try driver.done("room.setState", ["room": "over", "state": "ended"])
        for moderator in ["m", "n"] { try driver.join(moderator, ["role": "moderator"]) }
        try driver.join("a")
        try driver.join("v", ["role": "viewer"])
        try driver.join("s", ["mode": "SIGNALLING_ONLY"])
        for id: JSON in ["v", "s"] {
            _ = try driver.done("floor.request", ["room": "r", "participant": id])
        }
        _ = try driver.done("room.update", ["room": "r", "settings": ["knock": true]])
        try driver.join("w")
        guard case .failure(let error) = driver.call(row.method, row.params) else {
            Issue.record("not refused")
            return
        }
        #expect("\(error.code) \(error.reason)" == row.expected)
        #expect(JSON.object(error.details) == row.data)
    }

    @Test func `an operation in process is named`() throws {
        var driver = ControlDriver()
        try driver.room()
        driver.holdsFences = true
        driver.send("room.hardMute", ["room": "r"])
        let id = driver.send("room.hardMute", ["room": "r"])
        guard case .failure(let error)? = driver.replies[id] else {
            Issue.record("not refused")
            return
        }
        #expect(error.code == 5037 && error.reason == "in-process")
        #expect(error.details == ["operation": "room.hardMute"])
        driver.fence()
    }

    @Test func `a named slot that is taken is told from none that is free`() throws {
        var driver = ControlDriver()
        try driver.room()
        try driver.join("a")
        try driver.join("b")
        let answered = try driver.offer("a", "0:audio:sendonly", "1:video:sendonly")
        let stream = try #require(answered[0].stream?.rawValue)
        try driver.offer("b", "0:audio:recvonly", "1:video:recvonly")
        func refusal(_ params: [String: JSON], _ driver: inout ControlDriver) -> String {
            let call: JSON = .object(
                params.merging(["room": "r", "participant": "b", "stream": .string(stream)]) { $1 }
            )
            guard case .failure(let error) = driver.call("subscription.add", call) else {
                return "done"
            }
            return "\(error.code) \(error.reason) \(error.details["mid"] ?? "")"
        }
        _ = try driver.done(
            "talkers.subscribe",
            ["room": "r", "participant": "b", "audioMids": ["0"], "videoMids": []]
        )
        let follows = refusal(["audioMid": "0"], &driver)
        #expect(follows == "4030 slot-follows-talkers \(JSON.string("0"))")
        let taken = driver.call(
            "talkers.subscribe",
            ["room": "r", "participant": "b", "audioMids": ["0"], "videoMids": ["1"]]
        )
        #expect((try? taken.get()) != nil)
        #expect(refusal([:], &driver).hasPrefix("4030 no-free-slot"))
        _ = try driver.done(
            "talkers.subscribe",
            ["room": "r", "participant": "b", "audioMids": [], "videoMids": []]
        )
        #expect(refusal([:], &driver) == "done")
        guard
            case .failure(let error) = driver.call(
                "talkers.subscribe",
                ["room": "r", "participant": "b", "audioMids": ["0"], "videoMids": []]
            )
        else {
            Issue.record("the slot was taken twice")
            return
        }
        #expect("\(error.code) \(error.reason)" == "4030 slot-in-use")
        #expect(error.details == ["mid": "0"])
    }
}
