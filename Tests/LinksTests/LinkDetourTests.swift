import RTP
import TestSupport
import Testing
import WorkerInterface

@testable import Links
@testable import SFU

/// Link threads of three nodes in virtual time: a publisher's, a viewer's that does not hear it,
/// and that of the room's home between them.
private struct LinkTriangle: ~Copyable {
    private struct Flying {
        var due: Instant
        var from: Int
        var to: Int
        var bytes: [UInt8]
    }

    var now = Instant(nanoseconds: 1_000_000_000_000)
    /// Whether nothing passes between the first node and the last one.
    var isCut = false
    /// Milliseconds that each datagram takes.
    var delay: Int64 = 10
    /// Whether what the home sends to the last node is lost.
    var isLosing = false
    /// Numbering of the publisher's packets.
    var epoch: UInt32 = 1
    var origin: LinkMedia
    var home: LinkMedia
    var far: LinkMedia
    /// Packets that the viewer's worker has got.
    var packets: [TapPacket] = []
    /// Keyframe requests that the publisher's worker has got.
    var requests = 0
    private var worker: RelayPort
    private var viewer: TapPort
    private var flying: [Flying] = []

    static let names = ["origin", "home", "far"]
    static let name = StreamName(
        home: "home/1",
        target: RelayTarget(worker: 8, publication: LinkWorld.home)
    )
    static let passed = PublicationID(index: 6, generation: 4)

    init(rids: [String?] = [nil]) throws {
        let first = try LinkWorld.core(1)
        let second = try LinkWorld.core(2)
        let third = try LinkWorld.core(3)
        let meshes = (RelayMesh(workers: 2), RelayMesh(workers: 2), RelayMesh(workers: 2))
        worker = meshes.0.port(of: 0)
        viewer = TapPort(meshes.2.port(of: 0))
        origin = LinkMedia(core: first, port: meshes.0.port(of: 1), at: now)
        home = LinkMedia(core: second, port: meshes.1.port(of: 1), at: now)
        far = LinkMedia(core: third, port: meshes.2.port(of: 1), at: now)
        connect()
        var configuration = LinkWorld.configuration(.video, rids)
        configuration.id = LinkWorld.outgoing
        let target = RelayTarget(worker: 0, publication: LinkWorld.home)
        let outgoing = Mirror(configuration: configuration, home: target, open: true)
        origin.apply(.mirror(outgoing), at: now)
        origin.apply(.link(.send(LinkWorld.outgoing, as: Self.name, to: ["far"])), at: now)
        configuration.id = LinkWorld.incoming
        far.apply(.link(.receive(configuration, Self.name, from: "origin")), at: now)
        let mirror = RelayTarget(worker: 0, publication: LinkWorld.mirror)
        far.apply(.relay(LinkWorld.incoming, to: [mirror]), at: now)
        far.apply(.gate(LinkWorld.incoming, open: true), at: now)
        configuration.id = LinkWorld.mirror
        let link = RelayTarget(worker: 1, publication: LinkWorld.incoming)
        viewer.mirror(Mirror(configuration: configuration, home: link, open: true), at: now)
        far.apply(.link(.want(LinkWorld.incoming, 1)), at: now)
        now = now.advanced(milliseconds: 1)
    }

    private mutating func connect() {
        for from in 0..<3 {
            for to in 0..<3 where to != from {
                let keys = LinkKeys(
                    outgoing: LinkWorld.direction(UInt8(1 + from * 3 + to)),
                    incoming: LinkWorld.direction(UInt8(1 + to * 3 + from))
                )
                let address = Address(ipv4: 0x7f00_0001, port: UInt16(to))
                apply(.link(.connect(Self.names[to], address, keys)), to: from)
            }
        }
    }

    private mutating func apply(_ command: WorkerCommand, to node: Int) {
        switch node {
        case 0: origin.apply(command, at: now)
        case 1: home.apply(command, at: now)
        default: far.apply(command, at: now)
        }
    }

