import Contract
import JSON
import Nodes
import Testing

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
