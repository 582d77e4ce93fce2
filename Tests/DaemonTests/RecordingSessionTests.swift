import RTP
import Rooms
import Testing

@testable import Contract
@testable import ControlPlane
@testable import JSON
@testable import WorkerInterface

/// Automatic recordings of a room's sessions, and the pages of recorded files.
@Suite struct RecordingSessionTests {
    private static let tap = 1

    private func driver(recordings: String? = "/recordings", limit: Int = 1) -> ControlDriver {
        var limits = ControlLimits()
        limits.recordings = limit
        return ControlDriver(limits: limits, recordings: recordings)
    }

    /// Makes an automatically recorded room of `a`, who publishes.
    private func begin(_ driver: inout ControlDriver) throws {
        try driver.room("r", ["autoRecord": true, "emptySeconds": .null])
        try enter(&driver)
    }

    private func enter(_ driver: inout ControlDriver) throws {
        try driver.join("a", ["role": "moderator"])
        try driver.offer("a", "0:audio:sendonly")
    }

    private func leave(_ driver: inout ControlDriver) throws {
        try driver.done("participant.leave", ["room": "r", "participant": "a"])
    }

    /// Takes the events about recordings, each with its reason.
    private func told(_ driver: inout ControlDriver) -> [String] {
        defer { driver.events = [] }
        return driver.events.filter { $0.event.hasPrefix("recording.") }.map { event in
            guard case .string(let reason)? = event.data["reason"] else { return event.event }
            return "\(event.event) \(reason)"
        }
    }

    @Test func `E-1 a refused start is told once, and made up for when there is room`() throws {
        var driver = driver()
        try driver.room("other", ["emptySeconds": .null])
        try driver.done("recording.start", ["room": "other"])
        try begin(&driver)
        #expect(driver.events.last?.audience == .all)
        #expect(driver.events.last?.data == ["reason": "limit-reached"])
        #expect(told(&driver) == ["recording.failed limit-reached"])
        for _ in 0..<5 { driver.pass(milliseconds: 30_000) }
        #expect(told(&driver).isEmpty)
        try driver.done("recording.stop", ["room": "other"])
        driver.pass(milliseconds: 30_000)
        #expect(try driver.shown().recording != nil)
        driver.tell(.tap(.started(2)), from: Self.tap)
        #expect(told(&driver) == ["recording.stopped", "recording.started"])
        #expect(driver.plane.deadline == nil)
    }

    @Test func `E-1 the next call to the room suffices, and a caller may be first`() throws {
        for isCaller in [false, true] {
            var driver = driver()
            try driver.room("other")
            try driver.done("recording.start", ["room": "other"])
            try begin(&driver)
            try driver.done("recording.stop", ["room": "other"])
            if isCaller {
                try driver.done("recording.start", ["room": "r", "by": "a"])
                try driver.done("recording.stop", ["room": "r", "by": "a"])
                driver.pass(milliseconds: 60_000)
                #expect(try driver.shown().recording == nil, "a moderator has stopped it")
            } else {
                try driver.join("b")
                #expect(try driver.shown().recording != nil)
            }
        }
    }

    @Test func `E-1 a disk that fails is told once, and tried again`() throws {
        var driver = driver()
        try begin(&driver)
        for id: OutputID in 1...3 {
            driver.tell(.tap(.ended(id, reason: "disk-full", [])), from: Self.tap)
            driver.fence()
            #expect(try driver.shown().recording == nil)
            driver.pass(milliseconds: 29_000)
            #expect(try driver.shown().recording == nil)
            driver.pass(milliseconds: 1_000)
            #expect(try driver.shown().recording != nil)
        }
        #expect(told(&driver) == ["recording.failed disk-full"])
        driver.tell(.tap(.ended(4, reason: "disk-error", [])), from: Self.tap)
        driver.fence()
        #expect(told(&driver) == ["recording.failed disk-error"])
        driver.pass(milliseconds: 30_000)
        driver.tell(.tap(.started(5)), from: Self.tap)
        #expect(told(&driver) == ["recording.started"])
        // One that has begun ends as such, and is not begun again.
        driver.tell(.tap(.ended(5, reason: "size-limit", [])), from: Self.tap)
        driver.fence()
        #expect(told(&driver) == ["recording.stopped size-limit"])
        driver.pass(milliseconds: 60_000)
        #expect(try driver.shown().recording == nil)
    }

