import RTP
import TestSupport
import Testing
import WorkerInterface

@testable import Links
@testable import SFU

/// Links that carry less than is wanted.
@Suite struct LinkCongestionTests {
    /// Publishes sound (50 packets a second), a low encoding (0.3 Mbit/s) and a high one
    /// (1.6 Mbit/s) for some seconds; `from` continues the numbers.
    private static func call(_ world: inout LinkWorld, from: Int = 0, seconds: Int) {
        world.run(seconds * 1_000) { world, step in
            let at = Int64(from * 1_000 + step)
            if step % 20 == 0 { world.speak(at / 20) }
            if step % 27 == 0 { world.publish(at / 27, isKeyframe: step == 0, size: 1_000) }
            if step % 5 == 0 {
                world.publish(at / 5, position: 1, isKeyframe: step == 0, size: 1_000)
            }
        }
    }

    private static func made(_ seed: UInt64) throws -> LinkWorld {
        var world = try LinkWorld(seed: seed, rids: ["q", "h"])
        world.addSound()
        world.want(0b11)
        return world
    }

    /// Returns a world in which a keyframe waits for a narrow link.
    private static func queued(_ seed: UInt64) throws -> LinkWorld {
        var world = try made(seed)
        call(&world, seconds: 1)
        world.faults.rate = 600_000
        call(&world, from: 1, seconds: 5)
        for packet in 0..<40 { world.publish(Int64(1_000 + packet), size: 1_000) }
        world.run(3)
        let waiting = world.origin.peers["far"]?.path.waiting.count ?? 0
        try #require(waiting > 10)
        return world
    }

    /// Returns how many different packets of an encoding have come, and how many are missing
    /// between the first and the last of them.
    private static func came(
        _ world: borrowing LinkWorld,
        position: Int = 0,
        of id: PublicationID = LinkWorld.mirror
    ) -> (count: Int, missing: Int) {
        let numbers = world.packets.filter { $0.publication == id && $0.position == position }
            .map(\.number)
        #expect(Set(numbers).count == numbers.count, "none twice")
        guard let first = numbers.min(), let last = numbers.max() else { return (0, 0) }
        return (numbers.count, Int(last - first) + 1 - numbers.count)
    }

    @Test(arguments: Extent.seeds(5, short: 2))
    func `a link at half of what is wanted loses no sound, and carries the lower encoding`(
        seed: UInt64
    ) throws {
        var world = try Self.made(seed)
        Self.call(&world, seconds: 5)
        #expect(world.origin.counters.narrowPaths == 0)
        world.faults.rate = 1_000_000
        world.packets = []
        Self.call(&world, from: 5, seconds: 2)
        #expect(world.far.receiving[LinkWorld.incoming]?.withheld == 0b10)
        Self.call(&world, from: 7, seconds: 28)
        world.run(1_000)
        let sound = Self.came(world, of: LinkWorld.sound.mirror)
        #expect(sound.count >= 30 * 50 && sound.missing == 0, "\(sound)")
        let low = Self.came(world)
        #expect(low.count > 1_050, "\(low)")
        #expect(world.origin.counters.encodingsWithheld == 1)
        #expect(world.origin.counters.narrowPaths == 1)
    }

    /// A thin link: one packet of video takes 30 ms of it, and a keyframe more than its queue.
    @Test(arguments: Extent.seeds(5, short: 2))
    func `a keyframe on a thin link is not in the way of the sound`(seed: UInt64) throws {
        var world = try Self.made(seed)
        world.faults.delay = 1...3
        var numbers: (low: Int64, high: Int64) = (0, 0)
        func call(_ world: inout LinkWorld, seconds: Int) {
            world.run(seconds * 1_000) { world, step in
                if step % 20 == 0 { world.speak(Int64(world.now.nanoseconds / 20_000_000)) }
                let isKeyframe = step % 3_000 == 500
                if step % 100 == 0 {
                    for packet in 0..<(isKeyframe ? 12 : 1) {
                        let begins = isKeyframe && packet == 0
                        world.publish(numbers.low, isKeyframe: begins, size: 1_000)
                        numbers.low += 1
                    }
                }
                if step % 33 == 0 {
                    for packet in 0..<2 {
                        world.publish(
                            numbers.high,
                            position: 1,
                            isKeyframe: step == 0 && packet == 0,
                            size: 1_000
                        )
                        numbers.high += 1
                    }
                }
            }
        }
        call(&world, seconds: 4)
        world.faults.rate = 280_000
        world.packets = []
        let before = world.origin.counters.packetsRepeated
        call(&world, seconds: 15)
        world.run(500)
        let sound = Self.came(world, of: LinkWorld.sound.mirror)
        #expect(sound.count >= 740 && sound.missing == 0, "\(sound)")
        #expect(world.origin.counters.packetsRepeated - before < 100)
        let low = Self.came(world)
        #expect(low.count > 180, "\(low)")
    }

