import Contract
import RTP
import Testing

@testable import Nodes

/// Messages between a home and its participants at other nodes.
@Suite struct PlaceStreamTests {
    private func send(
        _ text: String,
        _ from: String,
        to: String,
        _ world: NodeWorld,
        asHome: Bool
    ) {
        world[from].cluster.send(Array(text.utf8), to: NodeWorld.name(to), asHome: asHome)
        world.carryOut(world[from])
    }

    /// Two nodes, of which `a` is the home of participants at `b`.
    private func begun() -> NodeWorld {
        let world = NodeWorld(["a", "b"])
        send("x", "a", to: "b", world, asHome: true)
        world.run(milliseconds: 100)
        return world
    }

    @Test func `messages come once and in order, also when the link breaks meanwhile`() {
        let world = NodeWorld(["a", "b"])
        for number in 0..<60 {
            send("m\(number)", "a", to: "b", world, asHome: true)
            if number % 7 == 0 { world.breakLinks(of: NodeWorld.name("b")) }
            if number % 5 == 0 { send("e\(number)", "b", to: "a", world, asHome: false) }
            world.run(milliseconds: Int64(number % 9) * 20)
        }
        world.run(milliseconds: 1_000)
        #expect(world["b"].placed == (0..<60).map { "home a m\($0)" })
        let events = stride(from: 0, to: 60, by: 5).map { "guest b e\($0)" }
        // The first was sent before the session was known there.
        #expect(world["a"].placed == events || world["a"].placed == Array(events.dropFirst()))
    }

    @Test func `a node that begins anew loses its participants, and so does the home`() {
        let world = begun()
        world.kill("b")
        world.run(milliseconds: 500)
        world.start("b")
        world.run(milliseconds: 2_500)
        #expect(world["a"].placed == ["lost b as home"])
        send("y", "a", to: "b", world, asHome: true)
        world.run(milliseconds: 500)
        #expect(world["b"].placed == ["home a y"])
    }

    @Test func `the participants of a home that has died wait for another`() {
        let world = NodeWorld(["a", "b"])
        send("x", "a", to: "b", world, asHome: true)
        world.run(milliseconds: 1_700)
        let boot = world["a"].boot
        world.kill("a")
        // A lease lasts for 1 s from the last beat, up to 100 ms before.
        world.run(milliseconds: 850)
        #expect(world["b"].placed == ["home a x", "prolong a"])
        world.run(milliseconds: 3_000)
        #expect(world["b"].placed == ["home a x", "prolong a", "lost home a \(boot)"])
    }

    @Test func `a home that is out of reach but writes its record has not died`() {
        let world = begun()
        world.severed = [[NodeWorld.name("a"), NodeWorld.name("b")]]
        world.breakLinks(of: NodeWorld.name("b"))
        world.run(milliseconds: 10)
        world["b"].cluster.linkRefused(NodeWorld.name("a"))
        world.run(milliseconds: 5_000)
        #expect(world["b"].placed == ["home a x"])
        // Nor does a registry say anything that has told this node nothing at all for as long.
        world.cut("b", true)
        world.run(milliseconds: 2_000)
        #expect(world["b"].placed == ["home a x"])
    }

    @Test func `what was refused beside a link that is up is no sign of a death`() {
        let world = begun()
        world["b"].cluster.linkRefused(NodeWorld.name("a"))
        // The cable is cut, and nobody can tell what has become of the home.
        world.severed = [[NodeWorld.name("a"), NodeWorld.name("b")]]
        world.kill("a")
        world.run(milliseconds: 2_000)
        #expect(!world["b"].placed.contains("prolong a"))
    }

    @Test func `another life of a home is another home`() {
        let world = begun()
        let boot = world["a"].boot
        world.kill("a")
        world.run(milliseconds: 300)
        world.start("a")
        world.run(milliseconds: 1_500)
        let placed = world["b"].placed.filter { $0 != "prolong a" }
        #expect(placed == ["home a x", "lost home a \(boot)"])
    }

