import RTP
import Rooms
import Testing

@testable import Contract
@testable import ControlPlane
@testable import JSON

/// Assumptions of every seed (A0), and publishing rights; names begin with the rows they prove.
@Suite struct RightsStoryTests {
    /// A change of one term of the gate, and the calls that undo it.
    struct Term: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var mode: JSON = "group"
        var close: [(method: String, params: [String: JSON])]
        var open: [(method: String, params: [String: JSON])] = []
    }

    private static let publisher: [String: JSON] = ["participant": "p"]

    static let terms: [Term] = [
        Term(
            testDescription: "A0-1 room's hard mute",
            close: [("room.hardMute", [:])],
            open: [("room.hardUnmute", [:])]
        ),
        Term(
            testDescription: "A0-1 participant's hard mute",
            close: [("participant.hardMute", ["participant": "p", "media": ["audio"]])],
            open: [("participant.hardUnmute", ["participant": "p", "media": ["audio"]])]
        ),
        Term(
            testDescription: "A0-1 role",
            close: [("role.change", ["participant": "p", "role": "viewer", "force": true])],
            open: [("role.change", ["participant": "p", "role": "participant", "force": true])]
        ),
        Term(
            testDescription: "A0-1 role of all",
            close: [("role.changeAll", ["role": "viewer", "from": ["participant"]])],
            open: [("role.changeAll", ["role": "participant", "from": ["viewer"]])]
        ),
        Term(
            testDescription: "A0-1 mode",
            close: [("participant.setMode", ["participant": "p", "mode": "RECV_ONLY"])],
            open: [("participant.setMode", ["participant": "p", "mode": "SEND_AND_RECV"])]
        ),
        Term(
            testDescription: "A0-1 rights of the role",
            close: [
                (
                    "room.update",
                    [
                        "settings": [
                            "roles": [
                                ["name": "participant", "publish": ["video": true]],
                                ["name": "viewer"],
                            ]
                        ]
                    ]
                )
            ]
        ),
        Term(
            testDescription: "A0-1 floor",
            mode: "lecture",
            close: [("floor.release", publisher)],
            open: [("floor.request", publisher), ("floor.grant", publisher)]
        ),
    ]

    @Test(arguments: terms)
    func `A0-1 each term alone closes the gate and opens it`(_ term: Term) throws {
        var driver = ControlDriver(workers: 2)
        try driver.room("r", ["mode": term.mode])
        try driver.join("p")
        if term.mode == "lecture" {
            try driver.done("floor.request", ["room": "r", "participant": "p"])
            try driver.done("floor.grant", ["room": "r", "participant": "p"])
        }
        try driver.offer("p", "0:audio:sendonly")
        _ = driver.takeCommands()
        for (method, params) in term.close {
            let all = params.merging(["room": "r"]) { $1 }
            try driver.done(method, .object(all))
        }
        #expect(driver.takeGates() == [false])
        guard !term.open.isEmpty else { return }
        for (method, params) in term.open {
            let all = params.merging(["room": "r"]) { $1 }
            try driver.done(method, .object(all))
        }
        #expect(driver.takeGates() == [true])
    }

    @Test func `A0-2 A0-3 effect, then reply, then events; a refusal makes none`() throws {
        var driver = ControlDriver(workers: 2)
        try driver.room()
        try driver.join("m", ["role": "moderator"])
        driver.holdsFences = true
        driver.trace = []
        let first = driver.send("room.hardMute", ["room": "r", "by": "m"])
        let second = driver.send("room.hardMute", ["room": "r", "by": "m"])
        #expect(driver.replies[first] == nil)
        guard case .failure(let error)? = driver.replies[second] else {
            Issue.record("a mute in process was taken twice")
            return
        }
        #expect(error.code == 5037)
        driver.fence()
        let order = driver.trace.filter { $0 != "commands" }
        #expect(order == ["reply \(second)", "reply \(first)", "room.hardMuted"])
    }

    @Test func `A0-4 A0-5 what a moderator decided outlives it`() throws {
        var driver = ControlDriver()
        try driver.room("r")
        try driver.join("m", ["role": "moderator"])
        try driver.join("p")
        try driver.done("pin.add", ["room": "r", "participants": ["p"], "by": "m"])
        try driver.done("room.lock", ["room": "r", "by": "m"])
        let mute: JSON = ["room": "r", "participant": "p", "media": ["audio"], "by": "m"]
        try driver.done("participant.hardMute", mute)
        try driver.done("participant.leave", ["room": "r", "participant": "m"])
        let room = try driver.shown()
        #expect(room.locked && room.pins == ["p"])
        #expect(room.participants[0].hardMuted == [.audio])
    }

    @Test func `V-1 V-2 V-3 V-4 both vocabularies of modes are known`() throws {
        let modes: [(JSON, ParticipantMode)] = [
            ("SEND_AND_RECV", .sendAndReceive), ("CONFERENCE", .sendAndReceive),
            ("SIGNALLING_ONLY", .signallingOnly), ("VIEWER", .signallingOnly),
            ("RECV_ONLY", .receiveOnly),
        ]
        for (word, mode) in modes {
            var driver = ControlDriver()
            try driver.room()
            try driver.join("p", ["mode": word, "name": "Pat"])
            let shown = try driver.shown().participants[0]
            #expect(shown.mode == mode && shown.name == "Pat")
        }
        var driver = ControlDriver()
        try driver.room("r", ["strictModeVocabulary": true])
        try driver.join("p", ["mode": "CONFERENCE"])
        let other: JSON = ["room": "r", "participant": "p", "mode": "RECV_ONLY"]
        guard case .failure(let error) = driver.call("participant.setMode", other) else {
            Issue.record("a second vocabulary")
            return
        }
        #expect(error.code == 4091 && error.reason == "mode-vocabulary")
    }

    @Test func `V-5 who may publish nothing cannot come on stage by itself`() throws {
        var driver = ControlDriver()
        try driver.room()
        try driver.join("v", ["role": "viewer", "mode": "SIGNALLING_ONLY"])
        let stage: JSON = [
            "room": "r", "participant": "v", "mode": "SEND_AND_RECV", "by": "v",
        ]
        guard case .failure(let error) = driver.call("participant.setMode", stage) else {
            Issue.record("a viewer came on stage")
            return
        }
        #expect(error.code == 4010)
    }

    @Test func `V-13 V-15 messages change nothing but who hears them`() throws {
        var driver = ControlDriver()
        try driver.room()
        for id in ["a", "b"] {
            try driver.join(id)
            try driver.done(
                "message.subscribe",
                ["room": "r", "participant": .string(id), "topic": "ACK"]
            )
        }
        let before = try driver.shown().participants
        try driver.done(
            "message.publish",
            [
                "room": "r", "topic": "ACK", "message": "DECLINED", "from": "a", "to": ["b"],
                "payload": ["receiverId": "b", "accpeterName": "Ann"],
            ]
        )
        let event = try #require(driver.events.last)
        #expect(event.audience == .participants(["b"]))
        #expect(event.data["payload"] == ["receiverId": "b", "accpeterName": "Ann"])
        #expect(try driver.shown().participants == before)
        try driver.done(
            "message.unsubscribe",
            ["room": "r", "participant": "b", "topic": "ACK"]
        )
        try driver.done("message.publish", ["room": "r", "topic": "ACK", "message": "x"])
        #expect(driver.events.last?.audience == .participants(["a"]))
    }

    @Test func `R-1 R-4 a role says what of its holder is heard and seen`() throws {
        let roles: JSON = [
            ["name": "singer", "publish": ["audio": true]],
            ["name": "presenter", "publish": ["screen": true]],
        ]
        for (role, open) in [
            ("singer", [true, false, false]), ("presenter", [false, false, true]),
        ] {
            var driver = ControlDriver()
            try driver.room("r", ["roles": roles])
            try driver.join("p", ["role": .string(role)])
            let mids = try driver.offer(
                "p",
                "0:audio:sendonly",
                "1:video:sendonly",
                "2:video:sendonly",
                sources: ["2": "screen"]
            )
            #expect(mids.allSatisfy { $0.refused == nil && $0.direction == .recvonly })
            #expect(mids.map { $0.stream != nil } == open, "\(role)")
            #expect(driver.takeGates() == open, "\(role)")
        }
    }

    @Test func `L-3 L-15 a second host waits without a stream, then has the place`() throws {
        var driver = ControlDriver()
        try driver.room("r", ["mode": "single_host"])
        for id in ["h1", "h2"] { try driver.join(id, ["role": "moderator"]) }
        try driver.offer("h1", "0:audio:sendonly")
        _ = driver.takeCommands()
        let mids = try driver.offer("h2", "0:audio:sendonly")
        #expect(mids[0].refused == nil && mids[0].stream == nil)
        #expect(driver.takeGates() == [false])
        #expect(try driver.shown().streams.map(\.participant) == ["h1"])
        _ = driver.takeEventSummaries()
        try driver.done("participant.leave", ["room": "r", "participant": "h1"])
        #expect(driver.takeGates() == [true])
        let created = try #require(driver.events.last)
        #expect(
            driver.takeEventSummaries() == [
                "stream.destroyed all", "participant.left all", "stream.created all",
            ]
        )
        #expect(created.data["participant"] == "h2")
        // Another offer names it.
        let stream = try #require(try driver.offer("h2", "0:audio:sendonly")[0].stream)
        #expect(try driver.shown().streams.map(\.stream) == [stream])
    }

    @Test func `L-3 a host who loses the place is told by the end of the stream`() throws {
        var driver = ControlDriver()
        try driver.room("r", ["mode": "single_host", "maxHosts": 2])
        for id in ["h1", "h2"] {
            try driver.join(id, ["role": "moderator"])
            try driver.offer(id, "0:audio:sendonly")
        }
        _ = driver.takeGates()
        driver.events = []
        try driver.done("room.update", ["room": "r", "settings": ["maxHosts": 1]])
        #expect(driver.takeGates() == [false])
        #expect(driver.events.last?.event == "stream.destroyed")
        #expect(driver.events.last?.data["participant"] == "h2")
        #expect(driver.events.last?.data["reason"] == "host-place-lost")
        driver.events = []
        // He still waits, and comes back without an offer.
        try driver.done("room.update", ["room": "r", "settings": ["maxHosts": 2]])
        #expect(driver.takeGates() == [true])
        #expect(driver.takeEvents() == ["room.updated", "stream.created"])
    }

    @Test func `L-14 a list of rooms says in which state each is`() throws {
        var driver = ControlDriver()
        for name in ["a", "b"] {
            try driver.done(
                "room.create",
                ["room": .string(name), "settings": ["mode": "single_host"]]
            )
        }
        try driver.done("room.setState", ["room": "b", "state": "ready"])
        let rooms = try driver.done("room.list").decode(RoomList.Result.self).rooms
        #expect(rooms.map(\.state) == [.created, .ready])
    }

    @Test func `L-9 who is in an ended event is told before the transports go`() throws {
        var driver = ControlDriver()
        try driver.room("r", ["mode": "single_host"])
        try driver.join("h", ["role": "moderator"])
        try driver.offer("h", "0:audio:sendonly")
        _ = driver.takeEvents()
        try driver.done("room.setState", ["room": "r", "state": "ended"])
        #expect(driver.takeEvents() == ["room.stateChanged", "stream.destroyed"])
        let again = driver.call(
            "transport.offer",
            [
                "room": "r", "participant": "h",
                "sdp": .string(TestOffer(["0:audio:sendonly"]).text),
            ]
        )
        guard case .failure(let error) = again else {
            Issue.record("an ended event took an offer")
            return
        }
        #expect(error.code == 4091)
    }

    @Test(arguments: [("lead", false), ("extra", true)])
    func `R-1 the answer to a role has simulcast if the role may send it`(
        _ role: String,
        _ isAllowed: Bool
    ) throws {
        var driver = ControlDriver()
        let roles: JSON = [
            ["name": "lead", "publish": ["video": true, "simulcast": false]],
            ["name": "extra", "publish": ["video": true]],
        ]
        try driver.room("r", ["roles": roles])
        try driver.join("a", ["role": .string(role)])
        let layers = [
            "a=extmap:10 \(ExtensionKind.rid.uri)", "a=rid:q send", "a=rid:h send",
            "a=simulcast:send q;h",
        ]
        let sdp = TestOffer(["0:video:sendonly"]).text + layers.map { "\($0)\r\n" }.joined()
        let offer: JSON = ["room": "r", "participant": "a", "sdp": .string(sdp)]
        let answer = try driver.done("transport.offer", offer).decode(TransportOffer.Result.self)
        #expect(answer.sdp.contains("a=simulcast:recv q;h") == isAllowed)
        #expect(answer.sdp.contains("a=rid:") == isAllowed)
    }

    @Test func `R-1 a role's priority and its right to simulcast come from the settings`() throws {
        var driver = ControlDriver()
        let roles: JSON = [
            ["name": "lead", "publish": ["video": true, "simulcast": false], "priority": 7],
            ["name": "extra", "publish": ["video": true]],
        ]
        try driver.room("r", ["roles": roles])
        let settings = try #require(driver.plane.rooms["r"]).room.settings
        let lead = try #require(settings.role(named: "lead"))
        let extra = try #require(settings.role(named: "extra"))
        #expect(lead.priority == 7 && !lead.publish.simulcast)
        #expect(extra.priority == 0 && extra.publish.simulcast)
        let shown = try driver.shown().settings
        #expect(shown.role("lead")?.priority == Priority(7))
        #expect(shown.role("lead")?.publish.simulcast == false)
        #expect(shown.role("extra")?.publish.simulcast == nil)
        for (change, parameter): ([String: JSON], String) in [
            (["priority": 1_001], "priority"), (["publish": ["simulcast": 1]], "publish.simulcast"),
        ] {
            let role = JSON.object(change.merging(["name": "x"]) { $1 })
            let call: JSON = ["room": "q", "settings": ["roles": [role]]]
            guard case .failure(let error) = driver.call("room.create", call) else {
                Issue.record("\(parameter) was taken")
                continue
            }
            #expect(error.details["parameter"] == .string("settings.roles[0].\(parameter)"))
        }
    }

    @Test func `an m-line without a codec that sfud takes is refused for that`() throws {
        var driver = ControlDriver()
        try driver.room()
        try driver.join("a")
        let sdp = TestOffer(["0:audio:sendonly", "1:video:sendonly"]).text
            .replacing("opus/48000/2", with: "PCMU/8000")
        let params: JSON = ["room": "r", "participant": "a", "sdp": .string(sdp)]
        let mids = try driver.done("transport.offer", params)
            .decode(TransportOffer.Result.self).mids
        #expect(mids.map(\.refused) == ["codec", nil])
        #expect(mids[0].direction == .inactive && mids[0].stream == nil)
        #expect(mids[1].stream != nil)
    }
}