    @Test func `the higher encoding comes back once the link is wide again`() throws {
        var world = try Self.made(1)
        Self.call(&world, seconds: 3)
        world.faults.rate = 1_000_000
        Self.call(&world, from: 3, seconds: 10)
        #expect(world.far.receiving[LinkWorld.incoming]?.withheld == 0b10)
        world.faults.rate = 10_000_000
        Self.call(&world, from: 13, seconds: 20)
        #expect(world.far.receiving[LinkWorld.incoming]?.withheld == 0)
        #expect(world.origin.counters.paddingOut > 0, "probed first")
        // All that is wanted is carried for a while: nothing is limited any longer.
        Self.call(&world, from: 33, seconds: 12)
        #expect(world.origin.counters.narrowPaths == 0)
        let padding = world.origin.counters.paddingOut
        Self.call(&world, from: 45, seconds: 10)
        #expect(world.origin.counters.paddingOut == padding, "no probes without a limit")
    }

    @Test(arguments: Extent.seeds(5, short: 1))
    func `a narrow link does not flap`(seed: UInt64) throws {
        var world = try Self.made(seed)
        Self.call(&world, seconds: 2)
        world.faults.rate = 1_300_000
        Self.call(&world, from: 2, seconds: 10)
        var changes = 0
        var last = world.far.receiving[LinkWorld.incoming]?.withheld
        for second in 0..<60 {
            Self.call(&world, from: 12 + second, seconds: 1)
            let present = world.far.receiving[LinkWorld.incoming]?.withheld
            if present != last { changes += 1 }
            last = present
        }
        #expect(changes <= 4, "at most one flap in 30 s: \(changes) changes in 60 s")
    }

    @Test func `two per cent of loss and 40 ms do not narrow a link`() throws {
        var world = try Self.made(3)
        world.faults.lossPercent = 2
        world.faults.delay = 40...40
        Self.call(&world, seconds: 60)
        world.run(500)
        #expect(world.origin.counters.narrowPaths == 0)
        let (low, high) = (Self.came(world), Self.came(world, position: 1))
        let sound = Self.came(world, of: LinkWorld.sound.mirror)
        let all = (low.count + high.count + sound.count, low.missing + high.missing + sound.missing)
        #expect(all.0 > 17_000 && all.1 * 2_000 <= all.0, "0.05 %: \(low), \(high), \(sound)")
    }

    @Test func `a wide link delays nothing and sends no padding`() throws {
        var world = try Self.made(4)
        world.faults.rate = 20_000_000
        Self.call(&world, seconds: 10)
        #expect(world.origin.counters.narrowPaths == 0)
        #expect(world.origin.counters.paddingOut == 0)
        let high = Self.came(world, position: 1)
        #expect(high.count > 1_980 && high.missing == 0, "\(high)")
    }

    @Test func `sound that is wanted while a link is narrow comes at once`() throws {
        var world = try LinkWorld(seed: 1, rids: ["q", "h"])
        world.want(0b11)
        Self.call(&world, seconds: 2)
        world.faults.rate = 1_000_000
        Self.call(&world, from: 2, seconds: 3)
        try #require(world.origin.counters.narrowPaths == 1)
        world.addSound()
        world.packets = []
        Self.call(&world, from: 5, seconds: 1)
        #expect(Self.came(world, of: LinkWorld.sound.mirror).count > 40)
    }

    @Test(arguments: [true, false])
    func `a narrow link carries no warm picture in one burst`(isNarrow: Bool) throws {
        var world = try LinkWorld(seed: 1, rids: ["q", "h"])
        world.want(0b10)
        Self.call(&world, seconds: 2)
        if isNarrow { world.faults.rate = 1_000_000 }
        Self.call(&world, from: 2, seconds: 3)
        try #require(world.origin.counters.narrowPaths == (isNarrow ? 1 : 0))
        world.run(50) { world, step in
            if step % 10 == 0 { world.publish(Int64(1_000 + step / 10), isKeyframe: step == 0) }
        }
        world.askForPicture()
        world.want(0b11)
        world.run(60)
        #expect(world.pictures.count == (isNarrow ? 0 : 5))
    }