    @Test func `a process that goes on with its participants begins another session`() {
        let world = begun()
        let boot = world["a"].boot
        world.kill("a")
        world.start("a", boot: boot)
        world["a"].cluster.returning = [NodeWorld.name("b"): .init(nanoseconds: .max)]
        world.run(milliseconds: 1_500)
        // Both nodes may connect, and the second link takes the place of the first.
        world.breakLinks(of: NodeWorld.name("b"))
        world.run(milliseconds: 500)
        #expect(world["b"].placed.filter { $0 != "prolong a" } == ["home a x"])
        // Sessions are numbered by the time, so that the next process's are higher.
        world["a"].cluster.unixTime = 1_700_000_000
        send("y", "a", to: "b", world, asHome: true)
        world.run(milliseconds: 100)
        let placed = world["b"].placed.filter { $0 != "prolong a" }
        #expect(placed == ["home a x", "home back a \(boot)", "home a y"])
    }

    @Test func `a link that is away for ten seconds ends them on both sides`() {
        let world = begun()
        world.severed = [[NodeWorld.name("a"), NodeWorld.name("b")]]
        world.breakLinks(of: NodeWorld.name("b"))
        world.run(milliseconds: 9_000)
        #expect(world["a"].placed.isEmpty)
        world.run(milliseconds: 3_000)
        #expect(world["a"].placed == ["lost b as home"])
        #expect(world["b"].placed == ["home a x", "lost a as guest"])
    }

    @Test func `a process that goes on without what it knew ends them on both sides`() {
        for restarted in ["a", "b"] {
            let world = NodeWorld(["a", "b"])
            send("x", "a", to: "b", world, asHome: true)
            world.run(milliseconds: 100)
            let boot = world[restarted].boot
            world.kill(restarted)
            world.start(restarted, boot: boot)
            world.run(milliseconds: 2_500)
            if restarted == "a" {
                #expect(world["b"].placed == ["home a x", "lost a as guest"])
            } else {
                #expect(world["a"].placed == ["disowned b"])
            }
        }
    }

    @Test func `a home knows a node's facts before it hears that its session is over`() {
        let world = begun()
        let (a, b) = (NodeWorld.name("a"), NodeWorld.name("b"))
        world["a"].cluster.linkChanged(b, isUp: false, at: world.now)
        world["a"].cluster.linkChanged(b, isUp: true, at: world.now)
        _ = world["a"].cluster.takeOutput()
        let ending = PlaceMessage(
            session: 0,
            isFromHome: false,
            number: PlaceMessage.ending,
            acknowledged: 0,
            payload: []
        )
        world["a"].cluster.receive(.place(ending), from: b, at: world.now)
        #expect(world["a"].cluster.takeOutput().isEmpty)
        world["a"].cluster.receive(.describe([1]), from: b, at: world.now)
        #expect(world["a"].cluster.takeOutput() == [.described(b, [1]), .placesDisowned(b)])
        #expect(a != b)
    }

    @Test func `a session that misses a message is broken`() {
        var home = PlaceStream(session: 5, with: "boot", isHome: true)
        var guest = PlaceStream(session: 5, with: "boot", isHome: false)
        let messages = (0..<3).map { home.next([UInt8($0)]) }
        #expect(guest.receive(messages[0]) == .take)
        #expect(guest.receive(messages[0]) == .ignore)
        #expect(guest.receive(messages[2]) == .broken)
        #expect(home.unacknowledged.count == 3)
        #expect(home.receive(guest.acknowledgement()) == .ignore)
        #expect(home.unacknowledged.map(\.number) == [2, 3])
    }

    @Test func `an acknowledgement of more than was sent does no harm`() {
        var home = PlaceStream(session: 5, with: "boot", isHome: true)
        _ = home.next([])
        let message = PlaceMessage(
            session: 5,
            isFromHome: false,
            number: 0,
            acknowledged: .max,
            payload: []
        )
        #expect(home.receive(message) == .ignore)
        #expect(home.unacknowledged.isEmpty)
    }
}
