import RTP
import Testing

@testable import JSON
@testable import Recording
@testable import SFU
@testable import WorkerInterface

/// When a recording's `session.json` is written, in virtual time.
@Suite struct SessionRecordTests {
    private static let video = PublicationID(index: 1, generation: 1)

    /// A recording with many events, which the recorder looks at ten times a second.
    private struct Story {
        var recording: RoomRecording
        var now = Instant(nanoseconds: 5_000_000_000)
        /// Milliseconds from the start to each write.
        var writes: [Int64] = []
        var last: (@Sendable () -> [UInt8])?
        private let start: Instant

        init(entries: Int) {
            start = now
            let setup = OutputSetup(
                id: 1,
                name: "rec-x",
                room: "r",
                directory: "/recordings/x",
                started: 1_700_000_000
            )
            recording = RoomRecording(setup, RecordingLimits(), at: now, unixTime: 1_700_000_000)
            for _ in 0..<entries { note() }
            look()
        }

        mutating func note() { recording.note(.left(participant: "bob"), at: now) }

        mutating func look() {
            _ = recording.expire(at: now)
            carryOut()
        }

        mutating func finish() {
            recording.finish(at: now)
            carryOut()
        }

        private mutating func carryOut() {
            for job in recording.takeJobs() {
                switch job {
                case .replace(_, _, let text):
                    writes.append(now.milliseconds(since: start))
                    last = text
                case .open, .create, .write, .close, .end: break
                }
            }
        }

        /// Passes the time, with an event each second.
        mutating func pass(seconds: Int) {
            for step in 1...seconds * 10 {
                now = now.advanced(milliseconds: 100)
                if step % 10 == 0 { note() }
                look()
            }
        }

        mutating func beginFile() {
            let track = OutputTrack(
                publication: SessionRecordTests.video,
                participant: "alice",
                name: "Alice",
                stream: "str-a",
                source: .camera,
                kind: .video
            )
            recording.attach(track, isOpen: true, at: now)
            var packet = TapPacket(
                publication: SessionRecordTests.video,
                codec: .vp8,
                number: 1,
                timestamp: 0,
                arrival: now,
                payload: [0x10, 0x10, 0xca, 0xfe, 1, 2]
            )
            packet.isKeyframeStart = true
            packet.isMarked = true
            packet.width = 640
            packet.height = 360
            recording.receive(packet, at: now)
        }

        /// Returns the number of events in the record that was written last.
        var events: Int? {
            guard let last, let record = try? JSON(parsing: last()),
                case .array(let events)? = record["events"]
            else { return nil }
            return events.count
        }
    }

    static let rows: [(entries: Int, writes: ClosedRange<Int>)] = [
        (10, 121...121),
        (5_000, 23...25),
        (20_000, 6...7),
        (SessionRecord.noteLimit - 1_000, 3...3),
    ]

    @Test(arguments: rows)
    func `a record is written the less often the longer it is`(
        entries: Int,
        writes: ClosedRange<Int>
    ) {
        var story = Story(entries: entries)
        story.pass(seconds: 120)
        #expect(writes.contains(story.writes.count), "\(story.writes)")
        let count = story.writes.count
        story.finish()
        #expect(story.writes.count == count + 1, "always at the end")
    }

    @Test func `a file that begins or ends is written sooner`() {
        var story = Story(entries: 20_000)
        story.pass(seconds: 1)
        story.beginFile()
        story.pass(seconds: 2)
        #expect(story.writes == [0, 2_000])
        story.recording.detach(Self.video)
        story.pass(seconds: 5)
        #expect(story.writes == [0, 2_000, 4_000])
    }

    @Test func `a record that waits for the disk stays as it was`() {
        var story = Story(entries: 3)
        story.note()
        #expect(story.events == 3)
        story.finish()
        #expect(story.events == 4)
    }
}
