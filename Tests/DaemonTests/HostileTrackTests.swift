import Foundation
import RTP
import Testing

@testable import JSON
@testable import Recording
@testable import SFU
@testable import WorkerInterface

/// Recordings in which one publisher sends media that no file can hold.
@Suite struct HostileTrackTests {
    private static let hostile = PublicationID(index: 1, generation: 1)
    private static let honest = PublicationID(index: 2, generation: 1)

    /// A recording of a hostile and an honest track, both video.
    private struct Story {
        var recording: RoomRecording
        var now = Instant(nanoseconds: 5_000_000_000)
        var codec: Codec
        var width = 640
        var number: [PublicationID: Int64] = [:]
        var wished: Set<PublicationID> = []
        var created: [String] = []
        var closed = 0
        var session: JSON = .null

        init(_ codec: Codec, limits: RecordingLimits = RecordingLimits()) {
            self.codec = codec
            let setup = OutputSetup(
                id: 1,
                name: "rec-x",
                room: "r",
                directory: "/recordings/x",
                started: 1_700_000_000
            )
            recording = RoomRecording(setup, limits, at: now, unixTime: 1_700_000_000)
            attach(hostile, "mallory")
            attach(honest, "alice")
        }

        mutating func attach(_ id: PublicationID, _ participant: String, stream: String = "str") {
            let track = OutputTrack(
                publication: id,
                participant: participant,
                name: "",
                stream: stream,
                source: .camera,
                kind: .video
            )
            recording.attach(track, isOpen: true, at: now)
        }

        mutating func send(
            _ payload: [UInt8],
            isKeyframe: Bool = false,
            of id: PublicationID = hostile
        ) {
            let number = self.number[id] ?? 0
            self.number[id] = number + 1
            var packet = TapPacket(
                publication: id,
                codec: id == honest ? .vp8 : codec,
                number: number,
                timestamp: UInt32(truncatingIfNeeded: now.nanoseconds / 1_000_000 * 90),
                arrival: now,
                payload: payload
            )
            packet.isKeyframeStart = isKeyframe
            packet.isMarked = true
            packet.width = id == honest ? 640 : width
            packet.height = 360
            recording.receive(packet, at: now)
        }

        /// Advances the clock by 40 ms, in which the honest track sends a frame.
        mutating func pass() {
            let isKeyframe = number[honest] == nil
            let payload: [UInt8] = [0x10, isKeyframe ? 0x10 : 0x11, 0xca, 0xfe, 1, 2]
            send(payload, isKeyframe: isKeyframe, of: honest)
            now = now.advanced(milliseconds: 40)
            wished = Set(recording.expire(at: now).map(\.0))
            carryOut()
        }

        mutating func finish() {
            recording.finish(at: now)
            carryOut()
        }

        private mutating func carryOut() {
            for job in recording.takeJobs() {
                switch job {
                case .create(_, _, let path): created.append(path)
                case .close: closed += 1
                case .replace(_, _, let text): session = (try? JSON(parsing: text())) ?? .null
                case .open, .end, .write: break
                }
            }
        }

        func files(of participant: String) -> [OutputFile] {
            recording.shownFiles.filter { $0.participant == participant }
        }

        /// Returns the record's events of a type.
        func events(_ type: JSON) -> [JSON] {
            guard case .array(let events)? = session["events"] else { return [] }
            return events.filter { $0["type"] == type }
        }

        /// Whether the honest track has one file, from the first frame to the last, without a gap.
        var isHonestWhole: Bool {
            let files = files(of: "alice")
            let seconds = Double(number[honest] ?? 0) * 0.04 - 0.04
            return files.count == 1 && files[0].gaps.isEmpty
                && abs(files[0].duration - seconds) < 0.001
        }
    }

    /// Makes a sequence header of 64 × 64 pixels, and a frame; `mark` is the frame's OBU header.
    private static func av1Keyframe(_ mark: UInt8 = 0x30, sequence: UInt8 = 0x08) -> [UInt8] {
        let header: [UInt8] = [
            sequence, 0x20, 0, 0, 0x02, 0xaf, 0xff, 0x9b, 0x5f, 0x24, 0x04, 0x34, 0, 0x80,
        ]
        return [0x28, UInt8(header.count)] + header + [mark, 1, 2, 3]
    }