    @Test func `E-1 a recording that breaks is begun again, in the place of a caller's, too`()
        throws
    {
        for reason in ["disk-full", "disk-error", "too-slow", "not-permitted"] {
            var driver = driver()
            try begin(&driver)
            driver.tell(.tap(.started(1)), from: Self.tap)
            _ = told(&driver)
            driver.tell(.tap(.ended(1, reason: reason, [])), from: Self.tap)
            driver.fence()
            #expect(told(&driver) == ["recording.stopped \(reason)"])
            driver.pass(milliseconds: 29_000)
            #expect(try driver.shown().recording == nil)
            driver.pass(milliseconds: 1_000)
            #expect(try driver.shown().recording != nil)
            driver.tell(.tap(.started(2)), from: Self.tap)
            #expect(told(&driver) == ["recording.started"])
        }
        for isReady in [false, true] {
            var driver = driver()
            try driver.room("r", ["autoRecord": true])
            try driver.join("a", ["role": "moderator"])
            driver.holdsFences = true
            let start = driver.send("recording.start", ["room": "r", "by": "a"])
            if isReady { driver.fence() }
            if isReady { driver.tell(.tap(.started(1)), from: Self.tap) }
            // The first stream comes while the caller's recording makes another needless.
            driver.send(
                "transport.offer",
                [
                    "room": "r", "participant": "a",
                    "sdp": .string(TestOffer(["0:audio:sendonly"]).text),
                ]
            )
            driver.tell(.tap(.ended(1, reason: "disk-error", [])), from: Self.tap)
            driver.fence()
            #expect((try? driver.replies[start]?.get()) != nil || !isReady)
            driver.tell(.tap(.started(2)), from: Self.tap)
            driver.fence()
            #expect(
                told(&driver)
                    == (isReady ? ["recording.started", "recording.stopped disk-error"] : [])
                    + ["recording.started"]
            )
            #expect(driver.events.allSatisfy { $0.data["by"] == nil })
            driver.holdsFences = false
            #expect(try driver.shown().recording != nil)
        }
    }

    @Test func `E-1 a caller's recording that a caller has ended is not made up for`() throws {
        var driver = driver()
        try driver.room("r", ["autoRecord": true])
        try driver.join("a", ["role": "moderator"])
        for reason in ["size-limit", "disk-error"] {
            try driver.done("recording.start", ["room": "r", "by": "a"])
            let id = driver.plane.shared.taps?.lastID ?? 0
            try driver.offer("a", "0:audio:sendonly")
            if reason == "size-limit" {
                driver.tell(.tap(.started(id)), from: Self.tap)
                driver.tell(.tap(.ended(id, reason: reason, [])), from: Self.tap)
                driver.fence()
            } else {
                try driver.done("recording.stop", ["room": "r", "by": "a"])
            }
            driver.pass(milliseconds: 60_000)
            #expect(try driver.shown().recording == nil)
        }
    }

    @Test func `E-1 a server without a recorder says so once a session`() throws {
        var driver = driver(recordings: nil)
        try begin(&driver)
        #expect(told(&driver) == ["recording.failed no-recorder"])
        driver.pass(milliseconds: 600_000)
        #expect(told(&driver).isEmpty && driver.plane.deadline == nil)
        try leave(&driver)
        try enter(&driver)
        #expect(told(&driver) == ["recording.failed no-recorder"])
    }

    @Test func `E-1 each session of a room has a recording of its own`() throws {
        var driver = driver()
        try begin(&driver)
        driver.tell(.tap(.started(1)), from: Self.tap)
        _ = told(&driver)
        try leave(&driver)
        #expect(told(&driver) == ["recording.stopped session-ended"])
        try enter(&driver)
        #expect(try driver.shown().recording != nil)
        try driver.done("recording.stop", ["room": "r", "by": "a"])
        try driver.offer("a", "0:audio:sendonly", "1:video:sendonly")
        #expect(try driver.shown().recording == nil, "a moderator has stopped it")
        try leave(&driver)
        try enter(&driver)
        #expect(try driver.shown().recording != nil)
        // A recording that a caller began outlives the session.
        try driver.done("recording.stop", ["room": "r", "by": "a"])
        try driver.done("recording.start", ["room": "r", "by": "a"])
        try leave(&driver)
        #expect(try driver.shown().recording != nil)
    }

    @Test func `E-2 a recording that is ready late and fails is told, as it was answered`() throws {
        var driver = driver()
        try driver.room("r")
        try driver.join("a", ["role": "moderator"])
        try driver.done("recording.start", ["room": "r", "by": "a"])
        driver.events = []
        driver.tell(.tap(.ended(1, reason: "not-permitted", [])), from: Self.tap)
        driver.fence()
        let failed = try #require(driver.events.last)
        #expect(failed.event == "recording.failed" && failed.data["by"] == "a")
        #expect(failed.data["recording"] != nil && failed.data["reason"] == "not-permitted")
    }

    private func file(_ number: Int, gaps: Int = 0) -> OutputFile {
        OutputFile(
            path: "/recordings/x/\(number).webm",
            participant: "a",
            stream: "str-a",
            kind: .audio,
            start: 1_700_000_001.5,
            duration: 2.25,
            bytes: 1_000,
            gaps: (0..<gaps).map { gap in
                OutputGap(start: 1_763_600_000.125, end: Double(gap) + 0.125, reason: "muted")
            }
        )
    }

    /// Reads all files of a recording, page by page; returns the number of files of each.
    private func pages(
        _ first: RecordingFiles.Result,
        of recording: RecordingID,
        limit: JSON?,
        _ driver: inout ControlDriver
    ) throws -> [Int] {
        var pages = [first.files.count]
        var names = first.files.map(\.path)
        var next = first.next
        while let after = next {
            var params: [String: JSON] = [
                "recording": .string(recording.rawValue), "after": .string(after.rawValue),
            ]
            params["limit"] = limit
            let page = try driver.done("recording.files", .object(params))
            #expect(JSON.encoded(page).count < 1 << 20)
            let files = try page.decode(RecordingFiles.Result.self)
            pages.append(files.files.count)
            names += files.files.map(\.path)
            next = files.next
        }
        #expect(Set(names).count == names.count)
        return pages
    }

    @Test func `files are paged by number and by length`() throws {
        var driver = driver()
        try driver.room("r")
        let started = try driver.done("recording.start", ["room": "r"])
            .decode(RecordingStart.Result.self)
        driver.tell(.tap(.started(1)), from: Self.tap)
        driver.tell(.tap(.files(1, (0..<2_500).map { file($0) })), from: Self.tap)
        let listed = try driver.done("recording.list").decode(RecordingList.Result.self)
        let entry = try #require(listed.recordings.first)
        #expect(entry.count == 2_500 && entry.bytes == 2_500_000)
        let first = RecordingFiles.Result(files: entry.files, next: entry.next)
        let read = try pages(first, of: started.recording, limit: nil, &driver)
        #expect(read == [1_000, 1_000, 500])
        let few = try driver.done(
            "recording.files",
            ["recording": .string(started.recording.rawValue), "limit": 7]
        ).decode(RecordingFiles.Result.self)
        #expect(few.files.count == 7 && few.next != nil)

        driver.holdsFences = true
        driver.send("recording.stop", ["room": "r"])
        let files = (0..<30).map { file($0, gaps: 1_000) } + [file(30, gaps: 10_000)]
        driver.tell(.tap(.ended(1, reason: nil, files)), from: Self.tap)
        driver.fence()
        driver.holdsFences = false
        let event = try #require(driver.events.last)
        #expect(JSON.encoded(event.data).count < 1 << 20)
        let stopped = try event.data.decode(RecordingStopped.self)
        #expect(stopped.count == 31 && stopped.bytes == 31_000 && stopped.files.count < 30)
        let rest = RecordingFiles.Result(files: stopped.files, next: stopped.next)
        let all = try pages(rest, of: started.recording, limit: nil, &driver)
        #expect(all.reduce(0, +) == 31)
    }

    @Test func `recordings are paged, and what is no page is refused`() throws {
        var driver = driver(limit: 10)
        for number in 0..<5 {
            try driver.room("r\(number)")
            try driver.done("recording.start", ["room": .string("r\(number)")])
        }
        var rooms: [RoomID] = []
        var params: [String: JSON] = ["limit": 2]
        while rooms.count < 10 {
            let page = try driver.done("recording.list", .object(params))
                .decode(RecordingList.Result.self)
            rooms += page.recordings.map(\.room)
            guard let next = page.next else { break }
            params["after"] = .string(next.rawValue)
        }
        #expect(rooms == ["r0", "r1", "r2", "r3", "r4"])
        let refusals: [(String, JSON, Int)] = [
            ("recording.files", ["recording": "rec-none"], 4013),
            ("recording.list", ["after": "x"], -32602),
            ("recording.list", ["after": "-1"], -32602),
            ("recording.list", ["limit": 0], -32602),
            ("recording.list", ["limit": 1_001], -32602),
        ]
        for (method, params, code) in refusals {
            guard case .failure(let error) = driver.call(method, params) else {
                Issue.record("\(method) \(params) was taken")
                continue
            }
            #expect(error.code == code)
        }
    }
}
