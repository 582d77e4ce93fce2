import ControlPlane
import JSON
import RTP
import Testing

@testable import Contract

/// A daemon that is taken out of service.
struct ServerDrainTests {
    @Test func `without rooms it is drained at once, and takes none`() throws {
        var driver = ControlDriver()
        try driver.done("server.drain")
        #expect(driver.takeEvents() == ["server.drained"])
        #expect(throws: IPCError.draining()) { try driver.room("late") }
        #expect(driver.plane.deadline == nil)
    }

    @Test func `rooms go on, and the end of the last is told after its own`() throws {
        var driver = ControlDriver()
        try driver.room("one")
        try driver.room("two")
        try driver.join("a", ["room": "one"])
        _ = driver.takeEvents()
        try driver.done("server.drain")
        try driver.join("b", ["room": "one"])
        #expect(driver.takeEvents() == ["participant.joined"])
        try driver.done("room.close", ["room": "two"])
        #expect(driver.takeEvents() == ["room.closed"])
        try driver.done("room.close", ["room": "one"])
        #expect(
            driver.takeEventSummaries() == [
                "participant.left a", "participant.left b", "room.closed all",
                "server.drained all",
            ]
        )
    }

    @Test func `at the deadline what is left ends`() throws {
        var driver = ControlDriver()
        try driver.room()
        try driver.join("a")
        try driver.offer("a", "0:audio:sendonly")
        _ = driver.takeEvents()
        try driver.done("server.drain", ["deadline": 90])
        let deadline = try #require(driver.plane.deadline)
        #expect(deadline.milliseconds(since: driver.now) == 90_000)
        driver.plane.expire(at: deadline)
        driver.drain()
        #expect(driver.takeEvents().isEmpty, "before the worker has passed the fence")
        driver.fence()
        #expect(
            driver.takeEvents()
                == ["stream.destroyed", "participant.left", "room.closed", "server.drained"]
        )
        #expect(!driver.hasExited)
    }

    @Test(arguments: ["server.undrain", "server.drain"])
    func `rooms that the deadline has not ended yet stay`(_ method: String) throws {
        var driver = ControlDriver()
        for room in ["r1", "r2"] {
            try driver.room(room)
            for id in 0..<500 {
                let join: JSON = [
                    "room": .string(room), "participant": .string("p\(id)"), "snapshot": false,
                ]
                try driver.done("participant.join", join)
            }
        }
        try driver.done("server.drain", ["deadline": 0])
        driver.plane.expire(at: driver.now)
        driver.drain()
        #expect(driver.plane.roomCount == 1, "the other's turn is the next")
        try driver.done(method)
        driver.plane.expire(at: driver.now)
        driver.drain()
        #expect(driver.plane.roomCount == 1)
    }

    @Test(arguments: [-1, 604_801, 1e300] as [Double])
    func `a deadline out of range is refused, and nothing has changed`(_ deadline: Double) throws {
        var driver = ControlDriver()
        #expect(throws: IPCError.self) {
            try driver.done("server.drain", ["deadline": .number(deadline)])
        }
        try driver.room()
    }
}
