import RTP
import Testing
import WorkerInterface

@testable import Contract
@testable import ControlPlane
@testable import JSON
@testable import Rooms

/// Role requests, rights of roles in JSON, and joins that change the mode; names begin with the
/// rows that they prove.
@Suite struct RoleStoryTests {
    private static func ask(
        _ participant: String,
        _ driver: inout ControlDriver
    ) throws -> String {
        let change: JSON = [
            "room": "r", "participant": .string(participant), "role": "viewer", "by": "m",
        ]
        let asked = try driver.done("role.change", change).decode(RoleChange.Result.self)
        return try #require(asked.request).rawValue
    }

    private static func requests(
        _ more: [String: JSON] = [:],
        _ driver: inout ControlDriver
    ) throws -> RoleRequests.Result {
        try driver.done("role.requests", .object(more.merging(["room": "r"]) { $1 }))
            .decode(RoleRequests.Result.self)
    }

    @Test func `R-3 open requests are listed, and seen by their target after a reconnect`() throws {
        var driver = try ControlDriver.moderated(["roleRequestSeconds": 2])
        let first = try Self.ask("a", &driver)
        let second = try Self.ask("b", &driver)
        let all = try Self.requests([:], &driver)
        #expect(all.requests.map(\.request.rawValue) == [first, second])
        #expect(all.requests.map(\.participant) == ["a", "b"])
        #expect(all.requests.allSatisfy { $0.role == "viewer" && $0.by == "m" })
        #expect(all.next == nil)
        let own = try Self.requests(["participant": "b"], &driver)
        #expect(own.requests.map(\.request.rawValue) == [second])

        let rejoin: JSON = ["room": "r", "participant": "a"]
        let again = try driver.done("participant.join", rejoin)
        #expect(again["roleRequest"] == JSON(encoding: all.requests[0]))
        driver.now = driver.now.advanced(milliseconds: 2_001)
        #expect(try Self.requests([:], &driver).requests.isEmpty)
        #expect(try driver.done("participant.join", rejoin)["roleRequest"] == nil)
        let stranger = driver.call("role.requests", ["room": "r", "participant": "nobody"])
        guard case .failure(let error) = stranger else {
            Issue.record("requests to nobody")
            return
        }
        #expect(error.code == 4005)
    }

    @Test func `R-3 requests come in pages`() throws {
        var driver = try ControlDriver.moderated(people: (0..<5).map { "p\($0)" })
        for id in 0..<5 { _ = try Self.ask("p\(id)", &driver) }
        var seen: [String] = []
        var after: JSON?
        for _ in 0..<3 {
            var params: [String: JSON] = ["limit": 2]
            params["after"] = after
            let page = try Self.requests(params, &driver)
            seen += page.requests.map(\.participant.rawValue)
            after = page.next.map { .string($0.rawValue) }
        }
        #expect(seen == (0..<5).map { "p\($0)" })
        #expect(after == nil)
        let wrong = driver.call("role.requests", ["room": "r", "after": "x"])
        guard case .failure(let error) = wrong else {
            Issue.record("a cursor of nowhere")
            return
        }
        #expect(error.code == -32602)
    }

