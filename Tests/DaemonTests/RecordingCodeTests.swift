import Contract
import JSON
import Testing

@testable import ControlPlane

/// Conditions and results of recording, with the seeds' codes.
@Suite struct RecordingCodeTests {
    typealias Step = ModeratorCodeTests.Step
    typealias Row = ModeratorCodeTests.Row

    static let start = Step("recording.start")
    static let stop = Step("recording.stop")

    static let rows = [
        Row("E-2 5007 participant starts", Step("recording.start", ["by": "a"]), 5007),
        Row(
            "E-2 5008 participant stops",
            after: [start],
            Step("recording.stop", ["by": "a"]),
            5008
        ),
        Row("E-2 5008 comes before 5036", Step("recording.stop", ["by": "a"]), 5008),
        Row("E-2 5033 start while start in process", during: [start], start, 5033),
        Row("E-2 5034 start while recording", after: [start], start, 5034),
        Row("E-2 5035 stop while stop in process", after: [start], during: [stop], stop, 5035),
        Row("E-2 5036 stop without recording", stop, 5036),
        Row("E-2 5036 stop once it has stopped", after: [start, stop], stop, 5036),
        Row("E-3 5033 stop while start in process", during: [start], stop, 5033),
        Row("E-3 5035 start while stop in process", after: [start], during: [stop], start, 5035),
        Row("E-2 by nobody known", Step("recording.start", ["by": "x"]), 4005),
        Row("E-2 a stream that is not there", Step("recording.start", ["streams": ["x"]]), 4006),
    ]

    @Test(arguments: rows)
    func `codes`(_ row: Row) throws {
        var driver = ControlDriver(recordings: "/recordings")
        try driver.room()
        try driver.join("m", ["role": "moderator"])
        try driver.join("a")
        for step in row.before { try driver.done(step.method, step.params) }
        driver.holdsFences = true
        for step in row.inFlight { driver.send(step.method, step.params) }
        let before = driver.events.count
        let id = driver.send(row.call.method, row.call.params)
        guard case .failure(let error)? = driver.replies[id] else {
            Issue.record("not refused at once: \(row.testDescription)")
            return
        }
        #expect(error.code == row.code)
        #expect(driver.events.count == before)
    }

    @Test func `a daemon that records nothing says so`() throws {
        var driver = ControlDriver()
        try driver.room()
        guard case .failure(let error) = driver.call("recording.start", ["room": "r"]) else {
            Issue.record("not refused")
            return
        }
        #expect(error.code == 4091 && error.reason == "no-recorder")
    }

    @Test func `recordings have a limit, and it is given back`() throws {
        var limits = ControlLimits()
        limits.recordings = 1
        var driver = ControlDriver(limits: limits, recordings: "/recordings")
        try driver.room("r")
        try driver.room("s")
        try driver.done("recording.start", ["room": "r"])
        guard case .failure(let error) = driver.call("recording.start", ["room": "s"]) else {
            Issue.record("not refused")
            return
        }
        #expect(error.code == 4029)
        try driver.done("recording.stop", ["room": "r"])
        try driver.done("recording.start", ["room": "s"])
        try driver.done("room.close", ["room": "s"])
        try driver.done("recording.start", ["room": "r"])
    }
}