    /// Lets nothing pass by way of the home any longer.
    mutating func stopPassing() {
        home.apply(.link(.send(Self.passed, as: Self.name, to: [])), at: now)
        home.apply(.link(.end(Self.passed)), at: now)
    }

    /// Lets the stream pass by way of the home, or come directly again.
    mutating func pass(_ isPassed: Bool, rids: [String?] = [nil]) {
        var configuration = LinkWorld.configuration(.video, rids)
        if isPassed {
            configuration.id = Self.passed
            home.apply(.link(.receive(configuration, Self.name, from: "origin")), at: now)
            home.apply(.gate(Self.passed, open: true), at: now)
            home.apply(.link(.send(Self.passed, as: Self.name, to: ["far"])), at: now)
        }
        configuration.id = LinkWorld.incoming
        let parent = isPassed ? "home" : "origin"
        far.apply(.link(.receive(configuration, Self.name, from: parent)), at: now)
    }

    mutating func publish(_ number: Int64, position: Int = 0, isKeyframe: Bool = false) {
        let template = RelayMessage(
            .packet,
            to: LinkWorld.outgoing,
            from: LinkWorld.home,
            position: position
        )
        let payload = LinkWorld.frame(isKeyframe: isKeyframe) + [UInt8](repeating: 9, count: 60)
        var (message, bytes) = LinkWorld.packet(template, number, payload, isKeyframe, at: now)
        message.info.epoch = epoch
        _ = worker.write(message, bytes.span, to: 1)
        _ = worker.publish(to: 1)
    }

    mutating func requestKeyframe() {
        _ = viewer.requestKeyframe(of: LinkWorld.mirror, position: 0)
    }

    mutating func run(_ milliseconds: Int, _ body: (inout Self, Int) -> Void = { _, _ in }) {
        for step in 0..<milliseconds {
            body(&self, step)
            deliver()
            _ = origin.run(at: now)
            launch(origin.takeTransmits(), from: 0)
            _ = home.run(at: now)
            launch(home.takeTransmits(), from: 1)
            _ = far.run(at: now)
            launch(far.takeTransmits(), from: 2)
            var came: [TapPacket] = []
            viewer.receive { came.append($0) }
            packets += came
            while !worker[reader: 1].isEmpty() {
                if case .keyframeRequested = worker[reader: 1].message.kind { requests += 1 }
                worker[reader: 1].advance()
            }
            worker[reader: 1].release()
            now = now.advanced(milliseconds: 1)
        }
    }

    private mutating func launch(_ transmits: [LinkTransmit], from node: Int) {
        let due = now.advanced(milliseconds: delay)
        for transmit in transmits {
            let to = Int(transmit.address.port)
            guard !isCut || node == 1 || to == 1 else { continue }
            guard !isLosing || node != 1 || to != 2 else { continue }
            flying.append(Flying(due: due, from: node, to: to, bytes: transmit.bytes))
        }
    }

    private mutating func deliver() {
        let due = flying.filter { $0.due <= now }
        flying.removeAll { $0.due <= now }
        for datagram in due {
            switch datagram.to {
            case 0: origin.receive(datagram.bytes, at: now)
            case 1: home.receive(datagram.bytes, at: now)
            default: far.receive(datagram.bytes, at: now)
            }
        }
    }
}

/// Streams that pass by way of a room's home, as one node does not hear another.
@Suite struct LinkDetourTests {
    /// Publishes a frame each 10 ms, the first one a keyframe, for some milliseconds.
    private func publish(
        _ world: inout LinkTriangle,
        from first: Int64,
        milliseconds: Int,
        isKeyframe: Bool = false
    ) {
        world.run(milliseconds) { world, step in
            guard step % 10 == 0 else { return }
            world.publish(first + Int64(step / 10), isKeyframe: isKeyframe && step == 0)
        }
    }

