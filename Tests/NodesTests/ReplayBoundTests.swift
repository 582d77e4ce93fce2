import Contract
import JSON
import RTP
import Testing

@testable import Nodes

/// Missed events of connections at other nodes that are on their way over a link.
@Suite struct ReplayBoundTests {
    private let a = NodeWorld.name("a")
    private let b = NodeWorld.name("b")

    private func join(_ world: NodeWorld, _ who: Int) {
        let params: JSON = ["room": "r", "participant": .string("p\(who)")]
        world.call("a", "participant.join", params, id: Int64(who))
        world.run(milliseconds: 10)
    }

    /// Lets `a` learn that all has arrived at `b` that it has sent.
    private func confirm(_ world: NodeWorld) {
        world.run(milliseconds: 2)
        let stamp = UInt64(bitPattern: world.now.nanoseconds)
        world.deliver(to: a) { [b] in
            $0.cluster.receive(.pong(stamp), from: b, at: world.now)
        }
        world.run(milliseconds: 20)
    }

    @Test func `what is on the way counts until it has arrived`() {
        var replays = ReplaysOnTheWay()
        let times = ([1_000, 2_000, 3_000] as [Int64]).map { Instant(nanoseconds: $0) }
        #expect(replays.hasRoom(besides: 3))
        #expect(!replays.hasRoom(besides: 4))
        replays.add(16 << 20, at: times[0])
        replays.add(16 << 20, at: times[1])
        replays.confirm(before: times[0])
        #expect(!replays.hasRoom(besides: 0))
        replays.confirm(before: times[1])
        #expect(replays.hasRoom(besides: 1))
        #expect(!replays.hasRoom(besides: 2))
        replays.confirm(before: times[2])
        #expect(replays.hasRoom(besides: 3))
    }

    @Test func `further questions wait until that has arrived, and miss nothing`() {
        let world = NodeWorld(["a", "b"])
        world.call("a", "room.create", ["room": "r"])
        world.run(milliseconds: 100)
        for who in 1...5 { join(world, who) }
        world.run(milliseconds: 100)
        // The six events of one answer are more, and two answers would be.
        world["a"].cluster.peers[b]?.replays.byteLimit = 100
        world["a"].cluster.peers[b]?.replays.answerBytes = 60
        let connections: [UInt64] = Array(11...16)
        for connection in connections {
            world.call("b", "events.subscribe", ["since": ["r": 0]], connection: connection)
        }
        world.run(milliseconds: 50)
        func answered() -> Int {
            connections.count { !world.replies("b", connection: $0).isEmpty }
        }
        #expect(answered() == 1)
        join(world, 6)
        for count in 2...6 {
            confirm(world)
            #expect(answered() == count)
        }
        let expected = ["room.created r 1"] + (2...7).map { "participant.joined r \($0)" }
        for connection in connections {
            #expect(world.events("b", connection: connection) == expected)
        }
    }

    @Test func `a link that breaks begins with nothing on its way`() {
        let world = NodeWorld(["a", "b"])
        world.call("a", "room.create", ["room": "r"])
        world.run(milliseconds: 100)
        world["a"].cluster.peers[b]?.replays.add(1 << 30, at: world.now)
        world.call("b", "events.subscribe", ["since": ["r": 0]], connection: 11)
        world.run(milliseconds: 50)
        #expect(world.events("b", connection: 11) == [])
        world.breakLinks(of: b)
        world.run(milliseconds: 1_000)
        #expect(world.events("b", connection: 11) == ["room.created r 1"])
    }

    @Test(arguments: [(10, 1), (1 << 20, 0)])
    func `the reply comes before all nodes have answered if much waits for it`(
        limit: Int,
        replies: Int
    ) throws {
        let world = NodeWorld(["a", "b", "c"])
        world.call("a", "room.create", ["room": "r"])
        world.call("c", "room.create", ["room": "s"])
        world.run(milliseconds: 100)
        try #require(world.homes(of: "r") == ["a"] && world.homes(of: "s") == ["c"])
        world["b"].cluster.earlyLimit = limit
        world.stop("c", milliseconds: 1_000)
        world.call("b", "events.subscribe", ["since": ["r": 0, "s": 0]], connection: 11)
        world.run(milliseconds: 50)
        #expect(world.replies("b", connection: 11).count == replies)
        world.run(milliseconds: 2_000)
        let lines = world["b"].inbox[11] ?? []
        #expect(lines.map(\.isReply) == [true, false, false])
        let events = world.events("b", connection: 11).sorted()
        #expect(events == ["room.created r 1", "room.created s 1"])
    }
}
