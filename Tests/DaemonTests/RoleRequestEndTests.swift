import Testing

@testable import Contract
@testable import ControlPlane
@testable import JSON
@testable import Rooms

/// Role requests that end without an answer, and what their two hear of it.
@Suite struct RoleRequestEndTests {
    /// A way in which the request of `m` to `a` ends without an answer.
    struct RequestEnd: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var method: String
        var params: [String: JSON]
        /// Reason, audience and `by` of the event.
        var told: [String]
    }

    static let requestEnds = [
        RequestEnd(
            testDescription: "the target leaves",
            method: "participant.leave",
            params: ["participant": "a"],
            told: ["target-left m by a"]
        ),
        RequestEnd(
            testDescription: "the requester leaves",
            method: "participant.leave",
            params: ["participant": "m"],
            told: ["requester-left a by m"]
        ),
        RequestEnd(
            testDescription: "the requester is dropped",
            method: "participant.drop",
            params: ["participants": ["m"], "by": "n"],
            told: ["requester-left a by n"]
        ),
        RequestEnd(
            testDescription: "both are dropped",
            method: "participant.drop",
            params: ["participants": ["a", "m"], "by": "n"],
            told: ["target-left m by n"]
        ),
        RequestEnd(
            testDescription: "a newer request",
            method: "role.change",
            params: ["participant": "a", "role": "guest", "by": "n"],
            told: ["replaced a,m by n"]
        ),
        RequestEnd(
            testDescription: "a forced change",
            method: "role.change",
            params: ["participant": "a", "role": "guest", "force": true, "by": "n"],
            told: ["role-changed a,m by n"]
        ),
        RequestEnd(
            testDescription: "the requester loses the right",
            method: "role.change",
            params: ["participant": "m", "role": "viewer", "force": true],
            told: ["not-permitted a,m"]
        ),
        RequestEnd(
            testDescription: "the requester's role loses the right",
            method: "room.update",
            params: [
                "settings": [
                    "roles": [
                        ["name": "moderator", "permissions": ["update"]], ["name": "participant"],
                        ["name": "viewer"],
                    ]
                ]
            ],
            told: ["not-permitted a,m"]
        ),
        RequestEnd(
            testDescription: "the role is no more",
            method: "room.update",
            params: ["settings": ["roles": [["name": "participant"]]], "by": "n"],
            told: ["role-removed a,m by n"]
        ),
        RequestEnd(
            testDescription: "the target joins again",
            method: "participant.join",
            params: ["participant": "a"],
            told: []
        ),
        RequestEnd(
            testDescription: "the end of the room",
            method: "room.close",
            params: [:],
            told: []
        ),
    ]

    @Test(arguments: requestEnds)
    func `R-3 a request that ends otherwise is told, too, and why`(_ row: RequestEnd) throws {
        let roles: JSON = [
            ["name": "participant", "publish": ["audio": true]], ["name": "viewer"],
            ["name": "guest"],
        ]
        var driver = try ControlDriver.moderated(["roles": roles])
        try driver.join("n", ["role": "moderator"])
        let ask: JSON = ["room": "r", "participant": "a", "role": "viewer", "by": "m"]
        let request = try #require(try driver.done("role.change", ask)["request"]?.word)
        driver.events = []
        try driver.done(row.method, .object(row.params.merging(["room": "r"]) { $1 }))
        let ends = driver.events.filter { $0.event == "role.requestExpired" }
        let told = ends.map { event -> String in
            var audience = "all"
            if case .participants(let ids) = event.audience {
                audience = ids.map(\.rawValue).joined(separator: ",")
            }
            let by = event.data["by"].flatMap(\.word).map { " by \($0)" } ?? ""
            return "\(event.data["reason"]?.word ?? "") \(audience)\(by)"
        }
        #expect(told == row.told)
        for event in ends {
            #expect(event.data["request"]?.word == request && event.data["requester"] == "m")
        }
        guard !row.told.isEmpty, row.params["participant"] != "a" else { return }
        let accept: JSON = ["room": "r", "participant": "a", "request": .string(request)]
        #expect(throws: IPCError.self) { try driver.done("role.accept", accept) }
    }

    @Test func `R-3 a change of roles looks at the requests of its participants alone`() throws {
        let people = (0..<20).map { "p\($0)" }
        var driver = try ControlDriver.moderated(people: people)
        try driver.join("n", ["role": "moderator"])
        for (index, id) in people.enumerated() {
            let by: JSON = index == 19 ? "n" : "m"
            let ask: JSON = ["room": "r", "participant": .string(id), "role": "viewer", "by": by]
            try driver.done("role.change", ask)
        }
        /// Counts the requests that a call looks at.
        func count(_ method: String, _ params: [String: JSON]) throws -> Int? {
            let before = driver.plane.rooms["r"]?.room.moderation.roleRequests.reviewed ?? 0
            try driver.done(method, .object(params.merging(["room": "r"]) { $1 }))
            return driver.plane.rooms["r"].map {
                $0.room.moderation.roleRequests.reviewed - before
            }
        }
        let viewer: [String: JSON] = ["role": "viewer", "force": true]
        #expect(try count("role.change", viewer.merging(["participant": "p0"]) { $1 }) == 0)
        #expect(try count("role.change", viewer.merging(["participant": "n"]) { $1 }) == 1)
        // Settings may end any.
        #expect(try count("room.update", ["settings": ["maxActiveTalkers": 5]]) == 18)
        driver.events = []
        #expect(try count("role.change", viewer.merging(["participant": "m"]) { $1 }) == 18)
        let ends = driver.events.filter { $0.event == "role.requestExpired" }
        let asked = ends.compactMap { $0.data["participant"]?.word }
        #expect(asked == Array(people[1..<19]), "oldest first")
    }
}
