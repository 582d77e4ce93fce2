import Rooms
import Testing

@testable import Contract
@testable import ControlPlane
@testable import JSON
@testable import WorkerInterface

/// Numbers of objects when a process dies while it saves what it has just given them to.
@Suite struct RestoredNumberTests {
    /// Makes a call; the process dies when it has saved the room but not its own record, and
    /// another one goes on.
    private func die(
        _ driver: inout ControlDriver,
        during call: (inout ControlDriver) throws -> Void
    ) throws {
        let own = try #require(driver.saved[RoomRecords.processKey])
        try call(&driver)
        #expect(driver.saved[RoomRecords.processKey] != own, "the call gives a number")
        driver.saved[RoomRecords.processKey] = own
        let saved = driver.saved
        driver.restart(with: saved, seed: 2)
        driver.drain()
        driver.fence()
    }

    @Test func `a subscription's number is not given again`() throws {
        var driver = ControlDriver()
        try driver.room("r")
        for id in ["a", "b", "c"] { try driver.join(id) }
        let stream = try #require(try driver.offer("a", "0:video:sendonly").first?.stream)
        for id in ["b", "c"] { try driver.offer(id, "0:video:recvonly") }
        var first: SubscriptionID?
        try die(&driver) { first = try $0.watch("b", stream).subscription }
        let second = try driver.watch("c", stream).subscription
        #expect(first != nil && second != first)
        #expect(driver.plane.rooms["r"]?.room.subscriptions.count == 2)
    }

    @Test func `a tap's number is not given again`() throws {
        var driver = try ControlDriver.tapped("a", "b")
        let streams = try driver.shown().streams.map(\.stream)
        func params(_ index: Int) -> JSON {
            [
                "room": "r", "stream": .string(streams[index].rawValue),
                "video": ["address": "127.0.0.1:5000"],
            ]
        }
        try die(&driver) { _ = try $0.done("tap.start", params(0)) }
        try driver.done("tap.start", params(1))
        #expect(driver.plane.roomOutputs.forwards.count == 2)
    }

    @Test func `numbers that came with a room of another node are left to it`() throws {
        var driver = ControlDriver()
        try driver.room("r")
        for id in ["a", "b", "c"] { try driver.join(id) }
        let stream = try #require(try driver.offer("a", "0:video:sendonly").first?.stream)
        for id in ["b", "c"] { try driver.offer(id, "0:video:recvonly") }
        driver.plane.shared.lastSubscription = 5 << 24
        try driver.watch("b", stream)
        driver.plane.shared.lastSubscription = 7
        try driver.room("other")
        let saved = driver.saved
        driver.restart(with: saved, seed: 2)
        #expect(driver.plane.shared.lastSubscription == 7)
    }

    @Test func `the process's own record is saved before those of rooms`() {
        let keys = ["r/b/", "x", "r/a/", "p/b/q", "g/home/1", "y"]
        let groups = keys.map { SavedChange(key: $0, value: []) }.byScope
        #expect(groups.map(\.key) == ["", "a", "b", "g/home"])
        #expect(groups.first?.value.map(\.key) == ["x", "y"])
    }
}
