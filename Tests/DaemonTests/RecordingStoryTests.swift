import RTP
import Rooms
import Testing

@testable import Contract
@testable import ControlPlane
@testable import JSON
@testable import WorkerInterface

/// Recordings as signalling servers see them, with a tap's thread that obeys every command.
@Suite struct RecordingStoryTests {
    private static let tap = 1
    private static let file = OutputFile(
        path: "/recordings/x/a.webm",
        participant: "a",
        stream: "str-a",
        kind: .video,
        start: 1_700_000_001.5,
        duration: 2.25,
        bytes: 1_000,
        gaps: [OutputGap(start: 1_700_000_002, end: 1_700_000_003, reason: "muted")]
    )

    private func driver(workers: Int = 1, settings: JSON = [:]) throws -> ControlDriver {
        var driver = ControlDriver(workers: workers, recordings: "/recordings")
        try driver.room("r", settings)
        try driver.join("m", ["role": "moderator"])
        try driver.join("a")
        return driver
    }

    private func orders(_ driver: inout ControlDriver) -> [OutputCommand] {
        let worker = driver.plane.setup.workers
        defer { driver.commands = [] }
        return driver.commands.compactMap { one in
            guard case .tap(let order) = one.command else { return nil }
            #expect(one.worker == worker)
            return order
        }
    }

    @Test func `E-2 all hear of a recording, and E-37 who comes later is told`() throws {
        var driver = try driver()
        let answer = try driver.done("recording.start", ["room": "r", "by": "m"])
            .decode(RecordingStart.Result.self)
        #expect(answer.directory.hasPrefix("/recordings/r-20231114T221320Z-"))
        #expect(try driver.shown().recording != nil)
        _ = driver.takeEventSummaries()
        driver.tell(.tap(.started(1)), from: Self.tap)
        #expect(driver.takeEventSummaries() == ["recording.started all"])
        let joined = try driver.done("participant.join", ["room": "r", "participant": "late"])
        #expect(joined["roomInfo"]?["recording"] != nil)
        _ = driver.takeEventSummaries()

        driver.holdsFences = true
        let stop = driver.send("recording.stop", ["room": "r", "by": "m"])
        driver.fence(worker: 0)
        #expect(driver.replies[stop] == nil, "the files are not closed")
        driver.tell(.tap(.ended(1, reason: nil, [Self.file])), from: Self.tap)
        driver.fence(worker: Self.tap)
        #expect(try driver.replies[stop]?.get() == [:])
        let event = try #require(driver.events.last)
        #expect(event.event == "recording.stopped" && event.audience == .all)
        let stopped = try event.data.decode(RecordingStopped.self)
        #expect(stopped.recording == answer.recording && stopped.reason == nil)
        #expect(stopped.by == "m" && stopped.files.count == 1)
        #expect(stopped.count == 1 && stopped.bytes == 1_000 && stopped.next == nil)
        #expect(stopped.files.first?.gaps.first?.reason == "muted")
        driver.holdsFences = false
        #expect(try driver.shown().recording == nil)
    }

    @Test func `E-1 a room records itself from its first stream on, once`() throws {
        var driver = try driver(settings: ["autoRecord": true])
        #expect(try driver.shown().recording == nil)
        try driver.offer("a", "0:audio:sendonly", "1:video:sendonly")
        #expect(try driver.shown().recording != nil)
        let orders = orders(&driver)
        guard case .open? = orders.first else {
            Issue.record("it begins with something else")
            return
        }
        let tracks = orders.compactMap { order in
            if case .attach(_, let track) = order { track } else { nil }
        }
        #expect(tracks.map(\.kind) == [.audio, .video])
        #expect(tracks.map(\.source) == [.microphone, .camera])

        try driver.done("recording.stop", ["room": "r", "by": "m"])
        try driver.offer("m", "0:audio:sendonly")
        #expect(try driver.shown().recording == nil, "a moderator has stopped it")
        try driver.done("recording.start", ["room": "r", "by": "m"])
        try driver.done("recording.stop", ["room": "r", "by": "m"])
    }

