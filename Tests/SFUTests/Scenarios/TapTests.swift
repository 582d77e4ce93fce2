import LoadPeer
import RTP
import Testing

@testable import SFU
@testable import WorkerInterface

/// A tap beside the workers: it reads what a mirror would, and cannot harm anybody.
struct TapTests {
    private static let mirror = RelayedCall.mirrorID(1)

    /// A publisher on worker 0, a viewer on 0 and 1, and a tap in place of worker 2.
    private final class Story {
        var call: RelayedCall
        var tap: TapPort
        var packets: [TapPacket] = []

        init() throws {
            var call = try RelayTests.call()
            // Worker 2 has asked for a warm picture for the last time.
            call.run(milliseconds: 150)
            var port = RelayMesh(workers: 1).port(of: 0)
            swap(&port, &call.workers[2].call.relays)
            self.call = call
            tap = TapPort(port)
            tap.mirror(Self.mirror(open: true), at: call.workers[0].call.now)
        }

        static func mirror(open: Bool) -> Mirror {
            var configuration = Media.video(1, rids: [nil])
            let home = RelayTarget(worker: 0, publication: configuration.id)
            configuration.id = TapTests.mirror
            return Mirror(configuration: configuration, home: home, open: open)
        }

        var now: Instant { call.workers[0].call.now }

        func send(_ steps: Range<UInt16>, reads: Bool = true) {
            for step in steps {
                call.sendVideo(step, isKeyframe: step == 0)
                call.run(milliseconds: 20)
                if reads { read() }
            }
        }

        func read() {
            var read: [TapPacket] = []
            tap.receive { read.append($0) }
            packets += read
        }
    }

    @Test func `E-3 a tap reads what viewers get, in clear`() throws {
        let story = try Story()
        story.send(0..<20)
        let first = try #require(story.packets.first).number
        #expect(story.packets.map(\.number) == Array(first..<first + 20))
        #expect(story.packets.map(\.isKeyframeStart) == [true] + Array(repeating: false, count: 19))
        #expect(story.packets.allSatisfy { $0.codec == .vp8 && $0.best == 0 && !$0.followsGap })
        // Viewers have picture ids of their own; the data after the descriptors is the same.
        let bodies = story.call.viewer(1).payloads(of: 0xaaaa).map(Self.body)
        #expect(story.packets.map { Self.body($0.payload) } == bodies)
        #expect(story.call.statistics()[0].isBalanced)
    }

    @Test func `E-3 a closed gate holds for what lies in the ring, also once it is open again`()
        throws
    {
        let story = try Story()
        story.send(0..<5)
        story.send(5..<10, reads: false)
        story.tap.gate(Self.mirror, open: false, at: story.now)
        story.read()
        #expect(story.packets.count == 5)
        story.send(10..<15, reads: false)
        story.tap.gate(Self.mirror, open: true, at: story.now)
        story.call.run(milliseconds: 1)
        story.send(15..<20)
        let first = try #require(story.packets.first).number
        #expect(story.packets.map { $0.number - first } == Array(0..<5) + Array(15..<20))
    }

    @Test func `R-1 no picture above the cap of its publisher's role is read, nor from the ring`()
        throws
    {
        let story = try Story()
        story.send(0..<5)
        story.send(5..<8, reads: false)
        var capped = Story.mirror(open: true)
        capped.configuration.cap = LayerCap(width: 320, height: 180)
        story.tap.mirror(capped, at: story.now)
        story.send(8..<12)
        #expect(story.packets.count == 5)
        story.tap.mirror(Story.mirror(open: true), at: story.now)
        story.send(12..<15)
        // Their numbers show what was left out, so that a keyframe is asked for.
        let first = try #require(story.packets.first).number
        #expect(story.packets.dropFirst(5).map { $0.number - first } == [12, 13, 14])
    }

    /// A home that writes pictures of three spatial layers into a tap's ring.
    private struct Layered: ~Copyable {
        private let mesh = RelayMesh(workers: 2)
        private var home: RelayPort
        var tap: TapPort
        private var number: Int64 = 0

        init() {
            home = mesh.port(of: 0)
            tap = TapPort(mesh.port(of: 1))
        }