    private static func av1(_ mark: UInt8 = 0x30) -> [UInt8] { [0x10, mark, 4, 5, 6] }

    /// Makes a packet of two parameter sets and a picture.
    private static func h264(_ level: UInt8) -> [UInt8] {
        [0x78, 0, 7, 0x67, 0x42, 0xc0, level, 0x8c, 0x8d, 0x40]
            + [0, 4, 0x68, 0xce, 0x3c, 0x80, 0, 3, 0x65, 1, level]
    }

    @Test func `a frame that the muxer refuses costs its file, which another goes on from`() {
        var story = Story(.av1)
        for step in 0..<30 {
            switch step {
            case 0, 20: story.send(Self.av1Keyframe(), isKeyframe: true)
            case 10: story.send(Self.av1(0xb0))
            default: story.send(Self.av1())
            }
            story.pass()
            let isWished = story.wished.contains(Self.hostile)
            #expect(isWished == (step == 10), "a keyframe is asked for after \(step)")
        }
        story.finish()
        let files = story.files(of: "mallory")
        #expect(files.count == 2 && story.closed == 3)
        #expect(files.map(\.duration) == [0.36, 0.36])
        let gap = OutputGap(
            start: 1_700_000_000.36,
            end: 1_700_000_000.8,
            reason: "refused"
        )
        #expect(files.map(\.gaps.count) == [1, 0])
        #expect(abs((files[0].gaps.first?.start ?? 0) - gap.start) < 0.001)
        #expect(abs((files[0].gaps.first?.end ?? 0) - gap.end) < 0.001)
        #expect(files[0].gaps.first?.reason == gap.reason)
        #expect(story.isHonestWhole && story.events("ended").isEmpty)
    }

    @Test(arguments: [
        (name: "frames with the forbidden bit", keyframe: av1Keyframe(), next: av1(0xb0)),
        (name: "keyframes with it", keyframe: av1Keyframe(0xb0), next: av1()),
        (name: "sequence headers with it", keyframe: av1Keyframe(sequence: 0x88), next: av1()),
    ])
    func `a track is given up that is refused again and again`(
        name: String,
        keyframe: [UInt8],
        next: [UInt8]
    ) {
        var story = Story(.av1)
        for step in 0..<100 {
            story.send(step % 2 == 0 ? keyframe : next, isKeyframe: step % 2 == 0)
            story.pass()
        }
        #expect(!story.wished.contains(Self.hostile))
        story.finish()
        #expect(story.files(of: "mallory").count <= RecordedTrack.refusalLimit)
        #expect(story.closed == story.created.count)
        let ended = story.events("ended")
        #expect(ended.count == 1)
        #expect(ended.first?["reason"] == "refused")
        #expect(ended.first?["participant"] == "mallory" && ended.first?["stream"] == "str")
        #expect(ended.first?["kind"] == "video")
        #expect(story.isHonestWhole)
    }

    @Test func `parameter sets that alternate cost their track alone`() {
        var limits = RecordingLimits()
        limits.files = 100
        var story = Story(.h264, limits: limits)
        for step in 0..<100 as Range<UInt8> {
            story.send(Self.h264(30 + step % 2), isKeyframe: true)
            story.pass()
        }
        #expect(story.recording.takeEnds().map(\.reason) == ["too-many-files"])
        story.finish()
        #expect(story.files(of: "mallory").count == 10)
        #expect(story.events("ended").first?["reason"] == "too-many-files")
        #expect(story.isHonestWhole)
    }

    @Test func `a participant's tracks have a fifth of the files together`() {
        var limits = RecordingLimits()
        limits.files = 100
        var story = Story(.h264, limits: limits)
        let ids = (10..<20).map { PublicationID(index: $0, generation: 1) }
        for id in ids { story.attach(id, "mallory", stream: "str-\(id.index)") }
        for step in 0..<50 as Range<UInt8> {
            for id in ids { story.send(Self.h264(30 + step % 2), isKeyframe: true, of: id) }
            story.pass()
        }
        story.finish()
        #expect(story.files(of: "mallory").count == 20)
        #expect(story.isHonestWhole)
    }

