import RTP
import SFU
import Testing
import WorkerInterface

@testable import Recording

/// One track as it is read for its file.
struct TrackTests {
    private struct Story {
        var packets = Packets()
        var reader = TrackReader(kind: .video)
        var words: [String] = []
        /// Next sequence number of each encoding.
        private var numbers: [Int: Int64] = [:]

        /// Sends a frame of an encoding; each has its own sequence.
        mutating func send(
            _ mark: UInt8,
            isKeyframe: Bool = false,
            position: Int = 0,
            best: Int = 0,
            isLost: Bool = false
        ) {
            packets.pass(milliseconds: 40)
            var packet = packets.vp8(mark, isKeyframe: isKeyframe)
            packet.position = position
            packet.number = numbers[position, default: 100]
            numbers[position] = packet.number + 1
            packet.best = best
            packet.epoch = UInt32(position + 1)
            if !isLost { take { $0.receive(packet, at: packet.arrival, into: &$1) } }
        }

        mutating func wait(milliseconds: Int64) {
            packets.pass(milliseconds: milliseconds)
            let now = packets.now
            take { $0.expire(at: now, into: &$1) }
        }

        private mutating func take(_ body: (inout TrackReader, inout [TrackEvent]) -> Void) {
            var events: [TrackEvent] = []
            body(&reader, &events)
            for event in events {
                switch event {
                case .sample(let sample): words.append("\(sample.bytes.last ?? 0)")
                case .gap(let start, let end, let reason):
                    words.append("\(reason) for \(end.milliseconds(since: start))")
                }
            }
        }
    }

    @Test func `E-3 a loss is a gap until the next keyframe, which is asked for`() {
        var story = Story()
        #expect(story.reader.neededKeyframe == nil, "nobody is asked before anything comes")
        story.send(1)
        #expect(story.reader.neededKeyframe == 0)
        story.send(2, isKeyframe: true)
        story.send(3)
        #expect(story.reader.neededKeyframe == nil)
        story.send(4, isLost: true)
        story.send(5)
        #expect(story.words == ["2", "3"])
        story.wait(milliseconds: 510)
        #expect(story.reader.neededKeyframe == 0)
        story.send(6)
        story.send(7, isKeyframe: true)
        #expect(story.words == ["2", "3", "lost for 670", "7"])
        #expect(story.reader.neededKeyframe == nil)
    }

    @Test func `E-3 muted media is absent, and what was held back goes too`() {
        var story = Story()
        story.send(1, isKeyframe: true)
        story.send(2, isLost: true)
        story.send(3)
        story.reader.mute(at: story.packets.now)
        story.wait(milliseconds: 1_000)
        story.send(4)
        story.send(5, isKeyframe: true)
        #expect(story.words == ["1", "muted for 1080", "5"])
    }

    @Test func `the best encoding is followed, from its keyframe on`() {
        var story = Story()
        story.send(1, isKeyframe: true)
        story.send(2, position: 1)
        story.send(3, best: 1)
        #expect(story.reader.neededKeyframe == 1)
        story.send(4, position: 1, best: 1)
        story.send(5, isKeyframe: true, best: 1)
        story.send(6, isKeyframe: true, position: 1, best: 1)
        #expect(story.reader.neededKeyframe == nil)
        story.send(7, best: 1)
        // The higher encoding has ended.
        story.send(9, best: 0)
        #expect(story.reader.neededKeyframe == 0)
        story.send(10, isKeyframe: true, best: 0)
        #expect(story.words == ["1", "3", "5", "6", "10"])
    }
}
