import RTP
import TestSupport
import Testing
import WorkerInterface

@testable import Links
@testable import SFU

/// Media between two nodes, over a path with faults.
@Suite struct LinkMediaTests {
    @Test(arguments: 1...6 as ClosedRange<UInt64>)
    func `every packet comes once over a path that loses, repeats and reorders`(
        seed: UInt64
    ) throws {
        var world = try LinkWorld(seed: seed)
        world.want(1)
        world.run(300)
        world.faults = .init(lossPercent: 8, delay: 10...30, duplicatePercent: 10)
        world.run(2_000) { world, step in
            if step % 4 == 0 { world.publish(Int64(65_400 + step / 4), isKeyframe: step == 0) }
        }
        world.faults = .init()
        world.run(300)
        let numbers = world.packets.map(\.timestamp)
        #expect(Set(numbers).count == numbers.count, "none twice")
        #expect(numbers.count >= 495, "\(numbers.count) of 500")
        #expect(Set(world.packets.map(\.epoch)).count == 1)
        let repeated = world.origin.counters.packetsRepeated
        #expect(repeated > 0)
    }

    @Test func `nothing travels before it is wanted, nor after`() throws {
        var world = try LinkWorld(seed: 1, rids: ["q", "h"])
        world.run(500) { world, step in
            if step % 10 == 0 {
                for layer in 0...1 { world.publish(Int64(step / 10), position: layer) }
            }
        }
        #expect(world.sent == 0 && world.packets.isEmpty)
        world.want(0b10)
        world.run(500) { world, step in
            if step % 10 == 0 {
                for layer in 0...1 { world.publish(Int64(100 + step / 10), position: layer) }
            }
        }
        #expect(world.packets.count > 40)
        #expect(Set(world.packets.map(\.position)) == [1])
        world.want(0)
        world.run(100)
        let before = world.sent
        world.run(1_000) { world, step in world.publish(Int64(200 + step), position: 1) }
        #expect(world.sent == before)
    }

    @Test func `a want that is not refreshed is over after three seconds`() throws {
        var world = try LinkWorld(seed: 1)
        world.want(1)
        world.run(300) { world, step in world.publish(Int64(step)) }
        #expect(world.packets.count > 200)
        world.isFarStopped = true
        world.run(3_200) { world, step in world.publish(Int64(300 + step)) }
        let before = world.sent
        world.run(500) { world, step in world.publish(Int64(3_500 + step)) }
        #expect(world.sent == before)
    }

    @Test func `what was on its way when the gate closed never comes, also if it opens at once`()
        throws
    {
        var world = try LinkWorld(seed: 3)
        world.faults.delay = 150...150
        world.want(1)
        world.run(800) { world, step in world.publish(Int64(step)) }
        #expect(!world.packets.isEmpty)
        world.packets = []
        // Closed and opened within less than the way takes.
        world.gate(open: false)
        world.run(5)
        world.gate(open: true)
        world.run(1_000) { world, step in world.publish(Int64(10_000 + step)) }
        #expect(world.packets.count > 200)
        #expect(world.packets.allSatisfy { $0.timestamp >= 10_000 })
    }

    @Test func `many requests for a keyframe are few at the publisher`() throws {
        var world = try LinkWorld(seed: 4)
        world.want(1)
        world.run(300) { world, step in world.publish(Int64(step), isKeyframe: step == 0) }
        let before = world.requests
        world.run(200) { world, step in
            world.publish(Int64(300 + step))
            world.requestKeyframe()
        }
        #expect((1...2).contains(world.requests - before), "\(world.requests - before)")
    }

    @Test func `a lease counts from the sending of the beat, and ends when it is not granted`()
        throws
    {
        var world = try LinkWorld(seed: 5)
        world.run(500)
        let lease = LinkMedia.leaseMilliseconds
        #expect(world.leaseEnd > world.now)
        #expect(world.leaseEnd <= world.now.advanced(milliseconds: lease - 40))
        // Echoes that have waited in the socket of a node that stood still are old.
        world.isFarStopped = true
        world.run(3_000)
        let stopped = world.now
        world.isFarStopped = false
        world.run(1)
        #expect(world.leaseEnd < stopped)
        world.run(300)
        #expect(world.leaseEnd > world.now)
        world.origin.apply(.link(.grant("far", false)), at: world.now)
        let denied = world.now
        world.run(2_000)
        #expect(world.leaseEnd <= denied.advanced(milliseconds: lease))
        world.origin.apply(.link(.grant("far", true)), at: world.now)
        world.run(200)
        #expect(world.leaseEnd > world.now)
    }