    @Test func `E-3 streams that come are recorded, those that end are left, mutes hold`() throws {
        var driver = try driver(workers: 2)
        try driver.done("recording.start", ["room": "r"])
        _ = orders(&driver)
        try driver.offer("a", "0:audio:sendonly", "1:video:sendonly")
        let tap = driver.plane.setup.workers
        let mirrors = driver.commands.filter { $0.worker == tap }.compactMap { one in
            if case .mirror(let mirror) = one.command { mirror } else { nil }
        }
        #expect(mirrors.count == 2 && mirrors.allSatisfy(\.open))
        driver.commands = []

        driver.holdsFences = true
        let params: JSON = ["room": "r", "participant": "a", "media": ["audio"]]
        let mute = driver.send("participant.hardMute", params)
        let gates = driver.commands.filter { $0.worker == tap }.map(\.command)
        let audio = try #require(mirrors.first { $0.configuration.kind == .audio })
        #expect(gates == [.gate(audio.configuration.id, open: false)])
        for worker in 0..<tap { driver.fence(worker: worker) }
        #expect(driver.replies[mute] == nil, "the recorder has not passed the fence")
        driver.fence(worker: tap)
        #expect(driver.replies[mute] != nil)
        driver.holdsFences = false
        driver.commands = []

        try driver.done("participant.leave", ["room": "r", "participant": "a"])
        let left = driver.commands.filter { $0.worker == tap }.map(\.command)
        #expect(left.filter { if case .unmirror = $0 { true } else { false } }.count == 2)
        let notes = orders(&driver).filter { if case .note = $0 { true } else { false } }
        #expect(notes == [.note(1, .left(participant: "a"))])
        #expect(driver.plane.shared.identifiers[tap].publications.used == 0)
    }

    private func talkers(_ driver: inout ControlDriver) -> [[String]] {
        orders(&driver).compactMap { order in
            if case .note(_, .talkers(let names)) = order { names } else { nil }
        }
    }

    @Test func `E-3 who talks is noted, the newest first, and who talked already`() throws {
        var driver = try driver()
        try driver.offer("a", "0:audio:sendonly")
        try driver.offer("m", "0:audio:sendonly")
        try driver.begin("a")
        try driver.done("recording.start", ["room": "r"])
        #expect(talkers(&driver) == [["a"]])
        driver.pass(milliseconds: 1_000)
        try driver.begin("m")
        #expect(talkers(&driver) == [["m", "a"]])
        // A pin changes the order, and nobody's speech.
        driver.pass(milliseconds: 1_000)
        try driver.done("pin.add", ["room": "r", "participants": ["a"]])
        #expect(talkers(&driver).isEmpty)
        driver.pass(milliseconds: 1_000)
        try driver.end("m")
        #expect(talkers(&driver) == [["a"]])
        driver.pass(milliseconds: 1_000)
        try driver.done(
            "participant.hardMute",
            ["room": "r", "participant": "a", "media": ["audio"]]
        )
        #expect(talkers(&driver) == [[]])
    }

    @Test func `E-3 of a noisy room three lists a second are noted, and the last`() throws {
        var driver = try driver()
        try driver.offer("a", "0:audio:sendonly")
        try driver.offer("m", "0:audio:sendonly")
        try driver.done("recording.start", ["room": "r"])
        for _ in 0..<50 {
            try driver.begin("a")
            driver.pass(milliseconds: 10)
            try driver.end("a")
            driver.pass(milliseconds: 10)
        }
        #expect((2...4).contains(talkers(&driver).count))
        try driver.begin("m")
        driver.pass(milliseconds: 1_000)
        #expect(talkers(&driver).last == ["m"])
    }

    private func pins(_ driver: inout ControlDriver) -> [[String]] {
        orders(&driver).compactMap { order in
            if case .note(_, .pins(let names)) = order { names } else { nil }
        }
    }

    @Test func `V-10 who is pinned is noted, and who was pinned before`() throws {
        var driver = try driver()
        try driver.done("recording.start", ["room": "r"])
        try driver.done("recording.stop", ["room": "r"])
        #expect(pins(&driver) == [])
        try driver.done("pin.add", ["room": "r", "participants": ["a"]])
        try driver.done("recording.start", ["room": "r"])
        #expect(pins(&driver) == [["a"]])
        try driver.done("pin.add", ["room": "r", "participants": ["m"]])
        try driver.done("pin.add", ["room": "r", "participants": ["m"]])
        #expect(pins(&driver) == [["a", "m"]])
        try driver.done("participant.leave", ["room": "r", "participant": "a"])
        #expect(pins(&driver) == [["m"]])
        try driver.done("pin.remove", ["room": "r", "participants": ["m"]])
        #expect(pins(&driver) == [[]])
    }