    @Test func `what one node does not hear comes by way of the home, in the same numbering`()
        throws
    {
        var world = try LinkTriangle()
        world.run(100)
        publish(&world, from: 65_500, milliseconds: 300, isKeyframe: true)
        world.run(50)
        #expect(world.packets.map { Int64($0.timestamp) } == Array(65_500..<65_530))
        world.isCut = true
        publish(&world, from: 65_530, milliseconds: 100)
        world.pass(true)
        publish(&world, from: 65_540, milliseconds: 400)
        world.run(100)
        let numbers = world.packets.map { Int64($0.timestamp) }
        #expect(Set(numbers).count == numbers.count, "none comes twice")
        #expect(Set(numbers).isSuperset(of: 65_545..<65_580))
        let positions = world.packets.map { Int64($0.number) &- Int64($0.timestamp) }
        #expect(Set(positions).count == 1, "the numbering goes on over the wrap")
    }

    @Test func `a keyframe is asked for where more is lost than can be repeated`() throws {
        var world = try LinkTriangle()
        world.run(100)
        publish(&world, from: 1, milliseconds: 300, isKeyframe: true)
        world.isCut = true
        publish(&world, from: 31, milliseconds: 1_200)
        world.pass(true)
        let asked = world.requests
        publish(&world, from: 151, milliseconds: 1_000)
        #expect(world.requests > asked)
    }

    @Test(arguments: [10, 120])
    func `it comes directly again without a gap, a repetition or a keyframe`(delay: Int64) throws {
        var world = try LinkTriangle()
        world.delay = delay
        world.isCut = true
        world.pass(true)
        world.run(400)
        publish(&world, from: 1, milliseconds: 300, isKeyframe: true)
        #expect(world.home.counters.packetsOut > 0)
        world.isCut = false
        let asked = world.requests
        let before = world.packets.count
        var passing: [UInt64] = []
        world.run(2_000) { world, step in
            if step == 100 { world.pass(false) }
            if [700, 1_099].contains(step) { passing.append(world.home.counters.packetsOut) }
            if step == 1_100 { world.stopPassing() }
            if step % 10 == 0 { world.publish(31 + Int64(step / 10)) }
        }
        world.run(400)
        let numbers = world.packets[before...].map { Int64($0.timestamp) }.sorted()
        #expect(numbers == Array((numbers.first ?? 0)...230))
        #expect(world.requests == asked)
        #expect(passing[0] == passing[1], "it is wanted from the home no longer than that")
        #expect(world.home.sending.isEmpty && world.home.receiving.isEmpty)
        let passed = world.home.counters.packetsOut
        publish(&world, from: 231, milliseconds: 200)
        #expect(world.home.counters.packetsOut == passed, "nothing passes by the home any longer")
    }

    @Test func `a gate that is closed on the way lets nothing through, from before it neither`()
        throws
    {
        var world = try LinkTriangle()
        world.isCut = true
        world.pass(true)
        world.run(100)
        publish(&world, from: 1, milliseconds: 200, isKeyframe: true)
        world.home.apply(.gate(LinkTriangle.passed, open: false), at: world.now)
        world.run(50)
        let before = world.packets.count
        publish(&world, from: 21, milliseconds: 200)
        world.run(100)
        #expect(world.packets.count == before)
        world.home.apply(.gate(LinkTriangle.passed, open: true), at: world.now)
        world.run(100)
        #expect(world.packets.count == before, "nothing from before is repeated")
        publish(&world, from: 41, milliseconds: 200, isKeyframe: true)
        world.run(100)
        #expect(world.packets.count > before)
    }

    @Test func `a keyframe is asked for at the publisher, and what nobody wants does not travel`()
        throws
    {
        var world = try LinkTriangle(rids: ["q", "f"])
        world.isCut = true
        world.pass(true, rids: ["q", "f"])
        world.run(100)
        world.publish(1, isKeyframe: true)
        world.publish(1, position: 1, isKeyframe: true)
        world.run(50)
        let asked = world.requests
        world.requestKeyframe()
        world.run(500)
        #expect(world.requests == asked + 1)
        let before = world.home.counters.packetsIn
        world.run(500) { world, step in
            guard step % 10 == 0 else { return }
            world.publish(2 + Int64(step / 10))
            world.publish(2 + Int64(step / 10), position: 1)
        }
        world.run(50)
        #expect(world.home.counters.packetsIn == before + 50, "one encoding alone")
        world.far.apply(.link(.want(LinkWorld.incoming, 0)), at: world.now)
        world.run(100)
        let ended = world.home.counters.packetsIn
        publish(&world, from: 60, milliseconds: 200)
        #expect(world.home.counters.packetsIn == ended)
    }