    @Test func `the lease of a home that has died goes on, that of one that withholds it does not`()
        throws
    {
        var world = try LinkWorld(seed: 5)
        world.run(500)
        world.faults.isCut = true
        let cut = world.now
        world.run(500)
        world.far.apply(.link(.prolong(home: "origin")), at: world.now)
        world.run(1)
        let most = LinkMedia.prolongedMilliseconds
        #expect(world.leaseEnd <= cut.advanced(milliseconds: most))
        #expect(world.leaseEnd > cut.advanced(milliseconds: most - 200))
        // It was no death.
        world.faults.isCut = false
        world.run(300)
        #expect(world.leaseEnd <= world.now.advanced(milliseconds: LinkMedia.leaseMilliseconds))
        world.origin.apply(.link(.grant("far", false)), at: world.now)
        world.run(300)
        let before = world.leaseEnd
        world.far.apply(.link(.prolong(home: "origin")), at: world.now)
        world.run(1)
        #expect(world.leaseEnd == before)
    }

    @Test func `a lease that is over is not prolonged`() throws {
        var world = try LinkWorld(seed: 5)
        world.run(500)
        world.faults.isCut = true
        world.run(1_200)
        let over = world.leaseEnd
        world.far.apply(.link(.prolong(home: "origin")), at: world.now)
        world.run(1)
        #expect(over < world.now && world.leaseEnd == over)
    }

    @Test func `a lease that begins counts from the last echo`() throws {
        var world = try LinkWorld(seed: 5)
        world.run(500)
        world.far.apply(.link(.hold(home: "origin", lease: nil)), at: world.now)
        world.run(500)
        world.far.apply(.link(.hold(home: "origin", lease: 0)), at: world.now)
        world.run(1)
        #expect(world.leaseEnd > world.now.advanced(milliseconds: 700))
    }

    @Test func `a publication goes on under the name that another home gives it`() throws {
        var world = try LinkWorld(seed: 2)
        world.want(1)
        world.run(500) { world, step in world.publish(Int64(step)) }
        let next = StreamName(home: "next", target: LinkWorld.name.target)
        var configuration = LinkWorld.configuration(.video, [nil])
        configuration.id = LinkWorld.incoming
        // The far node hears of it first, and its wants are for a name that is not known yet.
        world.far.apply(.link(.receive(configuration, next, from: "origin")), at: world.now)
        let name = world.far.receiving[LinkWorld.incoming]?.name
        #expect(name == next)
        world.run(1_500) { world, step in world.publish(Int64(500 + step)) }
        world.origin.apply(
            .link(.send(LinkWorld.outgoing, as: next, to: ["far"])),
            at: world.now
        )
        world.run(4_000) { world, step in world.publish(Int64(2_000 + step)) }
        world.run(100)
        let numbers = world.packets.map(\.timestamp)
        #expect(numbers == Array(numbers[0]..<6_000).map { $0 }, "none is missing")
        // Once it has ended, nobody knows it by either name.
        world.origin.apply(.unmirror(LinkWorld.outgoing), at: world.now)
        #expect(world.origin.names.isEmpty)
    }

    @Test func `a process that begins again is asked at once, and numbers anew`() throws {
        var world = try LinkWorld(seed: 3)
        world.want(1)
        world.run(1_500) { world, step in world.publish(Int64(step), isKeyframe: step == 0) }
        let before = try #require(world.packets.last)
        let former = world.far.core.linkedEpoch(of: LinkWorld.incoming, position: 0)
        try world.restartOrigin(keys: 11)
        let count = world.packets.count
        world.run(150) { world, step in world.publish(Int64(1_500 + step)) }
        #expect(world.packets.count > count + 50, "wants are not refreshed before a second")
        let after = try #require(world.packets.last)
        #expect(after.epoch != before.epoch)
        #expect(world.far.core.linkedEpoch(of: LinkWorld.incoming, position: 0) != former)
    }

