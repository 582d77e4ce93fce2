import Contract
import JSON
import Testing

@testable import Nodes

/// Events of rooms at other nodes.
@Suite struct ClusterEventTests {
    /// Creates a room at `a`, and lets somebody join.
    private func world() -> NodeWorld {
        let world = NodeWorld(["a", "b"])
        world.call("a", "room.create", ["room": "r"])
        world.call("a", "participant.join", ["room": "r", "participant": "p1"], id: 2)
        world.run(milliseconds: 100)
        return world
    }

    private func join(_ world: NodeWorld, _ who: String) {
        let params: JSON = ["room": "r", "participant": .string(who)]
        world.call("a", "participant.join", params, id: 3)
    }

    struct Subscription: CustomTestStringConvertible {
        var testDescription: String
        var params: JSON
        var events: [String]
    }

    static let subscriptions = [
        Subscription(
            testDescription: "all rooms, from now on",
            params: [:],
            events: ["participant.joined r 3"]
        ),
        Subscription(
            testDescription: "all rooms, since the first event",
            params: ["since": ["r": 1]],
            events: ["participant.joined r 2", "participant.joined r 3"]
        ),
        Subscription(
            testDescription: "this room",
            params: ["rooms": ["r"]],
            events: ["participant.joined r 3"]
        ),
        Subscription(testDescription: "another room", params: ["rooms": ["s"]], events: []),
        Subscription(
            testDescription: "other events",
            params: ["events": ["room.*"]],
            events: []
        ),
    ]

    @Test(arguments: subscriptions)
    func `a connection gets what it would get at the home`(_ row: Subscription) {
        let world = world()
        world.call("b", "events.subscribe", row.params, connection: 9)
        world.run(milliseconds: 50)
        #expect(world.replies("b", connection: 9) == ["ok at b"])
        join(world, "p2")
        world.run(milliseconds: 50)
        #expect(world.events("b", connection: 9) == row.events)
    }

    @Test func `the reply comes before the first event`() {
        let world = world()
        world.call("b", "events.subscribe", ["since": ["r": 0]], connection: 9)
        world.run(milliseconds: 50)
        let lines = world["b"].inbox[9] ?? []
        #expect(lines.map(\.isReply) == [true, false, false])
    }

    @Test func `events during a broken link come after it, once each`() {
        let world = world()
        world.call("b", "events.subscribe", [:], connection: 9)
        world.run(milliseconds: 50)
        for number in 2...31 {
            join(world, "p\(number)")
            if number % 4 == 0 { world.breakLinks(of: NodeWorld.name("b")) }
            world.run(milliseconds: 2)
        }
        world.run(milliseconds: 1_000)
        let expected = (3...32).map { "participant.joined r \($0)" }
        #expect(world.events("b", connection: 9) == expected)
    }

    /// The registry may tell `b` of the room before `a` has made it.
    @Test(arguments: 1...30 as ClosedRange<UInt64>)
    func `a room that is created after the subscription is heard from its first event`(
        seed: UInt64
    ) {
        let world = NodeWorld(["a", "b"], seed: seed)
        world.call("b", "events.subscribe", [:], connection: 8)
        world.call("b", "events.subscribe", ["rooms": ["r"]], connection: 9)
        world.run(milliseconds: 50)
        world.call("a", "room.create", ["room": "r"])
        world.call("a", "participant.join", ["room": "r", "participant": "p"], id: 2)
        world.run(milliseconds: 100)
        for connection in [8, 9] as [UInt64] {
            #expect(
                world.events("b", connection: connection)
                    == ["room.created r 1", "participant.joined r 2"]
            )
        }
    }

    @Test func `the end of a room is told once`() {
        let world = world()
        world.call("b", "events.subscribe", [:], connection: 9)
        world.run(milliseconds: 50)
        world.call("b", "room.close", ["room": "r"])
        world.run(milliseconds: 1_000)
        world.breakLinks(of: NodeWorld.name("b"))
        world.run(milliseconds: 1_000)
        #expect(world.events("b", connection: 9) == ["room.closed r 3"])
    }

    @Test func `a node that has left and comes back is heard again`() {
        let world = world()
        world.call("b", "events.subscribe", [:], connection: 9)
        world.run(milliseconds: 50)
        world.leave("a")
        world.run(milliseconds: 500)
        #expect(world.homes(of: "r") == [])
        world.start("a")
        world.run(milliseconds: 1_000)
        world.call("a", "room.create", ["room": "s"])
        world.run(milliseconds: 500)
        #expect(world.events("b", connection: 9) == ["room.closed r 3", "room.created s 1"])
    }

    @Test func `a node's record goes after those of its rooms, which end once`() {
        let world = NodeWorld(["a", "b"])
        world.call("b", "events.subscribe", [:], connection: 9)
        for number in 1...20 {
            let room = JSON.string("r\(number)")
            world.call("a", "room.create", ["room": room], id: Int64(number))
        }
        world.run(milliseconds: 500)
        let node = world["a"]
        node.written = []
        world.leave("a")
        world.run(milliseconds: 8_000)
        #expect(node.written.count == 21 && node.written.last == "members.a")
        let ends = world.events("b", connection: 9).filter { $0.hasPrefix("room.closed") }
        #expect(ends.sorted() == (1...20).map { "room.closed r\($0) 2" }.sorted())
        #expect(world["b"].cluster.counters.roomsTakenOver == 0)
    }

    /// The process ended before the registry had taken the end of its rooms.
    @Test func `the end of a room that its node told is not told again`() {
        let world = world()
        world.call("b", "events.subscribe", [:], connection: 9)
        world.run(milliseconds: 50)
        world.forgotten = [NodeWorld.name("a")]
        world.leave("a")
        world.run(milliseconds: 90_000)
        #expect(world.events("b", connection: 9) == ["room.closed r 3"])
        #expect(world.recordedHome(of: "r") == nil)
        #expect(world["b"].cluster.peers.isEmpty)
    }

    @Test func `a name that is given to another room at once is heard on`() {
        let world = world()
        let events: JSON = ["room.closed", "participant.*"]
        world.call("b", "events.subscribe", ["events": events], connection: 9)
        world.run(milliseconds: 50)
        world.call("a", "room.close", ["room": "r"], id: 4)
        world.call("a", "room.create", ["room": "r"], id: 5)
        world.run(milliseconds: 500)
        join(world, "p9")
        world.run(milliseconds: 100)
        #expect(world.replies("a").suffix(3) == ["ok at a", "ok at a", "ok at a"])
        #expect(
            world.events("b", connection: 9) == ["room.closed r 3", "participant.joined r 5"]
        )
    }

    @Test func `positions are kept for those who are subscribed alone`() {
        let world = world()
        world.call("b", "events.subscribe", [:], connection: 9)
        world.run(milliseconds: 50)
        join(world, "p2")
        world.run(milliseconds: 50)
        #expect(world["b"].cluster.subscriptions[9]?.positions.mapValues(\.seq) == ["r": 3])
        world["b"].cluster.connectionClosed(9)
        #expect(world["b"].cluster.subscriptions.isEmpty)
    }

    @Test func `a closed connection is sent nothing more`() {
        let world = world()
        world.call("b", "events.subscribe", [:], connection: 9)
        world.run(milliseconds: 50)
        world["b"].cluster.connectionClosed(9)
        world.run(milliseconds: 50)
        join(world, "p2")
        world.run(milliseconds: 50)
        #expect(world.events("b", connection: 9) == [])
        #expect(world["a"].cluster.counters.eventsSent == 0)
    }
}
