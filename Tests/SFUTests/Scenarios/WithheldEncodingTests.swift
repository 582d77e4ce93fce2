import RTP
import Testing

@testable import SFU
@testable import WorkerInterface

/// Encodings that a link from another node does not carry: its core tells the mirrors in the
/// workers.
struct WithheldEncodingTests {
    /// Worker 0 stands for the link's core, and worker 1 has the viewers.
    private struct World {
        var call: RelayedCall
        var withheld: UInt8 = 0
        var pictures: Int64 = 0

        static let id = PublicationID(index: 1, generation: 1)
        static let slot = SlotID(index: 0, generation: 1)

        init() throws {
            call = try RelayedCall(workers: 2)
            call.workers[1].call.join(slots: [Media.slot(0)])
            call.workers[1].call.connect(0)
            call.alignClocks()
            var configuration = Media.video(1, rids: ["q", "h"])
            configuration.id = Self.id
            let link = call.workers[0]
            link.call.core.addLinked(configuration, at: link.call.now)
            link.call.apply(.gate(Self.id, open: true))
            call.wire(configuration, from: 0, to: [1])
            bind()
        }

        func bind(preference: LayerCap = .none) {
            var binding = Binding(
                publication: RelayedCall.mirrorID(1),
                subscription: 7,
                open: true
            )
            binding.preference = preference
            call.workers[1].call.apply(.bind(Self.slot, binding))
        }

        /// Lets the link deliver pictures of the encodings that it carries.
        mutating func run(pictures count: Int) {
            for _ in 0..<count {
                for position in 0...1 where withheld & 1 << position == 0 { deliver(position) }
                call.workers[0].call.settle()
                call.run(milliseconds: 33)
                pictures += 1
            }
        }

        private func deliver(_ position: Int) {
            let width: UInt16 = position == 0 ? 320 : 1_280
            let bytes = Media.packet(
                payloadType: 96,
                sequence: UInt16(truncatingIfNeeded: pictures),
                timestamp: UInt32(truncatingIfNeeded: pictures * 3_000),
                ssrc: 0x500 + UInt32(position),
                marker: true,
                payload: Media.vp8Payload(
                    pictureID: UInt16(truncatingIfNeeded: pictures & 0x7fff),
                    isKeyframe: pictures % 10 == 0,
                    width: width,
                    height: width / 16 * 9,
                    size: position == 0 ? 300 : 1_000
                )
            )
            let link = call.workers[0]
            let packet = LinkedPacket(
                publication: Self.id,
                position: position,
                epoch: 1,
                number: pictures,
                arrival: link.call.now
            )
            _ = link.call.core.receiveLinked(packet, bytes.span, at: link.call.now)
        }

        mutating func withhold(_ encodings: UInt8) {
            withheld = encodings
            let link = call.workers[0]
            link.call.core.setWithheld(Self.id, encodings)
            link.call.settle()
            call.exchange()
        }

        func explained() throws -> LayerExplanation {
            let worker = call.workers[1]
            let found = worker.call.core.explain(Self.slot, at: worker.call.now)
            return try #require(found)
        }
    }

    @Test
    func `viewers get the lower encoding at once, are told why, and get the higher one again`()
        throws
    {
        var world = try World()
        world.run(pictures: 90)
        #expect(try world.explained().sent?.width == 1_280)
        #expect(try world.explained().limit == .none)
        world.withhold(0b10)
        world.run(pictures: 12)
        let lower = try world.explained()
        #expect(lower.sent?.width == 320)
        #expect(lower.limit == .link)
        #expect(lower.decisions.last?.cause == .link)
        // The higher one stays in demand: the link carries it again as soon as it can.
        world.run(pictures: 200)
        let last = world.call.workers[1].call.events.compactMap { event -> UInt8? in
            guard case .layersWanted(_, _, let mask) = event else { return nil }
            return mask
        }
        #expect(last.last == 0b11)
        world.withhold(0)
        world.run(pictures: 60)
        #expect(try world.explained().sent?.width == 1_280)
        #expect(try world.explained().limit == .none)
    }

    @Test func `who does not want the higher encoding is not limited by the link`() throws {
        var world = try World()
        world.run(pictures: 60)
        world.bind(preference: LayerCap(width: 320, height: 180))
        world.run(pictures: 30)
        world.withhold(0b10)
        world.run(pictures: 60)
        #expect(try world.explained().limit != .link)
        #expect(try world.explained().sent?.width == 320)
    }

    @Test func `an encoding that nobody has asked for is not on offer while it is withheld`() throws
    {
        var world = try World()
        world.run(pictures: 60)
        world.bind(preference: LayerCap(width: 320, height: 180))
        world.run(pictures: 150)
        world.withhold(0b10)
        world.run(pictures: 10)
        world.bind()
        world.run(pictures: 20)
        #expect(try world.explained().decisions.last?.to?.width == 320)
        #expect(try world.explained().limit == .link)
    }

    @Test func `a mirror that is made later is told, too`() throws {
        var world = try World()
        world.run(pictures: 60)
        world.withhold(0b10)
        let link = world.call.workers[0]
        let mirror = RelayedCall.mirrorID(1)
        link.call.apply(.relay(World.id, to: []))
        world.call.workers[1].call.apply(.unmirror(mirror))
        world.run(pictures: 30)
        var configuration = Media.video(1, rids: ["q", "h"])
        configuration.id = World.id
        world.call.wire(configuration, from: 0, to: [1])
        world.bind()
        world.run(pictures: 60)
        #expect(try world.explained().limit == .link)
        #expect(try world.explained().sent?.width == 320)
    }

    @Test func `a link that carries nothing of a video is named`() throws {
        var world = try World()
        world.run(pictures: 60)
        world.withhold(0b11)
        world.run(pictures: 200)
        #expect(try world.explained().limit == .link)
        world.withhold(0)
        world.run(pictures: 90)
        #expect(try world.explained().sent?.width == 1_280)
    }
}