    @Test func `a path that is cut is told, and told again when it is back`() throws {
        var world = try LinkWorld(seed: 6)
        world.run(300)
        #expect(world.far.takeEvents() == [.link(.media("origin", isAlive: true))])
        world.faults.isCut = true
        world.run(1_300)
        #expect(world.far.takeEvents() == [.link(.media("origin", isAlive: false))])
        world.faults.isCut = false
        world.run(300)
        #expect(world.far.takeEvents() == [.link(.media("origin", isAlive: true))])
    }

    @Test func `datagrams that are repeated, changed or strange are refused`() throws {
        var world = try LinkWorld(seed: 7)
        world.run(200)
        let known = world.captured
        let before = world.far.counters.datagramsRefused
        var refused = before
        for bytes in known {
            world.far.receive(bytes, at: world.now)
            refused += 1
        }
        var changed = try #require(known.last)
        changed[30] ^= 1
        let strange: [[UInt8]] = [changed, [], [1], [UInt8](repeating: 1, count: 100)]
        for bytes in strange {
            world.far.receive(bytes, at: world.now)
            refused += 1
        }
        let counted = world.far.counters.datagramsRefused
        #expect(counted == refused)
    }

    @Test func `packets of a publication go to no node that may not have it`() throws {
        var world = try LinkWorld(seed: 8)
        world.want(1)
        world.origin.apply(
            .link(.send(LinkWorld.outgoing, as: LinkWorld.name, to: ["other"])),
            at: world.now
        )
        world.run(500) { world, step in world.publish(Int64(step)) }
        #expect(world.packets.isEmpty && world.sent == 0)
    }
}

/// Form of the records and the replay window.
@Suite struct LinkRecordTests {
    static let header = LinkedMediaHeader(
        handle: PublicationID(index: 3, generation: 9),
        position: 2,
        revision: 65_535,
        age: 1_000,
        epoch: 7,
        number: -1,
        capture: .init(age: -5, timestamp: 0xffff_ffff)
    )

    static let records: [LinkRecord] = [
        .media(header, packet: [1, 2, 3]),
        .want(LinkWorld.name, handle: LinkWorld.incoming, revision: 2, encodings: 5),
        .missing(handle: LinkWorld.incoming, position: 1, epoch: 4, numbers: [1, 65_535]),
        .keyframe(handle: LinkWorld.incoming, position: 0),
        .beat(stamp: .max),
        .echo(stamp: 1, granted: true),
        .arrivals(association: 9, report: [0x8f, 205, 0, 1, 0, 0, 0, 0]),
        .padding(300),
        .withheld(handle: LinkWorld.incoming, encodings: 6),
        .picture(header, covered: 3, isLast: true, packet: [1, 2, 3]),
    ]

    @Test func `records come back as they were, several in one text`() {
        var text: [UInt8] = []
        for record in Self.records { record.encode(into: &text) }
        #expect(LinkRecord.read(text) == Self.records)
    }

    @Test func `a text that ends early is refused, at every length`() {
        for record in Self.records {
            var text: [UInt8] = []
            record.encode(into: &text)
            for length in 1..<text.count {
                #expect(LinkRecord.read(Array(text.prefix(length))) == nil)
            }
        }
    }

    @Test func `records of unknown types are left out`() {
        var text: [UInt8] = [200, 0, 2, 1, 2]
        LinkRecord.beat(stamp: 3).encode(into: &text)
        #expect(LinkRecord.read(text) == [.beat(stamp: 3)])
    }

    @Test func `noise is read without a trap`() {
        var noise = SeededRandom(seed: 9)
        for _ in 0..<2_000 {
            let text = (0..<Int.random(in: 0...60, using: &noise)).map { _ in
                UInt8(truncatingIfNeeded: noise.next() % 11)
            }
            _ = LinkRecord.read(text)
        }
    }

    @Test func `a counter is accepted once, and not when it is too old`() {
        var window = LinkReplayWindow()
        for counter in [1, 3, 2, 500, 2_000] as [UInt64] {
            #expect(window.isNew(counter))
            window.accept(counter)
            #expect(!window.isNew(counter))
        }
        #expect(!window.isNew(900), "too old")
        #expect(window.isNew(1_999))
    }
}
