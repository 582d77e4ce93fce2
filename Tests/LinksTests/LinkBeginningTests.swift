import RTP
import TestSupport
import Testing
import WorkerInterface

@testable import Links
@testable import SFU

/// Sound that another node wants from a talker's first syllable on.
@Suite struct LinkHeldAudioTests {
    /// Publishes a second of sound, then lets the far node want it while it goes on; returns the
    /// numbers of the packets that come.
    private func numbers(wanting encodings: UInt8) throws -> [Int64] {
        var world = try LinkWorld(seed: 1)
        world.addSound(wanted: 0)
        world.run(1_000) { world, step in if step % 20 == 0 { world.speak(Int64(step / 20)) } }
        #expect(world.packets.isEmpty)
        world.far.apply(.link(.want(LinkWorld.sound.incoming, encodings)), at: world.now)
        world.run(300) { world, step in
            if step % 20 == 0 { world.speak(Int64(50 + step / 20)) }
        }
        world.run(100)
        #expect(world.far.counters.packetsMissed == 0)
        // RTP timestamps are the numbers at the origin.
        return world.packets.map { Int64($0.timestamp) }
    }

    @Test func `a talker is heard from what was held, without a gap or a repetition`() throws {
        let numbers = try numbers(wanting: 1 | LinkOrder.heldAudio)
        let first = try #require(numbers.first)
        #expect((31...34).contains(first), "400 ms before the want has come")
        #expect(numbers == Array(first..<65))
    }

    @Test func `who subscribes hears the present alone`() throws {
        let numbers = try numbers(wanting: 1)
        #expect(numbers == Array((numbers.first ?? 0)..<65) && numbers.count < 16)
    }

    @Test func `a further wish for what is held repeats nothing`() throws {
        var world = try LinkWorld(seed: 1)
        world.addSound()
        world.run(50)
        world.run(500) { world, step in if step % 20 == 0 { world.speak(Int64(step / 20)) } }
        let wish = 1 | LinkOrder.heldAudio
        world.far.apply(.link(.want(LinkWorld.sound.incoming, wish)), at: world.now)
        world.run(100)
        #expect(world.origin.counters.packetsOut == 25)
        #expect(world.packets.count == 25)
    }

    @Test func `nothing is sent that was said long ago`() throws {
        var world = try LinkWorld(seed: 1)
        world.addSound(wanted: 0)
        world.run(500) { world, step in if step % 20 == 0 { world.speak(Int64(step / 20)) } }
        world.run(420)
        let wish = 1 | LinkOrder.heldAudio
        world.far.apply(.link(.want(LinkWorld.sound.incoming, wish)), at: world.now)
        world.run(100)
        #expect(world.packets.isEmpty && world.origin.counters.packetsOut == 0)
    }

    @Test func `nothing held before a mute is sent`() throws {
        var world = try LinkWorld(seed: 1)
        world.addSound(wanted: 0)
        world.run(500) { world, step in if step % 20 == 0 { world.speak(Int64(step / 20)) } }
        world.origin.apply(.gate(LinkWorld.sound.outgoing, open: false), at: world.now)
        world.run(10)
        world.origin.apply(.gate(LinkWorld.sound.outgoing, open: true), at: world.now)
        let wish = 1 | LinkOrder.heldAudio
        world.far.apply(.link(.want(LinkWorld.sound.incoming, wish)), at: world.now)
        world.run(100)
        #expect(world.packets.isEmpty && world.origin.counters.packetsOut == 0)
    }
}

/// Warm pictures between two nodes: what the first viewer at a node is shown before live packets.
@Suite struct LinkPictureTests {
    /// Makes a publication whose keyframe is some frames old, and that no other node wants yet;
    /// every third frame is of a higher temporal layer.
    private func begun(seed: UInt64 = 1, frames: Int = 20) throws -> LinkWorld {
        var world = try LinkWorld(seed: seed)
        world.run(200)
        world.run(frames * 10) { world, step in
            guard step % 10 == 0 else { return }
            let frame = step / 10
            let temporal: UInt8 = frame % 3 == 2 ? 1 : 0
            world.publish(Int64(65_530 + frame), isKeyframe: frame == 0, temporal: temporal)
        }
        world.packets = []
        return world
    }

    @Test func `the first viewer at a node is sent the picture, and live packets continue it`()
        throws
    {
        var world = try begun()
        world.askForPicture()
        world.want(1)
        world.run(60)
        let frames = world.pictures.map { Int($0.info.number) }
        let start = try #require(frames.first)
        let kept = (0..<20).filter { $0 % 3 != 2 }
        #expect(frames.map { $0 - start } == kept, "the lowest layer alone")
        #expect(world.pictures.first?.info.flags.contains(.keyframeStart) == true)
        #expect(world.pictures.map(\.endsPicture) == kept.map { $0 == kept.last })
        #expect(world.pictures.reduce(0) { $0 + Int($1.covered) } == 20, "no number is left over")
        #expect(world.packets.isEmpty, "it is not forwarded by itself")

        world.run(200) { world, step in
            if step % 10 == 0 { world.publish(Int64(65_550 + step / 10)) }
        }
        world.run(100)
        #expect(world.packets.map { Int($0.number) - start } == Array(20..<40))
        #expect(world.requests == 0, "no keyframe is asked for")
        #expect(world.far.counters.packetsMissed == 0, "nothing of it is asked for again")
    }

    @Test func `who asks after the picture has come has it too`() throws {
        var world = try begun()
        world.want(1)
        world.run(60)
        #expect(world.pictures.isEmpty)
        world.askForPicture()
        world.run(5)
        #expect(world.pictures.count == 14 && world.pictures.last?.endsPicture == true)
    }

