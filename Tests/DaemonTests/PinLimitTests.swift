import Contract
import Testing

@testable import ControlPlane
@testable import JSON

/// Numbers of pins and of raised hands that a room takes.
@Suite struct PinLimitTests {
    /// Makes a room of a moderator `m` and so many participants, `p0` and so on.
    private func driver(_ count: Int, _ settings: JSON) throws -> ControlDriver {
        var limits = ControlLimits()
        limits.participantsPerRoom = 2_000
        var driver = ControlDriver(limits: limits)
        try driver.room("r", settings)
        try driver.join("m", ["role": "moderator"])
        for index in 0..<count { try driver.join("p\(index)", ["snapshot": false]) }
        driver.events = []
        return driver
    }

    private func pin(_ range: Range<Int>) -> JSON {
        ["room": "r", "participants": .array(range.map { .string("p\($0)") })]
    }

    @Test func `E-32 a strict room takes one pin less than its list is long`() throws {
        var driver = try driver(4, ["maxActiveTalkers": 3])
        try driver.done("pin.add", pin(0..<2))
        guard case .failure(let error) = driver.call("pin.add", pin(2..<3)) else {
            Issue.record("not refused")
            return
        }
        #expect(error.code == 5126 && error.reason == "pin-limit")
        #expect(try driver.shown().pins == ["p0", "p1"])
    }

    @Test func `E-33 elsewhere pins extend the list, which keeps a place for a talker`() throws {
        var driver = try driver(6, ["maxActiveTalkers": 3, "strictPins": false])
        for index in 0..<6 { try driver.offer("p\(index)", "0:audio:sendonly") }
        try driver.begin("p5", "p4")
        try driver.done("pin.add", pin(0..<2))
        #expect(try driver.list() == "p4* p0! p1!", "no longer than before")
        try driver.done("pin.add", pin(2..<4))
        #expect(try driver.list() == "p4* p0! p1! p2! p3!")
        driver.pass(milliseconds: 1_000)
        let lists = try driver.takeLists()
        #expect(lists["m"] == "p4* p0! p1! p2! p3!")
        #expect(lists["p0"] == "p4* p5* p1! p2! p3!", "nobody is on its own list")
        // A room that becomes strict gives up the newest.
        try driver.done("room.update", ["room": "r", "settings": ["strictPins": true]])
        #expect(try driver.list() == "p4* p0! p1!")
        #expect(try driver.shown().pins == ["p0", "p1"])
        try driver.done("room.update", ["room": "r", "settings": ["strictPins": false]])
        try driver.done("pin.add", pin(2..<6))
        // Fewer active talkers take no pin away here.
        try driver.done("room.update", ["room": "r", "settings": ["maxActiveTalkers": 1]])
        #expect(try driver.list() == "p4*! p5*! p0! p1! p2! p3!")
    }

    @Test func `a room has at most a hundred pins`() throws {
        var driver = try driver(102, ["strictPins": false])
        try driver.done("pin.add", pin(0..<99))
        guard case .failure(let error) = driver.call("pin.add", pin(98..<101)) else {
            Issue.record("not refused")
            return
        }
        #expect(error.code == 4029 && error.reason == "limit-reached")
        #expect(error.details["limit"] == "pins" && error.details["value"] == 100)
        try driver.done("pin.add", pin(99..<100))
        #expect(try driver.shown().pins.count == 100)
        #expect(try driver.shown().talkers.count == 100)
        // A second pin of the same participant adds nothing.
        try driver.done("pin.add", pin(0..<100))
        try driver.done("pin.remove", pin(0..<1))
        try driver.done("pin.add", pin(101..<102))
    }

    @Test func `at most a thousand hands are up`() throws {
        var driver = try driver(1_001, ["mode": "lecture"])
        for index in 0..<1_000 {
            let id: JSON = .string("p\(index)")
            try driver.done("floor.request", ["room": "r", "participant": id])
        }
        driver.events = []
        let last: JSON = ["room": "r", "participant": "p1000"]
        guard case .failure(let error) = driver.call("floor.request", last) else {
            Issue.record("not refused")
            return
        }
        #expect(error.code == 4029 && error.reason == "limit-reached")
        #expect(error.details["limit"] == "floorRequests" && error.details["value"] == 1_000)
        #expect(driver.events.isEmpty)
        try driver.done("floor.deny", ["room": "r", "participant": "p7"])
        try driver.done("floor.request", last)
        // The same call again meets the same code as ever.
        guard case .failure(let again) = driver.call("floor.request", last) else {
            Issue.record("not refused")
            return
        }
        #expect(again.code == 5042)
    }
}
