import Testing

@testable import Contract
@testable import ControlPlane
@testable import JSON
@testable import Rooms

/// A room's mute: whom it spares, and what others see of it.
@Suite struct RoomMuteTests {
    /// Makes a room of two moderators, `m` and `n`, and two participants, `a` and `b`, all of whom
    /// send audio; with `mute` among the permissions of participants, too.
    private func driver() throws -> ControlDriver {
        var driver = ControlDriver()
        let talks: JSON = ["audio": true, "video": true]
        let role: JSON = ["name": "participant", "publish": talks, "permissions": ["mute"]]
        try driver.room("r", ["roles": [role]])
        for id in ["m", "n"] { try driver.join(id, ["role": "moderator"]) }
        for id in ["a", "b"] { try driver.join(id) }
        for id in ["m", "n", "a", "b"] { try driver.offer(id, "0:audio:sendonly") }
        driver.events = []
        driver.commands = []
        return driver
    }

    /// Returns the publishers whose gate is open; `enabled` of their streams has to agree.
    private func audible(_ driver: inout ControlDriver) throws -> [String] {
        let room = try #require(driver.plane.rooms["r"]?.room)
        let open = room.members.filter { member in
            member.transports.flatMap(\.tracks).contains { $0.gate == true }
        }.map(\.id)
        let enabled = try driver.shown().streams.filter { $0.audio?.enabled == true }
        #expect(Set(enabled.map(\.participant.rawValue)) == Set(open))
        return open
    }

    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var params: [String: JSON]
        var audible: [String]
        /// Participants who join later, with their roles, and are audible then.
        var late: [String]
    }

    static let rows = [
        Row(testDescription: "no caller", params: [:], audible: [], late: []),
        Row(testDescription: "a moderator", params: ["by": "m"], audible: ["m"], late: []),
        Row(testDescription: "a participant", params: ["by": "a"], audible: ["a"], late: []),
        Row(
            testDescription: "no caller, sparing moderators",
            params: ["sparing": "moderators"],
            audible: ["m", "n"],
            late: ["z"]
        ),
        Row(
            testDescription: "a participant, sparing moderators",
            params: ["by": "a", "sparing": "moderators"],
            audible: ["m", "n", "a"],
            late: ["z"]
        ),
        Row(
            testDescription: "null for nobody else",
            params: ["by": "n", "sparing": .null],
            audible: ["n"],
            late: []
        ),
    ]

    @Test(arguments: rows)
    func `E-4 spares the caller, and moderators if asked to`(_ row: Row) throws {
        var driver = try driver()
        let room: [String: JSON] = ["room": "r"]
        try driver.done("room.hardMute", .object(room.merging(row.params) { $1 }))
        #expect(try audible(&driver) == row.audible)
        try driver.join("z", ["role": "moderator"])
        try driver.join("y")
        for id in ["z", "y"] { try driver.offer(id, "0:audio:sendonly") }
        #expect(try audible(&driver) == row.audible + row.late)
        // A participant that leaves and comes back is treated as before.
        for id in row.audible {
            try driver.done("participant.leave", ["room": "r", "participant": .string(id)])
            try driver.join(id, ["role": ["m", "n"].contains(id) ? "moderator" : "participant"])
            try driver.offer(id, "0:audio:sendonly")
        }
        #expect(try Set(audible(&driver)) == Set(row.audible + row.late))
        try driver.done("room.hardUnmute", ["room": "r"])
        #expect(try audible(&driver).count == 6)
        driver.commands = []
        try driver.done("room.hardMute", ["room": "r", "by": "b"])
        #expect(try audible(&driver) == ["b"], "nothing is left of the mute before")
    }

    @Test func `E-4 another word than moderators is refused`() throws {
        var driver = try driver()
        guard
            case .failure(let error) = driver.call(
                "room.hardMute",
                ["room": "r", "sparing": "singers"]
            )
        else {
            Issue.record("not refused")
            return
        }
        #expect(error.code == -32602)
        #expect(try audible(&driver).count == 4)
    }

    @Test func `V-4 a change of each stream that it silences is told to all`() throws {
        var driver = try driver()
        let own = try driver.shown().streams.first { $0.participant == "b" }?.stream.rawValue
        let off: JSON = ["room": "r", "stream": .string(try #require(own)), "audio": false]
        try driver.done("stream.update", off)
        driver.events = []
        try driver.done("room.hardMute", ["room": "r", "by": "m"])
        // Nothing can be seen to change in `b`, whose microphone is off.
        let changed = driver.events.filter { $0.event == "stream.changed" }
        let streams = try changed.map { try $0.data.decode(StreamChanged.self).streamInfo }
        #expect(streams.map(\.participant) == ["n", "a"])
        #expect(streams.allSatisfy { $0.audio?.enabled == false })
        #expect(
            driver.takeEventSummaries() == [
                "room.hardMuted all", "stream.changed all", "stream.changed all",
            ]
        )
        try driver.done("room.hardUnmute", ["room": "r"])
        #expect(
            driver.takeEventSummaries() == [
                "room.hardUnmuted all", "stream.changed all", "stream.changed all",
            ]
        )
    }

    @Test func `E-7 moderators are spared by their present role`() throws {
        var driver = try driver()
        try driver.done("room.hardMute", ["room": "r", "sparing": "moderators"])
        driver.events = []
        let change: JSON = ["room": "r", "participant": "n", "role": "participant", "force": true]
        try driver.done("role.change", change)
        #expect(try audible(&driver) == ["m"])
        let told = driver.takeEventSummaries()
        #expect(told == ["participant.roleChanged all", "stream.changed all"])
    }

    @Test func `E-28 the caller's exemption moves with its role`() throws {
        var driver = try driver()
        try driver.done("room.hardMute", ["room": "r", "by": "m"])
        try driver.done("moderator.transfer", ["room": "r", "participant": "a", "by": "m"])
        #expect(try audible(&driver) == ["a"])
        // Of a transfer between others nothing follows.
        try driver.done("moderator.transfer", ["room": "r", "participant": "b", "by": "n"])
        #expect(try audible(&driver) == ["a"])
    }

    /// Calls after which the caller of a mute, `a`, is no longer spared.
    static let losses: [(name: String, calls: [(String, [String: JSON])])] = [
        ("another role", [("role.change", ["participant": "a", "role": "viewer", "force": true])]),
        (
            "a role without the right",
            [
                (
                    "room.update",
                    ["settings": ["roles": [["name": "participant", "publish": ["audio": true]]]]]
                )
            ]
        ),
        (
            "dropped, and come back",
            [
                ("participant.drop", ["participants": ["a"]]),
                ("participant.join", ["participant": "a"]),
            ]
        ),
        (
            "left, and come back with less",
            [
                ("participant.leave", ["participant": "a"]),
                ("participant.join", ["participant": "a", "role": "viewer"]),
            ]
        ),
    ]

    @Test(arguments: losses.indices)
    func `E-4 the caller is spared only while it may mute`(_ row: Int) throws {
        let row = Self.losses[row]
        var driver = ControlDriver()
        let talks: JSON = ["audio": true]
        try driver.room(
            "r",
            [
                "roles": [
                    ["name": "participant", "publish": talks, "permissions": ["mute"]],
                    ["name": "viewer", "publish": talks],
                ]
            ]
        )
        try driver.join("a")
        try driver.offer("a", "0:audio:sendonly")
        try driver.done("room.hardMute", ["room": "r", "by": "a"])
        #expect(try audible(&driver) == ["a"])
        for (method, params) in row.calls {
            try driver.done(method, .object(params.merging(["room": "r"]) { $1 }))
        }
        if try driver.shown().streams.isEmpty { try driver.offer("a", "0:audio:sendonly") }
        #expect(try audible(&driver) == [], "\(row.name)")
    }

    @Test func `E-7 the mute of one holds under and after that of all`() throws {
        var driver = try driver()
        let one: JSON = ["room": "r", "participant": "a", "media": ["audio"]]
        try driver.done("room.hardMute", ["room": "r", "by": "a"])
        try driver.done("participant.hardMute", one)
        #expect(try audible(&driver) == [])
        try driver.done("room.hardUnmute", ["room": "r"])
        #expect(try audible(&driver) == ["m", "n", "b"])
        try driver.done("participant.hardUnmute", one)
        #expect(try audible(&driver).count == 4)
    }
}