        /// Sends a picture, and returns its packets as they are read.
        mutating func picture(isKeyframe: Bool) -> [TapPacket] {
            let mirror = Story.mirror(open: true)
            for (spatial, width) in [UInt16(320), 640, 1_280].enumerated() {
                var message = RelayMessage(
                    .packet,
                    to: mirror.configuration.id,
                    from: mirror.home.publication,
                    position: 0
                )
                let layer = LayerPoint(spatial: UInt8(spatial), temporal: 0)
                number += 1
                message.length = 20
                message.layerSize = LayerSize(width: width, height: width * 9 / 16)
                (message.width, message.height) = (1_280, 720)
                message.info.number = number
                message.info.arrival = Instant(nanoseconds: 1)
                message.info.payloadType = 96
                message.info.payloadOffset = 12
                message.info.layer = layer.rawValue
                message.info.marks = LayerPoints(spatial: layer.spatial)
                message.info.flags = isKeyframe && spatial == 0 ? .keyframeStart : []
                if spatial == 2 { message.info.flags.insert(.marker) }
                let bytes = [UInt8](repeating: 7, count: 20)
                _ = home.write(message, bytes.span, to: 1)
            }
            _ = home.publish(to: 1)
            var packets: [TapPacket] = []
            tap.receive { packets.append($0) }
            return packets
        }
    }

    @Test func `R-1 spatial layers above the cap are padding until a keyframe after it`() {
        var story = Layered()
        var capped = Story.mirror(open: true)
        capped.configuration.cap = LayerCap(width: 640, height: 360)
        story.tap.mirror(capped, at: Instant(nanoseconds: 0))
        for isKeyframe in [true, false] {
            let packets = story.picture(isKeyframe: isKeyframe)
            #expect(packets.map(\.isPadding) == [false, false, true])
            #expect(packets.map(\.payload.isEmpty) == [false, false, true])
        }
        let reduced = story.picture(isKeyframe: false)
        #expect(reduced.map(\.isMarked) == [false, true, false])
        #expect(reduced.map(\.width) == [320, 640, 1_280])
        story.tap.mirror(Story.mirror(open: true), at: Instant(nanoseconds: 0))
        // The highest layer refers to what was left out of it.
        let before = story.picture(isKeyframe: false)
        #expect(before.map(\.isPadding) == [false, false, true])
        for isKeyframe in [true, false] {
            let packets = story.picture(isKeyframe: isKeyframe)
            #expect(packets.map(\.isPadding) == [false, false, false])
        }
    }

    @Test func `packets of other or removed mirrors are not read`() throws {
        let story = try Story()
        story.tap.unmirror(Self.mirror)
        story.send(0..<5)
        #expect(story.packets.isEmpty && story.tap.mirrorCount == 0)
        var stranger = Story.mirror(open: true)
        stranger.home.publication.generation += 1
        story.tap.mirror(stranger, at: story.now)
        story.send(5..<10)
        #expect(story.packets.isEmpty)
    }

    @Test func `E-3 a tap that does not read loses packets, and nobody else does`() throws {
        let story = try Story()
        story.send(0..<UInt16(RelayRing.capacity + 40), reads: false)
        story.read()
        #expect(story.packets.count == RelayRing.capacity)
        story.send(UInt16(RelayRing.capacity + 40)..<UInt16(RelayRing.capacity + 42))
        #expect(story.packets.suffix(2).map(\.followsGap) == [true, false])
        let statistics = story.call.statistics()
        #expect(statistics[0].drops[DropReason.relayQueueFull.index] == 40)
        for viewer in 0..<2 {
            let count = story.call.viewer(viewer).payloads(of: 0xaaaa).count
            #expect(count == RelayRing.capacity + 42)
        }
    }

    @Test func `a tap's wish for a keyframe reaches the publisher`() throws {
        let story = try Story()
        story.send(0..<5)
        let asked = story.call.workers[0].call.keyframeRequests(at: 0)
        #expect(story.tap.requestKeyframe(of: Self.mirror, position: 0) == 0)
        story.call.run(milliseconds: 200)
        let now = story.call.workers[0].call.keyframeRequests(at: 0)
        #expect(now == asked + 1)
        story.tap.gate(Self.mirror, open: false, at: story.now)
        #expect(story.tap.requestKeyframe(of: Self.mirror, position: 0) == nil)
    }

    /// Returns the data after a VP8 descriptor.
    private static func body(_ payload: [UInt8]) -> [UInt8] {
        guard let descriptor = VP8Descriptor(payload.span) else { return [] }
        return Array(payload[descriptor.length...])
    }
}
