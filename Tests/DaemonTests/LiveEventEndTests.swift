import RTP
import Rooms
import Testing

@testable import Contract
@testable import ControlPlane
@testable import JSON
@testable import WorkerInterface

/// Ends of live events, by a call or because nobody is there; names begin with the rows that they
/// prove.
@Suite struct LiveEventEndTests {
    private static let tap = 1

    private func event(_ settings: [String: JSON] = [:]) throws -> ControlDriver {
        var driver = ControlDriver(recordings: "/recordings")
        let mode: [String: JSON] = ["mode": "single_host"]
        try driver.room("r", .object(mode.merging(settings) { $1 }))
        return driver
    }

    private func set(_ state: String, _ driver: inout ControlDriver) throws {
        let params: JSON = ["room": "r", "state": .string(state), "by": "host"]
        try driver.done("room.setState", params)
    }

    /// Begins a recording, a live stream, an RTP forward, and a live stream that its server has not
    /// accepted yet; returns the id of the last call.
    private func sendOut(_ driver: inout ControlDriver) throws -> Int64 {
        let stream = try #require(try driver.offer("host", "0:audio:sendonly")[0].stream)
        try driver.done("recording.start", ["room": "r"])
        driver.tell(.tap(.started(1)), from: Self.tap)
        let accepted = StreamingCodeTests.start(["url": "rtmp://h/1"])
        driver.send(accepted.method, accepted.params)
        driver.settle(2)
        let forward: JSON = [
            "room": "r", "stream": .string(stream.rawValue),
            "audio": ["address": "127.0.0.1:5000"],
        ]
        try driver.done("tap.start", forward)
        let awaited = StreamingCodeTests.start(["url": "rtmp://h/2"])
        let call = driver.send(awaited.method, awaited.params)
        driver.fence()
        return call
    }

    @Test func `L-9 with the event end its recording, live streams and RTP forwards`() throws {
        var driver = try event()
        try driver.join("host", ["role": "moderator"])
        for state in ["ready", "ongoing"] { try set(state, &driver) }
        let awaited = try sendOut(&driver)
        driver.events = []
        driver.commands = []
        try set("ended", &driver)
        let closed = driver.takeCommands().compactMap { command -> OutputID? in
            guard case .tap(.close(let id)) = command else { return nil }
            return id
        }
        #expect(closed == [1, 2, 3, 4])
        #expect(driver.events.first?.event == "room.stateChanged")
        let told = driver.events.filter { $0.event.hasSuffix(".stopped") }
        #expect(told.map(\.event) == ["recording.stopped", "streaming.stopped", "tap.stopped"])
        for event in told {
            #expect(event.data["reason"] == "ended" && event.data["by"] == "host")
            #expect(event.audience == .all)
        }
        driver.tell(.tap(.ended(4, reason: nil, [])), from: Self.tap)
        guard case .failure(let error)? = driver.replies[awaited] else {
            Issue.record("the live stream that had not begun is not answered")
            return
        }
        #expect(error.code == 4508)
        let room = try driver.shown()
        #expect(room.recording == nil && room.streaming == nil)
        #expect(driver.plane.shared.taps?.open == 0)
        #expect(driver.plane.shared.streaming.open == 0 && driver.plane.shared.outputs.open == 0)
    }

    @Test func `L-9 a recording that has not begun when its event ends is refused without events`()
        throws
    {
        var driver = try event()
        try driver.join("host", ["role": "moderator"])
        for state in ["ready", "ongoing"] { try set(state, &driver) }
        driver.events = []
        let start = driver.send("recording.start", ["room": "r"])
        driver.send("room.setState", ["room": "r", "state": "ended", "by": "host"])
        driver.tell(.tap(.started(1)), from: Self.tap)
        driver.fence()
        guard case .failure(let error)? = driver.replies[start] else {
            Issue.record("the recording is not refused")
            return
        }
        #expect(error.code == 4507 && error.details["cause"] == "ended")
        #expect(!driver.events.contains { $0.event.hasPrefix("recording.") })
        #expect(driver.plane.shared.taps?.open == 0)
    }

    @Test func `L-9 an event that has ended is neither recorded nor streamed`() throws {
        let stream = StreamingCodeTests.start(["by": "host"])
        let calls: [(method: String, params: JSON)] = [
            ("recording.start", ["room": "r", "by": "host"]), (stream.method, stream.params),
        ]
        for call in calls {
            var driver = try event(["autoRecord": true])
            try driver.join("host", ["role": "moderator"])
            try set("ended", &driver)
            _ = driver.takeEvents()
            guard case .failure(let error) = driver.call(call.method, call.params) else {
                Issue.record("\(call.method) was taken")
                continue
            }
            #expect(error.code == 4091 && error.reason == "event-ended")
            driver.pass(milliseconds: 30_000)
            #expect(driver.takeEvents() == [])
            #expect(driver.plane.shared.taps?.open == 0)
        }
    }

    @Test(arguments: [false, true])
    func `L-6 L-10 without emptySeconds an event waits for its host`(_ isVisited: Bool) throws {
        var driver = try event(["emptySeconds": .null])
        if isVisited {
            try driver.join("host", ["role": "moderator"])
            driver.pass(milliseconds: 1_000)
            try driver.done("participant.leave", ["room": "r", "participant": "host"])
        }
        _ = driver.takeEvents()
        driver.pass(milliseconds: 24 * 3_600_000)
        #expect(driver.takeEvents() == [])
        #expect(try driver.shown().state == .created)
        try driver.join("host", ["role": "moderator"])
        try set("ready", &driver)
        try driver.join("guest")
    }

    @Test(arguments: [false, true])
    func `L-6 L-10 by default an empty event ends after a minute`(_ isVisited: Bool) throws {
        var driver = try event()
        if isVisited {
            try driver.join("host", ["role": "moderator"])
            driver.pass(milliseconds: 120_000)
            try driver.done("participant.leave", ["room": "r", "participant": "host"])
        }
        _ = driver.takeEvents()
        driver.pass(milliseconds: 61_000)
        #expect(driver.events.last?.data == ["reason": "empty"])
        #expect(driver.takeEvents() == ["room.closed"])
        #expect(driver.plane.rooms.isEmpty)
    }
}