    @Test func `R-3 an expired request is told to both`() throws {
        var driver = try ControlDriver.moderated(["roleRequestSeconds": 2])
        let request = try Self.ask("a", &driver)
        _ = driver.takeEventSummaries()
        let due = try #require(driver.plane.deadline)
        driver.now = due
        driver.plane.expire(at: due)
        driver.drain()
        driver.fence()
        let event = try #require(driver.events.first)
        #expect(driver.takeEventSummaries() == ["role.requestExpired a,m"])
        #expect(
            event.data == [
                "request": .string(request), "participant": "a", "role": "viewer",
                "reason": "timeout", "requester": "m", "by": "m",
            ]
        )
    }

    @Test func `R-8 a change of all that names no role leaves a log line of its own`() throws {
        for (from, isLogged) in [(nil, true), (["participant"] as JSON, false)] as [(JSON?, Bool)] {
            var driver = try ControlDriver.moderated(["protectedRoles": ["moderator"]])
            var params: [String: JSON] = ["room": "r", "role": "viewer", "by": "m"]
            params["from"] = from
            let call = IPCRequest(
                id: .integer(900),
                method: "role.changeAll",
                params: .object(params)
            )
            driver.plane.receive(
                call.encoded(),
                from: driver.connection,
                at: driver.now,
                unixTime: ControlDriver.startTime
            )
            let lines = driver.plane.takeOutput().compactMap { output -> String? in
                guard case .log(.info, "role of all changed", let fields) = output else {
                    return nil
                }
                return fields.map { "\($0.0)=\($0.1)" }.joined(separator: " ")
            }
            #expect(lines == (isLogged ? ["room=r role=viewer participants=2 by=m"] : []))
        }
    }

    // Rights of roles in JSON.

    private static let capped: JSON = [
        [
            "name": "participant", "permissions": ["pin", "fly"],
            "publish": [
                "audio": ["maxBitrate": 32_000], "video": ["maxFrameRate": .number(14.5)],
                "screen": ["maxWidth": 1_920, "maxHeight": 1_080, "maxBitrate": 3_000_000],
                "maxWidth": 640, "maxHeight": 360, "maxFrameRate": .number(29.5),
                "maxBitrate": 500_000,
            ],
            "subscribe": [
                "roles": ["moderator"], "maxWidth": 1_280, "maxHeight": 720, "maxBitrate": 900_000,
            ],
        ],
        ["name": "speaker", "publish": ["audio": [:], "screen": true, "maxWidth": 640]],
        ["name": "viewer"],
    ]

    @Test func `R-1 each member of a role means one thing`() throws {
        var driver = ControlDriver()
        try driver.room("r", ["roles": Self.capped])
        let settings = try #require(driver.plane.rooms["r"]?.room.settings)
        let participant = try #require(settings.role(named: "participant"))
        #expect(
            participant.publish.audio && participant.publish.video && participant.publish.screen
        )
        #expect(participant.publish.audioBitrate == 32_000)
        // The object counts, and what it leaves out is as beside it.
        #expect(
            participant.publish.cap
                == LayerCap(width: 640, height: 360, frameRate: 14.5, bitrate: 500_000)
        )
        #expect(
            participant.publish.screenCap
                == LayerCap(width: 1_920, height: 1_080, bitrate: 3_000_000)
        )
        #expect(participant.watches == ["moderator"])
        #expect(
            participant.subscribeCap == LayerCap(width: 1_280, height: 720, bitrate: 900_000)
        )
        #expect(participant.permissions == ["pin", "fly"])

        let speaker = try #require(settings.role(named: "speaker"))
        #expect(speaker.publish.audio && !speaker.publish.video && speaker.publish.screen)
        #expect(speaker.publish.audioBitrate == nil)
        #expect(speaker.publish.screenCap == .none)
        #expect(speaker.publish.cap == LayerCap(width: 640))
        let viewer = try #require(settings.role(named: "viewer"))
        #expect(viewer.publish == Room.PublishRights() && viewer.watches == nil)
    }

    @Test func `R-1 a role is shown as it was given`() throws {
        var driver = ControlDriver()
        try driver.room("r", ["roles": Self.capped])
        let room = try driver.done("room.get", ["room": "r"])
        let shown = try #require(room["settings"]?["roles"]?.list)
        #expect(shown[1]["publish"] == Self.capped.list[0]["publish"])
        #expect(
            shown[2]["publish"]
                == ["audio": true, "video": false, "screen": true, "maxWidth": 640]
        )
    }

    @Test func `R-1 wrong bounds are refused by name`() throws {
        let rows: [(JSON, String)] = [
            (["audio": ["maxWidth": 1]], "settings.roles[0].publish.audio.maxWidth"),
            (["audio": ["maxBitrate": 1]], "settings.roles[0].publish.audio.maxBitrate"),
            (["screen": ["maxWidth": 0]], "settings.roles[0].publish.screen.maxWidth"),
            (["video": "yes"], "settings.roles[0].publish.video"),
        ]
        for (publish, parameter) in rows {
            var driver = ControlDriver()
            let roles: JSON = [["name": "x", "publish": publish]]
            let create: JSON = ["room": "r", "settings": ["roles": roles]]
            guard case .failure(let error) = driver.call("room.create", create) else {
                Issue.record("\(publish)")
                continue
            }
            #expect(error.code == -32602)
            #expect(error.details["parameter"] == .string(parameter))
        }
    }

    // Joins that change the mode.

    @Test func `V-7 V-8 a rejoin with another mode is a change of mode`() throws {
        var driver = try ControlDriver.moderated(["mode": "lecture"])
        try driver.done("floor.request", ["room": "r", "participant": "a"])
        try driver.done("floor.grant", ["room": "r", "participant": "a", "by": "m"])
        try driver.offer("a", "0:audio:sendonly")
        try driver.done("pin.add", ["room": "r", "participants": ["a"], "by": "m"])
        _ = driver.takeEventSummaries()
        try driver.join("a", ["mode": "RECV_ONLY"])
        var told = driver.takeEventSummaries().filter { !$0.hasPrefix("talkers") }
        #expect(
            told == [
                "stream.destroyed all", "participant.left ", "participant.joined all",
                "participant.modeChanged all", "floor.finished a,m",
            ]
        )
        #expect(try driver.shown().floor.granted == [])
        #expect(try driver.shown().pins == ["a"])

        try driver.join("a", ["mode": "SIGNALLING_ONLY"])
        told = driver.takeEventSummaries().filter { !$0.hasPrefix("talkers") }
        #expect(told.dropFirst(2) == ["participant.modeChanged all", "pins.changed all"])
        // The same mode again is no change.
        try driver.join("a", ["mode": "VIEWER"])
        try driver.join("a")
        #expect(!driver.takeEventSummaries().contains("participant.modeChanged all"))
    }

    @Test func `V-8 of one who still knocks, only the moderators are told`() throws {
        var driver = try ControlDriver.moderated(["knock": true], people: ["a"])
        try driver.join("a", ["mode": "RECV_ONLY"])
        #expect(
            driver.takeEventSummaries() == ["participant.left ", "participant.modeChanged a,m"]
        )
    }
}