    @Test func `gaps and sizes of one track are noted up to a limit`() {
        var story = Story(.vp8)
        for step in 0..<(RecordedTrack.gapLimit + 100) {
            story.number[Self.hostile] = Int64(step) * 4_000
            story.width = 640 + step % 2
            story.send([0x10, 0x10, 0xca, 0xfe, 1, 2], isKeyframe: true)
            story.now = story.now.advanced(milliseconds: 600)
        }
        story.finish()
        #expect(story.files(of: "mallory").flatMap(\.gaps).count == RecordedTrack.gapLimit)
        #expect(story.events("size").count == RecordedTrack.sizeLimit)
    }

    @Test func `a guest who comes back under new names leaves files for others`() {
        var limits = RecordingLimits()
        limits.files = 100
        var story = Story(.h264, limits: limits)
        for join in 0..<6 as Range<UInt32> {
            let ids = [20 + join, 40 + join].map { PublicationID(index: $0, generation: 1) }
            for id in ids { story.attach(id, "guest-\(join)", stream: "str-\(id.index)") }
            for step in 0..<20 as Range<UInt8> {
                for id in ids { story.send(Self.h264(30 + step % 2), isKeyframe: true, of: id) }
                story.pass()
            }
        }
        let late = PublicationID(index: 3, generation: 1)
        story.attach(late, "dave")
        story.send(Self.h264(30), isKeyframe: true, of: late)
        story.pass()
        story.finish()
        // Half are shared by all, then each track gets one: those of three more joins, and the late
        // one.
        #expect(story.recording.files.count == 50 + 3 * 2 + 1)
        #expect(!story.recording.isFull)
        #expect(story.files(of: "dave").count == 1)
        #expect(story.isHonestWhole)
    }

    @Test func `a guest who publishes again and again leaves files for others`() {
        var limits = RecordingLimits()
        limits.files = 100
        var story = Story(.h264, limits: limits)
        for join in 0..<5 as Range<UInt32> {
            for index in 0..<30 as Range<UInt32> {
                let id = PublicationID(index: 10 + index, generation: join + 1)
                story.attach(id, "guest-\(join)", stream: "str-\(index)")
                story.send(Self.h264(30), isKeyframe: true, of: id)
                story.pass()
                story.recording.detach(id)
            }
        }
        story.finish()
        // A fifth for each of two, the rest of the half for one, and four for each other.
        let counts = (0..<5).map { story.files(of: "guest-\($0)").count }
        #expect(counts == [20, 20, 9, 4, 4])
        #expect(!story.recording.isFull)
        #expect(story.isHonestWhole)
    }

    @Test func `a recording is full once a track without a file finds none`() {
        var limits = RecordingLimits()
        limits.files = 10
        var story = Story(.h264, limits: limits)
        for index in 0..<10 as Range<UInt32> {
            #expect(!story.recording.isFull)
            let id = PublicationID(index: 10 + index, generation: 1)
            story.attach(id, "guest-\(index)")
            // The second one exceeds the track's share.
            for level in 30...31 as ClosedRange<UInt8> {
                story.send(Self.h264(level), isKeyframe: true, of: id)
                story.pass()
            }
        }
        #expect(story.recording.isFull)
        #expect(story.recording.files.count == 10)
        story.finish()
        #expect(story.isHonestWhole)
    }

    @Test func `gaps of all tracks together are listed up to a limit, which is told once`() {
        var story = Story(.vp8)
        story.recording.gapLimit = 50
        var told = 0
        for step in 0..<100 {
            story.number[Self.hostile] = Int64(step) * 4_000
            story.send([0x10, 0x10, 0xca, 0xfe, 1, 2], isKeyframe: true)
            story.now = story.now.advanced(milliseconds: 600)
            if story.recording.takeGapsEnd() { told += 1 }
        }
        story.finish()
        #expect(story.files(of: "mallory").flatMap(\.gaps).count == 50)
        #expect(told == 1)
    }
}
