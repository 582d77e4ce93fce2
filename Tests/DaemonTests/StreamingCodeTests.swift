import Contract
import Rooms
import Testing
import WorkerInterface

@testable import ControlPlane
@testable import JSON

/// Conditions and refusals of live streaming, with the seeds' codes.
@Suite struct StreamingCodeTests {
    typealias Step = ModeratorCodeTests.Step

    static let url: JSON = "rtmp://127.0.0.1/live/secret"

    /// State of the room's stream when the call arrives.
    enum Before: Sendable { case nothing, starting, on, stopping, stopped }

    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var before: Before
        var call: Step
        var code: Int

        init(_ name: String, in before: Before = .nothing, _ call: Step, _ code: Int) {
            testDescription = name
            self.before = before
            self.call = call
            self.code = code
        }
    }

    static func start(_ more: [String: JSON] = [:]) -> Step {
        Step("streaming.start", ["url": url].merging(more) { $1 })
    }

    static let stop = Step("streaming.stop")

    static let stateRows = [
        Row("E-29 5121 start while start in process", in: .starting, start(), 5121),
        Row(
            "E-29 5121 start to another server while start in process",
            in: .starting,
            start(["url": "rtmp://10.0.0.1/live/b"]),
            5121
        ),
        Row("E-29 5121 stop while start in process", in: .starting, stop, 5121),
        Row("E-29 5122 start while on", in: .on, start(), 5122),
        Row("E-29 5123 stop while stop in process", in: .stopping, stop, 5123),
        Row("E-29 5123 start while stop in process", in: .stopping, start(), 5123),
        Row("E-29 5124 stop without start", stop, 5124),
        Row("E-29 5124 stop once it has stopped", in: .stopped, stop, 5124),
        Row(
            "E-29 5124 stop another",
            in: .on,
            Step("streaming.stop", ["streaming": "live-x"]),
            5124
        ),
    ]

    static let rightRows = [
        Row("E-30 a participant starts", start(["by": "a"]), 4010),
        Row("E-30 a participant stops", in: .on, Step("streaming.stop", ["by": "a"]), 4010),
        Row("E-30 the right comes before the configuration", start(["by": "a", "url": "x"]), 4010),
        Row("E-30 by nobody known", start(["by": "x"]), 4005),
        Row("E-29 no URL", Step("streaming.start"), -32602),
        Row("E-29 a key that is none", start(["key": "x"]), -32602),
    ]

    @Test(arguments: stateRows + rightRows)
    func `codes`(_ row: Row) throws {
        var driver = try driver()
        try driver.bring(to: row.before)
        let before = driver.events.count
        let id = driver.send(row.call.method, row.call.params)
        guard case .failure(let error)? = driver.replies[id] else {
            Issue.record("not refused at once: \(row.testDescription)")
            return
        }
        #expect(error.code == row.code)
        #expect(driver.events.count == before)
    }

    struct Wrong: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var params: [String: JSON]
        var field: String

        init(_ name: String, _ params: [String: JSON], _ field: String) {
            testDescription = name
            self.params = params
            self.field = field
        }
    }

    static let wrong = [
        Wrong("E-29 5125 no scheme", ["url": "127.0.0.1/live/secret"], "url"),
        Wrong("E-29 5125 a scheme that is not allowed", ["url": "https://h/live/secret"], "url"),
        Wrong("E-29 5125 a file", ["url": "file:///tmp/secret"], "url"),
        Wrong("E-29 5125 no server", ["url": "rtmp:///live/secret"], "url"),
        Wrong("E-29 5125 no path", ["url": "rtmp://secret"], "url"),
        Wrong("E-29 5125 an empty path", ["url": "rtmp://secret/"], "url"),
        Wrong("E-29 5125 a blank", ["url": "rtmp://h/live/secret live=1"], "url"),
        Wrong("E-29 5125 no ASCII", ["url": "rtmp://h/live/secrét"], "url"),
        Wrong("E-29 5125 a port that is none", ["url": "rtmp://h:99999/secret"], "url"),
        Wrong("E-29 5125 port 0", ["url": "rtmp://h:0/secret"], "url"),
        Wrong("E-29 5125 nothing", ["url": ""], "url"),
        Wrong("E-29 5125 a layout that is none", ["layout": "mosaic"], "layout"),
        Wrong(
            "E-29 5125 a page in a layout without one",
            ["layout": "grid", "page": ["url": "https://h/secret"]],
            "page"
        ),
        Wrong("E-29 5125 an odd width", ["width": 641, "height": 360], "width"),
        Wrong("E-29 5125 too small", ["width": 640, "height": 20], "height"),
        Wrong("E-29 5125 too large", ["width": 3_840], "width"),
        Wrong("E-29 5125 too many pixels", ["width": 1_920, "height": 1_920], "height"),
        Wrong("E-29 5125 too few bits", ["bitrate": 1_000], "bitrate"),
        Wrong("E-29 5125 negative", ["bitrate": -1], "bitrate"),
    ]

    @Test(arguments: wrong)
    func `a configuration that cannot be is refused by its field`(_ row: Wrong) throws {
        var driver = try driver()
        let step = Self.start(row.params)
        guard case .failure(let error) = driver.call(step.method, step.params) else {
            Issue.record("not refused")
            return
        }
        #expect(error.code == 5125 && error.reason == "invalid-configuration")
        #expect(error.details["field"] == .string(row.field))
        #expect(!"\(error)".contains("secret"), "a key is not repeated")
        #expect(driver.plane.shared.streaming.open == 0)
    }

    static let pages: [[String: JSON]] = [
        ["layout": "page"], ["layout": "page", "page": ["url": "https://h/view"]],
        ["page": ["url": "https://h/view"]],
    ]

    @Test(arguments: pages)
    func `E-29 a page is not implemented, and says so`(_ params: [String: JSON]) throws {
        var driver = try driver()
        let step = Self.start(params)
        guard case .failure(let error) = driver.call(step.method, step.params) else {
            Issue.record("not refused")
            return
        }
        #expect(error.code == 4501 && error.reason == "not-implemented")
        #expect(driver.plane.shared.streaming.open == 0)
        // The right to stream comes first.
        let other = Self.start(params.merging(["by": "a"]) { $1 })
        guard case .failure(let earlier) = driver.call(other.method, other.params) else {
            Issue.record("not refused")
            return
        }
        #expect(earlier.code == 4010)
    }

    @Test func `E-29 what a daemon is not allowed to is refused`() throws {
        var driver = try driver()
        driver.plane.shared.streaming.schemes = ["rtmps"]
        let step = Self.start()
        guard case .failure(let error) = driver.call(step.method, step.params) else {
            Issue.record("not refused")
            return
        }
        #expect(error.code == 5125 && error.details["field"] == "url")
    }

    @Test func `a daemon without a tap's thread says so`() throws {
        var driver = ControlDriver()
        try driver.room()
        guard case .failure(let error) = driver.call("streaming.start", Self.start().params)
        else {
            Issue.record("not refused")
            return
        }
        #expect(error.code == 4091 && error.reason == "no-streamer")
    }

    @Test func `live streams have limits, and they are given back`() throws {
        var limits = ControlLimits()
        limits.streamings = 2
        limits.streamingsPerRoom = 1
        var driver = try driver(limits)
        try driver.room("s")
        try driver.room("t")
        func start(_ room: JSON) -> JSON {
            Self.start(["room": room, "url": .string("rtmp://h/\(room)")]).params
        }
        driver.send("streaming.start", start("r"))
        driver.settle(1)
        func refused(_ room: JSON, _ limit: JSON) -> Bool {
            guard case .failure(let error) = driver.call("streaming.start", start(room)) else {
                return false
            }
            return error.code == 4029 && error.details["limit"] == limit
        }
        let other = Self.start(["url": "rtmp://h/other"]).params
        guard case .failure(let error) = driver.call("streaming.start", other) else {
            Issue.record("not refused")
            return
        }
        #expect(error.code == 4029 && error.details["limit"] == "streamingsPerRoom")
        driver.send("streaming.start", start("s"))
        driver.settle(2)
        #expect(refused("t", "streamings"))
        try driver.done("room.close", ["room": "s"])
        driver.send("streaming.start", start("t"))
        driver.tell(.tap(.ended(3, reason: "refused", [])), from: 1)
        #expect(driver.plane.shared.streaming.open == 1)
    }

    private func driver(_ limits: ControlLimits = ControlLimits()) throws -> ControlDriver {
        var driver = ControlDriver(limits: limits, recordings: "/recordings")
        try driver.room("r", ["mode": "lecture"])
        try driver.join("m", ["role": "moderator"])
        try driver.join("a")
        return driver
    }
}

extension ControlDriver {
    /// Lets the server take the first packet of a live stream.
    mutating func settle(_ tap: OutputID) {
        fence()
        tell(.tap(.started(tap)), from: plane.setup.workers)
        fence()
    }

    fileprivate mutating func bring(to before: StreamingCodeTests.Before) throws {
        guard before != .nothing else { return }
        let start = StreamingCodeTests.start()
        let id = send(start.method, start.params)
        fence()
        #expect(replies[id] == nil, "the server has not taken it")
        guard before != .starting else { return }
        settle(1)
        _ = try #require(try replies[id]?.get())
        guard before != .on else { return }
        holdsFences = true
        send("streaming.stop", StreamingCodeTests.stop.params)
        guard before == .stopped else { return }
        tell(.tap(.ended(1, reason: nil, [])), from: plane.setup.workers)
        fence()
    }
}
