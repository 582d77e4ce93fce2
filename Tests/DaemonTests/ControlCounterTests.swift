import JSON
import RTP
import Rooms
import Testing

@testable import Contract
@testable import ControlPlane
@testable import WorkerInterface

/// Counters of the control plane in the metrics.
@Suite struct ControlCounterTests {
    private static let tap = 1

    @Test func `those who come in and leave are counted, by the reason`() throws {
        var driver = ControlDriver()
        try driver.room("r", ["knock": true])
        try driver.join("m", ["role": "moderator"])
        for name in ["a", "b", "c"] { try driver.join(name) }
        #expect(driver.plane.counters.joined == 1, "the others wait")
        try driver.done("participant.approve", ["room": "r", "participant": "a"])
        try driver.done("participant.deny", ["room": "r", "participant": "b"])
        try driver.done("participant.leave", ["room": "r", "participant": "c"])
        try driver.join("m", ["role": "moderator"])
        try driver.done("participant.drop", ["room": "r", "participants": ["a"]])
        let counters = driver.plane.counters
        #expect(counters.joined == 3)
        let left = counters.left.counts.filter { $0.value > 0 }
        #expect(left == ["denied": 1, "left": 1, "replaced": 1, "dropped": 1])
    }

    @Test func `refused joins and offers are counted by cause, and no other calls`() throws {
        var limits = ControlLimits()
        limits.participantsPerRoom = 2
        limits.memoryMegabytes = 100
        var driver = ControlDriver(limits: limits)
        try driver.room()
        let join: JSON = ["room": "r", "participant": "z"]
        try driver.join("a")
        _ = driver.call("participant.join", ["room": "nowhere", "participant": "a"])
        _ = driver.call("participant.join", ["room": "r", "participant": "b", "role": "king"])
        _ = driver.call("participant.join", ["room": "r"])
        driver.plane.shared.memory.residentMegabytes = 101
        _ = driver.call("participant.join", join)
        driver.plane.shared.memory.residentMegabytes = 0
        var overload = WorkerOverload()
        overload.busyPercent = 99
        overload.step = .joins
        driver.tell(.pressure(overload, transports: 1))
        _ = driver.call("participant.join", join)
        driver.tell(.pressure(WorkerOverload(), transports: 1))
        try driver.join("b")
        _ = driver.call("participant.join", join)
        let offer: JSON = ["room": "r", "participant": "a", "sdp": "v=1\r\n"]
        _ = driver.call("transport.offer", offer)
        _ = driver.call("room.get", ["room": "nowhere"])
        let counters = driver.plane.counters
        #expect(
            counters.joinRefusals.counts == [
                "no-such-room": 1, "role-invalid": 1, "invalid-params": 1, "memory": 1,
                "overload": 1, "limit-reached": 1,
            ]
        )
        #expect(counters.offerRefusals.counts.filter { $0.value > 0 } == ["bad-sdp": 1])
    }

    @Test func `recordings are counted as they begin, end and fail`() throws {
        var driver = ControlDriver(recordings: "/recordings")
        try driver.room()
        try driver.join("m", ["role": "moderator"])
        try driver.done("recording.start", ["room": "r"])
        #expect(states(driver.plane.recordingStates) == ["starting": 1, "recording": 0])
        driver.tell(.tap(.started(1)), from: Self.tap)
        #expect(states(driver.plane.recordingStates) == ["starting": 0, "recording": 1])
        driver.tell(.tap(.ended(1, reason: "disk-full", [])), from: Self.tap)
        try driver.done("recording.start", ["room": "r"])
        driver.tell(.tap(.ended(2, reason: "not-permitted", [])), from: Self.tap)
        try driver.done("recording.start", ["room": "r"])
        driver.tell(.tap(.started(3)), from: Self.tap)
        try driver.done("recording.stop", ["room": "r"])
        driver.tell(.tap(.ended(3, reason: nil, [])), from: Self.tap)
        let counters = driver.plane.counters
        #expect(counters.recordingsStarted == 2)
        let ended = counters.recordingsEnded.counts.filter { $0.value > 0 }
        #expect(ended == ["disk-full": 1, "requested": 1])
        let failed = counters.recordingsFailed.counts.filter { $0.value > 0 }
        #expect(failed == ["not-permitted": 1])
        #expect(states(driver.plane.recordingStates) == ["starting": 0, "recording": 0])
    }

    @Test func `live streams are counted likewise, and their interruptions`() throws {
        var driver = try ControlDriver.tapped()
        let step = StreamingCodeTests.start()
        _ = driver.send(step.method, step.params)
        driver.fence()
        let none = ["starting": 0, "streaming": 0, "interrupted": 0]
        let starting = none.merging(["starting": 1]) { $1 }
        #expect(states(driver.plane.streamingStates) == starting)
        driver.tell(.tap(.ended(1, reason: "unreachable", [])), from: Self.tap)
        _ = driver.send(step.method, step.params)
        driver.fence()
        driver.tell(.tap(.started(2)), from: Self.tap)
        let streaming = none.merging(["streaming": 1]) { $1 }
        #expect(states(driver.plane.streamingStates) == streaming)
        driver.tell(.tap(.interrupted(2, cause: "timeout")), from: Self.tap)
        let interrupted = none.merging(["interrupted": 1]) { $1 }
        #expect(states(driver.plane.streamingStates) == interrupted)
        driver.tell(.tap(.resumed(2)), from: Self.tap)
        #expect(states(driver.plane.streamingStates) == streaming)
        try driver.done("streaming.stop", ["room": "r"])
        driver.tell(.tap(.ended(2, reason: nil, [])), from: Self.tap)
        #expect(states(driver.plane.streamingStates) == none)
        let counters = driver.plane.counters
        #expect(counters.streamingsStarted == 1 && counters.streamingInterruptions == 1)
        let ended = counters.streamingsEnded.counts.filter { $0.value > 0 }
        #expect(ended == ["requested": 1])
        let failed = counters.streamingsFailed.counts.filter { $0.value > 0 }
        #expect(failed == ["unreachable": 1])
    }

    @Test func `reasons beyond the limit are counted together`() {
        var counts = ReasonCounts(known: ["known"])
        for number in 0..<100 { counts.note("reason-\(number)") }
        counts.note("known")
        #expect(counts.counts.count == ReasonCounts.limit + 1)
        #expect(counts.counts["known"] == 1 && counts.counts["reason-0"] == 1)
        let others = 100 - (ReasonCounts.limit - 1)
        #expect(counts.counts[ReasonCounts.other] == UInt64(others))
    }

    private func states(_ all: [(state: String, count: Int)]) -> [String: Int] {
        Dictionary(uniqueKeysWithValues: all.map { ($0.state, $0.count) })
    }
}
