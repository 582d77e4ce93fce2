import Foundation
import RTP
import Testing

@testable import JSON
@testable import Recording
@testable import SFU
@testable import WorkerInterface

/// A recording's disk jobs, without a disk.
@Suite struct RoomRecordingTests {
    private static let video = PublicationID(index: 1, generation: 1)

    /// A recording with one track, and the files that its jobs would make.
    private struct Story {
        var recording: RoomRecording
        var now = Instant(nanoseconds: 5_000_000_000)
        var number: Int64 = 0
        var codec: Codec
        var paths: [Int: String] = [:]
        var contents: [Int: [UInt8]] = [:]
        var closed: [Int] = []
        var session: JSON = .null

        init(_ codec: Codec = .vp8, participant: String = "alice") {
            self.codec = codec
            let setup = OutputSetup(
                id: 1,
                name: "rec-x",
                room: "r",
                directory: "/recordings/x",
                started: 1_700_000_000
            )
            recording = RoomRecording(setup, RecordingLimits(), at: now, unixTime: 1_700_000_000)
            let track = OutputTrack(
                publication: RoomRecordingTests.video,
                participant: participant,
                name: "Alice",
                stream: "str-a",
                source: .camera,
                kind: .video
            )
            recording.note(.joined(participant: participant, name: "Alice"), at: now)
            recording.attach(track, isOpen: true, at: now)
        }