    @Test func `a publisher that begins again meanwhile has one numbering more`() throws {
        var world = try LinkTriangle()
        world.delay = 100
        world.run(400)
        publish(&world, from: 9_000, milliseconds: 50, isKeyframe: true)
        world.isCut = true
        world.pass(true)
        world.run(500)
        publish(&world, from: 1, milliseconds: 400, isKeyframe: true)
        world.isCut = false
        world.pass(false)
        // The direct way has begun 200 ms later, and what goes by the home is 100 ms behind it.
        world.run(700) { world, step in
            if step == 120 { world.epoch = 2 }
            if step % 10 == 0 {
                world.publish(41 + Int64(step / 10), isKeyframe: step == 120)
            }
        }
        world.run(400)
        // Each change of the numbering is a new one here.
        #expect(Set(world.packets.map(\.epoch)).count == 2)
        #expect(world.packets.contains { $0.timestamp == 110 })
    }

    @Test func `what is lost on the second part of the way comes from the home`() throws {
        var world = try LinkTriangle()
        world.run(100)
        // Another numbering at the publisher than the first one at the home.
        publish(&world, from: 9_000, milliseconds: 50, isKeyframe: true)
        world.epoch = 2
        publish(&world, from: 1, milliseconds: 50, isKeyframe: true)
        world.isCut = true
        world.pass(true)
        world.run(100)
        publish(&world, from: 6, milliseconds: 300)
        world.isLosing = true
        publish(&world, from: 36, milliseconds: 30)
        world.isLosing = false
        publish(&world, from: 39, milliseconds: 300)
        world.run(100)
        let numbers = Set(world.packets.map { Int64($0.timestamp) })
        #expect(numbers.isSuperset(of: 8..<69), "\(numbers.sorted())")
        #expect(world.home.counters.packetsRepeated > 0)
        #expect(world.origin.counters.packetsRepeated == 0)
    }

    @Test func `what does not come to the home is known to be missing behind it`() throws {
        var world = try LinkTriangle(rids: ["q", "f"])
        world.isCut = true
        world.pass(true, rids: ["q", "f"])
        world.far.apply(.link(.want(LinkWorld.incoming, 3)), at: world.now)
        world.run(100)
        world.home.take(withheld: 2, of: LinkTriangle.passed, from: "origin", at: world.now)
        world.run(50)
        #expect(world.far.receiving[LinkWorld.incoming]?.withheld == 2)
        world.home.take(withheld: 0, of: LinkTriangle.passed, from: "origin", at: world.now)
        world.run(50)
        #expect(world.far.receiving[LinkWorld.incoming]?.withheld == 0)
    }

    @Test func `a node that is neither named nor the home gets nothing`() throws {
        var world = try LinkTriangle()
        var configuration = LinkWorld.configuration(.video, [nil])
        configuration.id = LinkTriangle.passed
        let name = StreamName(home: "other/1", target: LinkTriangle.name.target)
        world.origin.apply(.link(.send(LinkWorld.outgoing, as: name, to: ["far"])), at: world.now)
        let order = LinkOrder.receive(configuration, LinkTriangle.name, from: "origin")
        world.home.apply(.link(order), at: world.now)
        world.home.apply(.gate(LinkTriangle.passed, open: true), at: world.now)
        world.home.apply(.link(.want(LinkTriangle.passed, 1)), at: world.now)
        world.run(100)
        publish(&world, from: 1, milliseconds: 200, isKeyframe: true)
        #expect(world.home.counters.packetsIn == 0, "a former home has no right to it")
    }
}