    @Test func `it is sent once, and again only to who has wanted nothing meanwhile`() throws {
        var world = try begun()
        world.askForPicture()
        world.want(1)
        world.run(1_500)
        #expect(world.origin.counters.packetsOut == 14)
        world.want(0)
        world.run(50)
        // The first one is not in the next picture, which does not continue the former one.
        world.run(200) { world, step in
            guard step % 10 == 0 else { return }
            world.publish(Int64(65_550 + step / 10), temporal: step == 0 ? 1 : 0)
        }
        world.pictures = []
        world.want(1)
        world.run(60)
        world.askForPicture()
        world.run(5)
        #expect(world.origin.counters.packetsOut == 14 + 33)
        #expect(world.pictures.count == 33 && world.pictures.last?.endsPicture == true)
    }

    @Test func `a picture of which a packet is lost is given up, and not asked for again`()
        throws
    {
        for seed in 1...20 as ClosedRange<UInt64> {
            var world = try begun(seed: seed, frames: 60)
            world.askForPicture()
            world.want(1)
            // The want is on its way, and the picture has not left.
            world.run(15)
            world.faults = .init(lossPercent: 30)
            world.run(120)
            world.faults = .init()
            world.run(300) { world, step in
                if step % 10 == 0 { world.publish(Int64(65_590 + step / 10)) }
            }
            world.run(100)
            // One datagram holds several packets.
            let isWhole = world.pictures.last?.endsPicture == true
            #expect(world.pictures.isEmpty || isWhole, "seed \(seed)")
            #expect(world.packets.count == 30, "seed \(seed)")
            let covered = world.pictures.reduce(0) { $0 + Int($1.covered) }
            #expect(covered == (isWhole ? 60 : 0), "seed \(seed)")
            #expect(world.far.counters.packetsMissed == 0, "seed \(seed)")
        }
    }

    @Test func `live packets that overtake a picture are not lost by it`() throws {
        for seed in 1...20 as ClosedRange<UInt64> {
            var world = try begun(seed: seed, frames: 60)
            world.askForPicture()
            world.want(1)
            world.run(15)
            world.faults = .init(delay: 5...60)
            world.run(300) { world, step in
                if step % 5 == 0 { world.publish(Int64(65_590 + step / 5)) }
            }
            world.faults = .init()
            world.run(600)
            // RTP timestamps are the numbers at the origin.
            let numbers = world.packets.map(\.timestamp)
            let last = try #require(numbers.max())
            let first = try #require(numbers.min())
            #expect(last == 65_649 && first <= 65_594, "seed \(seed)")
            #expect(Set(numbers).count == numbers.count, "seed \(seed): none twice")
            #expect(numbers.count == Int(last - first) + 1, "seed \(seed): none missing")
            #expect(world.pictures.last?.endsPicture ?? true, "seed \(seed)")
        }
    }

    @Test func `nothing from before a mute is in it`() throws {
        var world = try begun()
        world.gate(open: false)
        world.run(10)
        world.gate(open: true)
        world.run(20) { world, step in
            if step % 10 == 0 { world.publish(Int64(65_550 + step / 10)) }
        }
        world.askForPicture()
        world.want(1)
        world.run(200)
        #expect(world.pictures.isEmpty)
    }

    @Test func `an encoding that is not wanted is in no picture`() throws {
        var world = try LinkWorld(seed: 1, rids: ["q", "h"])
        world.run(200)
        world.run(300) { world, step in
            guard step % 10 == 0 else { return }
            for layer in 0...1 {
                world.publish(
                    Int64(step / 10),
                    position: layer,
                    isKeyframe: step == 0,
                    size: 60 + 300 * layer
                )
            }
        }
        world.askForPicture()
        world.want(0b10)
        world.run(60)
        #expect(world.pictures.isEmpty)
        world.want(0b11)
        world.run(60)
        #expect(world.pictures.count == 30 && world.pictures.allSatisfy { $0.position == 0 })
    }

    @Test func `a picture that makes no sense is refused and counted`() throws {
        var world = try begun()
        world.want(1)
        world.run(60)
        let good = LinkedMediaHeader(
            handle: LinkWorld.incoming,
            position: 0,
            revision: 1,
            age: 0,
            epoch: 1,
            number: 400
        )
        let packet: [UInt8] =
            [0x80, 0xe0, 0x01, 0x90, 0, 0, 0, 0, 0, 0, 2, 1] + [0x10, 0, 0, 0, 0x9d, 1]
        let next: [UInt8] = [0x80, 0xe0, 0x01, 0x91] + packet[4..<12]
        var position = good
        position.position = 3
        var number = good
        number.number = 401
        var revision = good
        revision.revision = 7
        let rows: [(String, LinkedMediaHeader, UInt16, [UInt8])] = [
            ("no number covered", good, 0, packet), ("too many", good, 1_025, packet),
            ("no such encoding", position, 1, packet), ("another number", number, 1, packet),
            ("another right", revision, 1, packet), ("no packet", good, 1, []),
            ("no payload", good, 1, Array(packet.prefix(12))),
            ("no keyframe", number, 1, next + [0x10, 1, 0, 0]),
        ]
        for (name, header, covered, bytes) in rows {
            let before = world.far.counters
            let record = LinkRecord.picture(header, covered: covered, isLast: true, packet: bytes)
            world.far.take(record, from: "origin", at: world.now)
            let after = world.far.counters
            let refused =
                after.packetsRefused + after.packetsUnwanted
                - before.packetsRefused - before.packetsUnwanted
            #expect(refused == 1, "\(name)")
        }
    }
}