    @Test func `a video without sound that was withheld comes back`() throws {
        var world = try LinkWorld(seed: 9, rids: ["q"])
        world.want(1)
        var number: Int64 = 0
        func share(_ world: inout LinkWorld, seconds: Int) {
            world.run(seconds * 1_000) { world, step in
                guard step % 10 == 0 else { return }
                world.publish(number, isKeyframe: step % 1_000 == 0, size: 1_000)
                number += 1
            }
        }
        share(&world, seconds: 3)
        world.faults.rate = 300_000
        share(&world, seconds: 10)
        #expect(world.far.receiving[LinkWorld.incoming]?.withheld == 1)
        world.faults.rate = nil
        share(&world, seconds: 20)
        #expect(world.far.receiving[LinkWorld.incoming]?.withheld == 0)
    }

    @Test func `new keys do not end what is known of a path`() throws {
        var world = try Self.made(10)
        Self.call(&world, seconds: 10)
        world.connect(keys: 5)
        Self.call(&world, from: 10, seconds: 2)
        world.faults.rate = 1_000_000
        Self.call(&world, from: 12, seconds: 3)
        #expect(world.far.receiving[LinkWorld.incoming]?.withheld == 0b10)
    }

    @Test func `only the lowest encoding is sent at once when more is wanted of a narrow link`()
        throws
    {
        var world = try Self.made(11)
        Self.call(&world, seconds: 3)
        world.faults.rate = 1_000_000
        Self.call(&world, from: 3, seconds: 6)
        world.want(0)
        Self.call(&world, from: 9, seconds: 1)
        world.want(0b10)
        world.packets = []
        Self.call(&world, from: 10, seconds: 2)
        #expect(Self.came(world, position: 1).count == 0)
        world.want(0b11)
        Self.call(&world, from: 12, seconds: 1)
        #expect(Self.came(world, position: 1).count == 0)
        #expect(Self.came(world).count > 25)
    }

    @Test func `an encoding that is not the lowest is given up at once`() throws {
        var world = try Self.made(12)
        world.want(0b10)
        Self.call(&world, seconds: 4)
        world.faults.rate = 1_000_000
        Self.call(&world, from: 4, seconds: 1)
        #expect(world.far.receiving[LinkWorld.incoming]?.withheld == 0b10)
    }

    @Test func `what waits goes to no node that may no longer have it`() throws {
        var world = try Self.queued(13)
        world.origin.apply(
            .link(.send(LinkWorld.outgoing, as: LinkWorld.name, to: ["other"])),
            at: world.now
        )
        let before = world.origin.counters.bytesOut
        world.run(100)
        let sent = world.origin.counters.bytesOut - before
        #expect(sent < 3_000, "\(sent) bytes")
    }

    @Test func `what waits for a narrow link is dropped when the gate closes`() throws {
        var world = try Self.queued(5)
        world.gate(open: false)
        let before = world.origin.counters.bytesOut
        world.run(100)
        let sent = world.origin.counters.bytesOut - before
        #expect(sent < 3_000, "\(sent) bytes after the gate was closed")
    }

    @Test func `reports of others' keys and malformed ones change nothing`() throws {
        var world = try Self.made(6)
        Self.call(&world, seconds: 2)
        let limit = world.origin.peers["far"]?.path.bandwidth.limit
        #expect(limit == nil)
        var noise = SeededRandom(seed: 7)
        for length in 0..<200 {
            let report = (0..<length).map { _ in UInt8(truncatingIfNeeded: noise.next()) }
            world.origin.take(report, on: UInt64(length % 3), from: "far", at: world.now)
        }
        Self.call(&world, from: 2, seconds: 2)
        #expect(world.origin.counters.narrowPaths == 0)
    }

    @Test func `a node is told again until it knows what is withheld`() throws {
        var world = try Self.made(8)
        Self.call(&world, seconds: 2)
        world.faults.rate = 1_000_000
        // The records that tell it may be lost as well.
        world.faults.lossPercent = 30
        Self.call(&world, from: 2, seconds: 6)
        let told = world.far.receiving[LinkWorld.incoming]?.withheld ?? 0
        let withheld = world.origin.sending[LinkWorld.outgoing]?.subscribers["far"]?.withheld
        #expect(withheld.map { $0 != 0 } == true)
        #expect(told == withheld)
        // A sender that has lost its state says nothing; the receiver does not wait for ever.
        world.origin.sending = [:]
        world.faults = .init()
        world.run(3_500)
        #expect(world.far.receiving[LinkWorld.incoming]?.withheld == 0)
    }
}
