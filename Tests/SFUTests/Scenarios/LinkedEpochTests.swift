import RTP
import Testing

@testable import SFU
@testable import WorkerInterface

/// Numberings of what comes from another node, whose datagrams may overtake one another.
struct LinkedEpochTests {
    private struct World {
        var call: RelayedCall

        static let id = PublicationID(index: 1, generation: 1)

        init() throws {
            call = try RelayedCall(workers: 1)
            var configuration = Media.video(1, rids: [nil])
            configuration.id = Self.id
            call.workers[0].call.core.addLinked(configuration, at: call.workers[0].call.now)
            call.workers[0].call.apply(.gate(Self.id, open: true))
        }

        /// Returns whether a packet is kept that comes so many milliseconds after the beginning.
        func receives(_ number: Int64, of epoch: UInt32, after milliseconds: Int64 = 0) -> Bool {
            let bytes = Media.packet(
                payloadType: 96,
                sequence: UInt16(truncatingIfNeeded: number),
                timestamp: 0,
                ssrc: 0x500,
                marker: true,
                payload: Media.vp8Payload(
                    pictureID: UInt16(truncatingIfNeeded: number),
                    isKeyframe: false,
                    width: 320,
                    height: 180,
                    size: 100
                )
            )
            let link = call.workers[0]
            let packet = LinkedPacket(
                publication: Self.id,
                position: 0,
                epoch: epoch,
                number: number,
                arrival: link.call.now.advanced(milliseconds: milliseconds)
            )
            return link.call.core.receiveLinked(packet, bytes.span, at: link.call.now)
        }
    }

    @Test func `a packet of a former numbering that was overtaken does not begin it again`() throws
    {
        let world = try World()
        let first = [world.receives(100, of: 10), world.receives(101, of: 10)]
        #expect(first == [true, true])
        let next = [world.receives(104, of: 12), world.receives(105, of: 12)]
        #expect(next == [true, true])
        let late = [world.receives(102, of: 10), world.receives(103, of: 11)]
        #expect(late == [false, false])
        let again = [world.receives(104, of: 12), world.receives(105, of: 12)]
        #expect(again == [false, false], "they have come before")
        #expect(world.receives(106, of: 12))
    }

    @Test func `a process that dies right after its start may begin with a lower one`() throws {
        let world = try World()
        #expect(world.receives(100, of: 5_000))
        #expect(!world.receives(7, of: 4_000, after: 900))
        #expect(world.receives(8, of: 4_000, after: 1_100), "nothing else comes any longer")
        world.call.workers[0].call.core.expectAnyNumbering(of: World.id)
        #expect(world.receives(9, of: 3_000, after: 1_101), "its link is a new one")
        #expect(!world.receives(10, of: 2_000, after: 1_102))
    }

    @Test(arguments: [(1, 4_000_000_000), (5_000_000, 10), (.max, 1)] as [(UInt32, UInt32)])
    func `an origin whose numberings begin elsewhere is followed`(
        _ former: UInt32,
        _ next: UInt32
    ) throws {
        let world = try World()
        #expect(world.receives(100, of: former))
        #expect(world.receives(7, of: next))
        #expect(world.receives(8, of: next))
    }
}
