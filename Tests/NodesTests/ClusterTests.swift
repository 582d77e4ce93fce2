import Contract
import JSON
import Nodes
import Testing

/// Rooms' names, calls and events among nodes, in virtual time.
@Suite struct ClusterTests {
    private func world(_ names: String...) -> NodeWorld { NodeWorld(names) }

    @Test func `a room is created at one node and joined at each`() {
        let world = world("a", "b", "c")
        world.call("a", "room.create", ["room": "r"])
        world.run(milliseconds: 50)
        for node in ["a", "b", "c"] {
            let who = JSON.string("at-\(node)")
            world.call(node, "participant.join", ["room": "r", "participant": who], connection: 2)
        }
        world.run(milliseconds: 50)
        #expect(world.replies("a") == ["ok at a"])
        for node in ["a", "b", "c"] {
            #expect(world.replies(node, connection: 2) == ["ok at a"])
        }
        #expect(world.homes(of: "r") == ["a"])
        #expect(world.recordedHome(of: "r") == "a")
    }

    @Test func `errors come from the home as if the call had been made there`() {
        let world = world("a", "b")
        world.call("a", "room.create", ["room": "r"])
        world.run(milliseconds: 50)
        world.call("b", "room.create", ["room": "r"])
        world.call("b", "room.get", ["room": "other"], id: 2)
        world.run(milliseconds: 50)
        #expect(world.replies("b").sorted() == ["already-exists", "no-such-room"])
    }

    /// The broker reads before the claim and answers after it, for some of the seeds.
    @Test(arguments: 1...40 as ClosedRange<UInt64>)
    func `an old answer that there is no record does not hide a new one`(seed: UInt64) {
        let world = NodeWorld(["a"], seed: seed)
        world.call("a", "room.get", ["room": "r"], id: 1)
        world.call("a", "room.create", ["room": "r"], id: 2)
        world.run(milliseconds: 100)
        #expect(world.recordedHome(of: "r") == "a")
        world.call("a", "room.close", ["room": "r"], id: 3)
        world.run(milliseconds: 1_000)
        #expect(world.homes(of: "r") == [])
        #expect(world.recordedHome(of: "r") == nil)
    }

    @Test(arguments: 1...40 as ClosedRange<UInt64>)
    func `of nodes that claim a name at once one gets it`(seed: UInt64) {
        let world = NodeWorld(["a", "b", "c"], seed: seed)
        for node in ["a", "b", "c"] { world.call(node, "room.create", ["room": "r"]) }
        world.run(milliseconds: 500)
        let replies = ["a", "b", "c"].flatMap { world.replies($0) }
        #expect(replies.count == 3)
        #expect(replies.count { $0.hasPrefix("ok") } == 1)
        #expect(replies.count { $0 == "already-exists" } == 2)
        #expect(world.homes(of: "r").count == 1)
        #expect(world.homes(of: "r").first == world.recordedHome(of: "r"))
    }

    @Test func `calls made before the name is settled wait for it, in order`() {
        let world = world("a", "b")
        world.call("a", "room.create", ["room": "r"], id: 1)
        world.call("a", "participant.join", ["room": "r", "participant": "x"], id: 2)
        world.call("a", "room.close", ["room": "r"], id: 3)
        world.call("a", "room.create", ["room": "r"], id: 4)
        world.run(milliseconds: 200)
        #expect(world.replies("a") == ["ok at a", "ok at a", "ok at a", "ok at a"])
        #expect(world.homes(of: "r") == ["a"])
        #expect(world.recordedHome(of: "r") == "a")
    }

    @Test func `a room that was closed leaves its name`() {
        let world = world("a", "b")
        world.call("a", "room.create", ["room": "r"])
        world.run(milliseconds: 50)
        world.call("b", "room.close", ["room": "r"])
        world.run(milliseconds: 50)
        #expect(world.recordedHome(of: "r") == nil)
        world.call("b", "room.create", ["room": "r"], connection: 2)
        world.run(milliseconds: 50)
        #expect(world.replies("b", connection: 2) == ["ok at b"])
        #expect(world.homes(of: "r") == ["b"])
    }

    @Test func `a room whose node does not know it any more is looked for`() {
        let world = world("a", "b")
        // The watch of b lags: it has not heard of the room yet.
        world.call("a", "room.create", ["room": "r"])
        world.run(milliseconds: 4)
        world.call("b", "room.get", ["room": "r"])
        world.run(milliseconds: 50)
        #expect(world.replies("b") == ["ok at a"])
    }

    @Test func `a busy node gives new rooms to one with less to do`() {
        let world = world("a", "b")
        var load = NodeLoad()
        load.load = 0.5
        world["a"].cluster.note(load, at: world.now)
        world.run(milliseconds: 1_200)
        world.call("a", "room.create", ["room": "r"])
        world.run(milliseconds: 100)
        #expect(world.replies("a") == ["ok at b"])
        load.load = 0
        load.state = .draining
        world["b"].cluster.note(load, at: world.now)
        world.run(milliseconds: 100)
        world.call("b", "room.create", ["room": "s"])
        world.run(milliseconds: 100)
        #expect(world.replies("b") == ["ok at a"])
    }

    @Test func `a broken link repeats calls, and they are executed once`() {
        let world = world("a", "b")
        world.call("a", "room.create", ["room": "r"])
        world.run(milliseconds: 50)
        for number in 1...40 as ClosedRange<Int64> {
            let who = JSON.string("p\(number)")
            world.call("b", "participant.join", ["room": "r", "participant": who], id: number)
            if number % 5 == 0 { world.breakLinks(of: NodeWorld.name("b")) }
            world.run(milliseconds: 1)
        }
        world.run(milliseconds: 500)
        #expect(world.replies("b").count == 40)
        #expect(world.replies("b").allSatisfy { $0 == "ok at a" })
        #expect(world["a"].joins.count == 40)
        #expect(world["a"].joins.values.allSatisfy { $0 == 1 })
        #expect(world["b"].cluster.counters.callsRepeated > 0)
    }

    @Test func `a node that kept its rooms over a restart keeps their names`() {
        let world = world("a", "b")
        world.call("a", "room.create", ["room": "r"])
        world.run(milliseconds: 100)
        let boot = world["a"].boot
        world.kill("a")
        world.start("a", boot: boot, rooms: ["r": 1])
        world.run(milliseconds: 2_000)
        #expect(world.homes(of: "r") == ["a"])
        #expect(world.recordedHome(of: "r") == "a")
        world.call("b", "room.get", ["room": "r"])
        world.run(milliseconds: 500)
        #expect(world.replies("b") == ["ok at a"])
    }
}
