import Testing

@testable import Contract
@testable import ControlPlane
@testable import JSON

/// A locked room and those who wait for it.
@Suite struct LockedRoomTests {
    /// Makes a room that `k` waits for, with the moderators `m` and `n`.
    private func driver() throws -> ControlDriver {
        var driver = try ControlDriver.moderated(["knock": true], people: [])
        try driver.join("n", ["role": "moderator"])
        try driver.join("k")
        try driver.offer("k", "0:audio:sendonly")
        driver.events = []
        return driver
    }

    private let promote: JSON = [
        "room": "r", "participant": "k", "role": "moderator", "force": true, "by": "m",
    ]

    @Test func `E-12 a new moderator is locked out like anybody, until the room is unlocked`()
        throws
    {
        var driver = try driver()
        try driver.done("room.lock", ["room": "r"])
        driver.events = []
        try driver.done("role.change", promote)
        #expect(driver.takeEventSummaries() == ["participant.roleChanged k,m,n"])
        #expect(try driver.shown().awaited.map(\.participant) == ["k"])
        let approve: JSON = ["room": "r", "participant": "k", "by": "m"]
        guard case .failure(let error) = driver.call("participant.approve", approve) else {
            Issue.record("let in")
            return
        }
        #expect(error.reason == "room-locked")
        let lock: JSON = ["room": "r", "by": "k"]
        #expect(throws: IPCError.self) { try driver.done("room.unlock", lock) }
        try driver.done("room.unlock", ["room": "r", "by": "m"])
        #expect(
            driver.takeEventSummaries() == [
                "room.unlocked all", "participant.approved k,m,n", "participant.joined all",
                "stream.created all",
            ]
        )
        #expect(try driver.shown().awaited.isEmpty)
    }

    @Test func `E-12 a former moderator becomes one again in a locked room`() throws {
        var driver = try driver()
        try driver.done("participant.leave", ["room": "r", "participant": "n"])
        try driver.join("n")
        try driver.done("room.lock", ["room": "r"])
        let change: JSON = ["room": "r", "participant": "n", "role": "moderator", "force": true]
        try driver.done("role.change", change)
        #expect(try driver.shown().awaited.map(\.participant) == ["k"])
    }

    @Test func `E-12 who was promoted while waiting has not been a moderator in the room`() throws {
        var driver = try driver()
        try driver.done("room.lock", ["room": "r"])
        try driver.done("role.change", promote)
        try driver.done("participant.leave", ["room": "r", "participant": "k"])
        let join: JSON = ["room": "r", "participant": "k", "role": "moderator"]
        guard case .failure(let error) = driver.call("participant.join", join) else {
            Issue.record("let in")
            return
        }
        #expect(error.reason == "room-locked")
    }
}
