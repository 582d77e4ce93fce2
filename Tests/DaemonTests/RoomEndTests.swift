import RTP
import Testing

@testable import Contract
@testable import ControlPlane
@testable import JSON
@testable import Rooms
@testable import WorkerInterface

/// The end of a room with people in it: each gets an account of the stay, and the room's end is
/// told last.
@Suite struct RoomEndTests {
    struct Ending: CustomTestStringConvertible, Sendable {
        var testDescription: String
        /// Reason of `participant.left`, and that of `room.closed`.
        var left: String
        var closed: String
        var by: JSON?
        var detail: JSON?
        var end: @Sendable (inout ControlDriver) throws -> Void
    }

    static let endings = [
        Ending(testDescription: "closed", left: "room-closed", closed: "closed") { driver in
            driver.send("room.close", ["room": "r"])
        },
        Ending(
            testDescription: "closed by a moderator",
            left: "room-closed",
            closed: "closed",
            by: "m",
            detail: "lunch"
        ) { driver in
            driver.send("room.close", ["room": "r", "by": "m", "detail": "lunch"])
        },
        Ending(testDescription: "shutdown", left: "shutdown", closed: "shutdown") { driver in
            driver.plane.shutdown(at: driver.now)
            driver.drain()
        },
        Ending(testDescription: "drained", left: "shutdown", closed: "shutdown") { driver in
            driver.send("server.drain", ["deadline": 0])
            driver.plane.expire(at: driver.now)
            driver.drain()
        },
    ]

    @Test(arguments: endings)
    func `each leaves with an account, and the room's end is told last`(_ row: Ending) throws {
        var driver = ControlDriver()
        try driver.room("r", ["knock": true])
        try driver.join("m", ["role": "moderator"])
        for id in ["a", "k"] { try driver.join(id) }
        try driver.done("participant.approve", ["room": "r", "participant": "a"])
        try driver.offer("a", "0:audio:sendonly")
        let transport = try driver.transport("a")
        driver.now = driver.now.advanced(milliseconds: 60_000)
        driver.events = []
        try row.end(&driver)
        #expect(driver.events.isEmpty, "before the worker has passed the fence")
        var quality = LinkQuality()
        quality.roundTrip.add(0.040)
        driver.tell(.closed(transport, quality))
        driver.fence()
        let events = driver.events.filter { $0.room != nil }
        let told = driver.takeEventSummaries().filter { !$0.hasPrefix("server.") }
        #expect(
            told == [
                "stream.destroyed all", "participant.left m", "participant.left a",
                "participant.left k", "room.closed all",
            ]
        )
        for event in events where event.event != "stream.destroyed" {
            #expect(event.data["by"] == row.by && event.data["detail"] == row.detail)
            let isLast = event.event == "room.closed"
            #expect(event.data["reason"]?.word == (isLast ? row.closed : row.left))
        }
        let left = try #require(try events[2].data(as: ParticipantLeft.self)?.session)
        #expect(left.sent.audioMinutes >= 1 && left.duration >= 60)
        #expect(left.roundTripTime == MeanAndWorst(mean: 40, worst: 40))
        #expect(driver.plane.leakedObjects.isEmpty)
    }

    @Test func `in a room of any size each member costs one short event`() throws {
        let count = 3_000
        var limits = ControlLimits()
        limits.participantsPerRoom = count
        var driver = ControlDriver(limits: limits)
        try driver.room()
        for number in 0..<count {
            try driver.join("p\(number)", ["snapshot": false])
        }
        driver.events = []
        driver.longestLine = 0
        try driver.done("room.close", ["room": "r"])
        #expect(driver.events.count == count + 1)
        let named = driver.events.map { event -> Int in
            if case .participants(let ids) = event.audience { ids.count } else { 0 }
        }
        #expect(named.reduce(0, +) == count && driver.events.last?.audience == .all)
        #expect(driver.longestLine < 1_000)
    }
}