    @Test func `only the streams asked for are recorded`() throws {
        var driver = try driver()
        let mids = try driver.offer("a", "0:audio:sendonly")
        try driver.offer("m", "0:audio:sendonly")
        let stream = try #require(mids.first?.stream)
        driver.commands = []
        let params: JSON = ["room": "r", "streams": [.string(stream.rawValue)]]
        try driver.done("recording.start", params)
        let attached = orders(&driver).compactMap { order in
            if case .attach(_, let track) = order { track.stream } else { nil }
        }
        #expect(attached == [stream.rawValue])
    }

    @Test func `a recording that cannot begin is refused, and makes no event`() throws {
        var driver = try driver()
        _ = driver.takeEventSummaries()
        driver.holdsFences = true
        let start = driver.send("recording.start", ["room": "r"])
        driver.tell(.tap(.ended(1, reason: "not-permitted", [])), from: Self.tap)
        driver.fence()
        guard case .failure(let error)? = driver.replies[start] else {
            Issue.record("not refused")
            return
        }
        #expect(error.code == 4507 && error.details["cause"] == "not-permitted")
        driver.fence()
        #expect(driver.takeEventSummaries().isEmpty)
        driver.holdsFences = false
        #expect(try driver.shown().recording == nil)
        try driver.done("recording.start", ["room": "r"])
    }

    @Test func `one that ends by itself says why`() throws {
        var driver = try driver()
        try driver.done("recording.start", ["room": "r"])
        driver.tell(.tap(.started(1)), from: Self.tap)
        _ = driver.takeEventSummaries()
        driver.tell(.tap(.ended(1, reason: "disk-full", [Self.file])), from: Self.tap)
        driver.fence()
        let event = try #require(driver.events.last)
        #expect(event.event == "recording.stopped" && event.audience == .all)
        #expect(event.data["reason"] == "disk-full")
        #expect(try event.data.decode(RecordingStopped.self).files.count == 1)
        #expect(driver.plane.rooms.owners.isEmpty)
    }

    @Test func `a room that closes tells of its recording before its end`() throws {
        var driver = try driver()
        try driver.done("recording.start", ["room": "r"])
        driver.tell(.tap(.started(1)), from: Self.tap)
        _ = driver.takeEventSummaries()
        driver.holdsFences = true
        driver.send("room.close", ["room": "r"])
        driver.tell(.tap(.ended(1, reason: nil, [Self.file])), from: Self.tap)
        driver.fence()
        let told = driver.events.map(\.event)
        #expect(
            told == ["recording.stopped", "participant.left", "participant.left", "room.closed"]
        )
        #expect(driver.events.first?.data["reason"] == "room-closed")
        let stopped = try driver.events.first?.data.decode(RecordingStopped.self)
        #expect(stopped?.files.count == 1)
    }

    @Test func `recording.list shows what runs and what has ended`() throws {
        var driver = try driver()
        try driver.room("s")
        try driver.done("recording.start", ["room": "r"])
        try driver.done("recording.start", ["room": "s"])
        driver.tell(.tap(.started(1)), from: Self.tap)
        driver.tell(.tap(.files(1, [Self.file])), from: Self.tap)
        driver.tell(.tap(.ended(2, reason: "too-slow", [])), from: Self.tap)
        driver.fence()
        let all = try driver.done("recording.list").decode(RecordingList.Result.self).recordings
        #expect(all.map(\.state) == [.recording, .stopped] && all.map(\.room) == ["r", "s"])
        #expect(all.map(\.files.count) == [1, 0])
        let some = try driver.done("recording.list", ["room": "s"])
        #expect(try some.decode(RecordingList.Result.self).recordings.count == 1)
    }

    @Test func `the recorder is asked for no figures and gets no transports`() throws {
        var driver = try driver(workers: 2)
        driver.send("server.stats")
        #expect(driver.tokens.map(\.worker) == [0, 1])
        for number in 0..<12 {
            try driver.room("room\(number)")
            #expect(driver.plane.rooms["room\(number)"]?.room.worker != 2)
        }
        try driver.offer("a", "0:audio:sendonly")
        #expect(driver.plane.shared.identifiers[2].transports.used == 0)
    }
}