        mutating func send(_ payload: [UInt8], isKeyframe: Bool = false) {
            now = now.advanced(milliseconds: 40)
            var packet = TapPacket(
                publication: RoomRecordingTests.video,
                codec: codec,
                number: number,
                timestamp: UInt32(number) * 3_600,
                arrival: now,
                payload: payload
            )
            number += 1
            packet.isKeyframeStart = isKeyframe
            packet.isMarked = true
            packet.width = 640
            packet.height = 360
            recording.receive(packet, at: now)
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
                case .create(_, let file, let path): paths[file] = path
                case .write(_, let file, let run, _):
                    var bytes = contents[file] ?? []
                    let end = run.offset + run.bytes.count
                    if end > bytes.count {
                        bytes += Array(repeating: 0, count: end - bytes.count)
                    }
                    bytes.replaceSubrange(run.offset..<end, with: run.bytes)
                    contents[file] = bytes
                case .close(_, let file): closed.append(file)
                case .replace(_, _, let text): session = (try? JSON(parsing: text())) ?? .null
                case .open, .end: break
                }
            }
        }

        /// Whether a file contains these bytes.
        func holds(_ bytes: [UInt8], in file: Int) -> Bool {
            Data(contents[file] ?? []).range(of: Data(bytes)) != nil
        }
    }

    private static func vp8(_ mark: UInt8, isKeyframe: Bool = false) -> [UInt8] {
        [0x10, isKeyframe ? 0x10 : 0x11, 0xca, 0xfe, mark, mark, mark, mark]
    }

    @Test func `E-3 a track becomes a file that holds its frames`() {
        var story = Story()
        for step in 0..<50 as Range<UInt8> {
            story.send(Self.vp8(step, isKeyframe: step == 0), isKeyframe: step == 0)
        }
        #expect(story.contents[0]?.prefix(4) == [0x1a, 0x45, 0xdf, 0xa3], "EBML")
        // At most half a second may be missing while it is written.
        #expect(story.holds(Array(Self.vp8(36).dropFirst()), in: 0))
        #expect(story.session["stopped"] == .null)
        story.finish()
        #expect(story.paths == [0: "/recordings/x/alice-str-a-camera-video-1.webm"])
        #expect(story.closed == [0])
        for step in 0..<50 as Range<UInt8> {
            let frame = Self.vp8(step, isKeyframe: step == 0).dropFirst()
            #expect(story.holds(Array(frame), in: 0), "frame \(step)")
        }
        let files = story.recording.shownFiles
        #expect(files.map(\.start) == [1_700_000_000.04] && files.map(\.duration) == [1.96])
        guard case .array(let shown)? = story.session["files"], let file = shown.first else {
            Issue.record("no files in the record")
            return
        }
        #expect(file["complete"] == true && file["codec"] == "VP8" && file["name"] == "Alice")
        #expect(file["path"] == "alice-str-a-camera-video-1.webm")
        guard case .array(let events)? = story.session["events"] else {
            Issue.record("no events in the record")
            return
        }
        #expect(events.map { $0["type"] } == ["joined", "size"])
    }

    @Test func `E-3 while muted there is nothing, and the record says so`() {
        var story = Story()
        for step in 0..<10 as Range<UInt8> {
            story.send(Self.vp8(step, isKeyframe: step == 0), isKeyframe: step == 0)
        }
        let muted = story.now
        story.recording.gate(Self.video, open: false, at: muted)
        story.now = story.now.advanced(milliseconds: 2_000)
        story.recording.gate(Self.video, open: true, at: story.now)
        story.send(Self.vp8(77))
        story.send(Self.vp8(78, isKeyframe: true), isKeyframe: true)
        story.finish()
        #expect(!story.holds(Array(Self.vp8(77).dropFirst()), in: 0))
        #expect(story.holds(Array(Self.vp8(78, isKeyframe: true).dropFirst()), in: 0))
        let gaps = story.recording.shownFiles.flatMap(\.gaps)
        #expect(gaps.map(\.reason) == ["muted"])
        #expect(abs((gaps.first?.start ?? 0) - 1_700_000_000.4) < 0.001)
        guard case .array(let events)? = story.session["events"] else {
            Issue.record("no events in the record")
            return
        }
        #expect(events.map { $0["type"] } == ["joined", "size", "muted", "unmuted"])
    }

    @Test func `E-3 V-10 the record names who talks, and who is pinned`() {
        var story = Story()
        story.recording.note(.talkers(["bob", "alice"]), at: story.now)
        story.recording.note(.talkers([]), at: story.now)
        story.recording.note(.pins(["alice"]), at: story.now)
        story.finish()
        guard case .array(let events)? = story.session["events"] else {
            Issue.record("no events in the record")
            return
        }
        #expect(events.map { $0["type"] } == ["joined", "talkers", "talkers", "pins"])
        #expect(events[1]["talkers"] == ["bob", "alice"] && events[2]["talkers"] == [])
        #expect(events[3]["pins"] == ["alice"])
        #expect(events[1]["time"] == .number(1_700_000_000))
    }

    @Test func `other parameter sets of H.264 begin another file`() {
        var story = Story(.h264)
        func keyframe(_ level: UInt8) -> [UInt8] {
            [0x78, 0, 7, 0x67, 0x42, 0xc0, level, 0x8c, 0x8d, 0x40]
                + [0, 4, 0x68, 0xce, 0x3c, 0x80, 0, 3, 0x65, 1, level]
        }
        for level in [31, 31, 32] as [UInt8] {
            story.send(keyframe(level), isKeyframe: true)
            story.send([0x41, level, level])
        }
        story.finish()
        #expect(
            story.paths.values.sorted() == [
                "/recordings/x/alice-str-a-camera-video-1.mkv",
                "/recordings/x/alice-str-a-camera-video-2.mkv",
            ]
        )
        #expect(story.closed == [0, 1])
        #expect(story.holds([0, 0, 0, 3, 0x41, 31, 31], in: 0))
        #expect(story.holds([0, 0, 0, 3, 0x41, 32, 32], in: 1))
    }

    @Test(arguments: ["..", ".", ".hidden"])
    func `no name leads elsewhere or hides`(participant: String) {
        var story = Story(participant: participant)
        story.send(Self.vp8(1, isKeyframe: true), isKeyframe: true)
        let path = story.paths[0] ?? ""
        #expect(path.hasPrefix("/recordings/x/_"))
        #expect(path.split(separator: "/").count == 3)
    }
}
