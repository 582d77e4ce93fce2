import Testing

@testable import Contract
@testable import ControlPlane
@testable import JSON
@testable import Rooms

/// The number of followers of the active speakers that a change of rights looks at.
@Suite struct FollowerWorkTests {
    /// One call, and how many of the followers it may mark: some, and all so many times.
    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String { method }
        var method: String
        var params: [String: JSON]
        var some = 0
        var all = 0
    }

    static let rows = [
        Row(method: "participant.approve", params: ["participant": "w"], some: 1),
        Row(
            method: "participant.hardMute",
            params: ["participant": "f0", "media": ["audio"]],
            some: 1
        ),
        Row(
            method: "participant.setMode",
            params: ["participant": "f0", "mode": "RECV_ONLY"],
            some: 1
        ),
        Row(method: "room.unlock", params: [:]),
        Row(
            method: "role.change",
            params: ["participant": "f0", "role": "viewer", "force": true],
            some: 1,
            all: 1
        ),
        // Each marks itself, and the call all at once.
        Row(method: "role.changeAll", params: ["role": "viewer"], all: 2),
        Row(method: "room.update", params: ["settings": ["maxActiveTalkers": 5]], all: 2),
    ]

    @Test(arguments: rows)
    func `rights that change look at followers once a call`(_ row: Row) throws {
        let people = (0..<20).map { "f\($0)" }
        var driver = try ControlDriver.moderated(people: people)
        try driver.done("room.update", ["room": "r", "settings": ["knock": true]])
        try driver.join("w")
        for id in people + ["w"] {
            try driver.offer(id, "0:audio:recvonly")
            let follow: JSON = [
                "room": "r", "participant": .string(id), "audioMids": ["0"], "videoMids": [],
            ]
            try driver.done("talkers.subscribe", follow)
        }
        try driver.done("room.lock", ["room": "r"])
        if row.method != "room.unlock" { try driver.done("room.unlock", ["room": "r"]) }
        let before = driver.plane.rooms["r"]?.room.speakers.followers.marks ?? 0
        try driver.done(row.method, .object(row.params.merging(["room": "r"]) { $1 }))
        let after = driver.plane.rooms["r"]?.room.speakers.followers.marks ?? 0
        #expect(after - before <= row.some + row.all * (people.count + 1))
    }
}
