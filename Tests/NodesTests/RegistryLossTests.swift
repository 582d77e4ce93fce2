import Contract
import JSON
import Nodes
import Testing

/// Rooms and calls while the registry is away, stands still, or was wiped.
@Suite struct RegistryLossTests {
    @Test func `without the broker there are no new rooms, and all else goes on`() {
        let world = NodeWorld(["a", "b"])
        world.call("a", "room.create", ["room": "r"])
        world.run(milliseconds: 100)
        world.setAway(true)
        world.run(milliseconds: 20_000)
        world.call("b", "room.get", ["room": "r"], id: 1)
        world.call("b", "room.create", ["room": "s"], id: 2)
        world.call("b", "room.create", ["room": "r"], id: 3)
        world.call("b", "room.get", ["room": "unknown"], id: 4)
        world.run(milliseconds: 500)
        #expect(
            world.replies("b").sorted()
                == ["already-exists", "ok at a", "registry-away", "registry-away"]
        )
        #expect(world.homes(of: "r") == ["a"])
        #expect(world["b"].cluster.counters.nodesLost == 0)
        world.setAway(false)
        world.run(milliseconds: 5_000)
        #expect(world["b"].cluster.counters.nodesLost == 0)
        world.call("b", "room.create", ["room": "s"], connection: 2)
        world.run(milliseconds: 500)
        #expect(world.replies("b", connection: 2) == ["ok at b"])
    }

    @Test func `a call that waits for a silent broker is refused within the claim's time`() {
        let world = NodeWorld(["a", "b"])
        world.setAway(true)
        world.call("a", "room.create", ["room": "r"])
        world.run(milliseconds: 3_200)
        #expect(world.replies("a") == ["registry-away"])
        world.setAway(false)
        world.run(milliseconds: 6_000)
        // In any case, no record is left that no room stands for.
        #expect(world.recordedHome(of: "r") == nil)
        #expect(world.homes(of: "r") == [])
    }

    @Test func `a room that ends while the broker is away leaves its name when it is back`() {
        let world = NodeWorld(["a", "b"])
        world.call("a", "room.create", ["room": "r"])
        world.run(milliseconds: 100)
        world.setAway(true)
        world.run(milliseconds: 4_000)
        world.call("a", "room.close", ["room": "r"], id: 2)
        world.call("a", "room.create", ["room": "r"], id: 3)
        world.run(milliseconds: 1_000)
        #expect(world.replies("a") == ["ok at a", "ok at a, not durable", "registry-away"])
        world.setAway(false)
        world.run(milliseconds: 3_000)
        #expect(world.recordedHome(of: "r") == nil)
        world.call("b", "room.create", ["room": "r"])
        world.run(milliseconds: 100)
        #expect(world.replies("b") == ["ok at b"])
    }

    @Test func `a wiped bucket is filled again by the nodes`() {
        let world = NodeWorld(["a", "b"])
        world.call("a", "room.create", ["room": "r"])
        world.call("b", "room.create", ["room": "s"])
        world.run(milliseconds: 100)
        world.wipe()
        world.run(milliseconds: 3_000)
        #expect(world.recordedHome(of: "r") == "a")
        #expect(world.recordedHome(of: "s") == "b")
        #expect(world.homes(of: "r") == ["a"] && world.homes(of: "s") == ["b"])
        world.call("b", "room.get", ["room": "r"], connection: 2)
        world.run(milliseconds: 100)
        #expect(world.replies("b", connection: 2) == ["ok at a"])
    }

    /// Time for which another node has the name of a room after a wipe.
    struct Absence: Sendable, CustomTestStringConvertible {
        var revisionsGoOn: Bool
        var milliseconds: Int64
        var testDescription: String { "\(milliseconds) ms, \(revisionsGoOn ? "on" : "anew")" }
    }

    /// In the second row the removal is later than the record was.
    @Test(arguments: [
        Absence(revisionsGoOn: false, milliseconds: 400),
        Absence(revisionsGoOn: true, milliseconds: 400),
    ])
    func `a room is claimed again where others had its name and left it after a wipe`(
        _ row: Absence
    ) {
        let world = NodeWorld(["a", "b"])
        world.call("a", "room.create", ["room": "r"])
        world.run(milliseconds: 20_000)
        // a sees nothing of the new bucket until b is done.
        world.cut("a", true)
        world.wipe(revisionsGoOn: row.revisionsGoOn)
        world.run(milliseconds: 200)
        world.call("b", "room.create", ["room": "r"], id: 1)
        world.run(milliseconds: row.milliseconds)
        world.call("b", "room.close", ["room": "r"], id: 2)
        world.run(milliseconds: 400)
        #expect(world.replies("b") == ["ok at b", "ok at b"])
        world.cut("a", false)
        world.run(milliseconds: 5_000)
        #expect(world.homes(of: "r") == ["a"])
        #expect(world.recordedHome(of: "r") == "a")
        #expect(world["a"].cluster.counters.roomsLost == 0)
    }

    @Test func `a room whose record somebody removed by hand is claimed again`() {
        let world = NodeWorld(["a", "b"])
        world.call("a", "room.create", ["room": "r"])
        world.run(milliseconds: 2_000)
        world.remove("rooms.\(RoomKey.token(of: "r"))")
        world.run(milliseconds: 1_000)
        #expect(world.homes(of: "r") == ["a"])
        #expect(world.recordedHome(of: "r") == "a")
        #expect(world["a"].cluster.counters.roomsLost == 0)
    }

    /// Nodes of which `b` has taken a room from `a`, which does not know it.
    private func taken(_ names: [String]) -> NodeWorld {
        let world = NodeWorld(names)
        world.call("a", "room.create", ["room": "r"])
        world.run(milliseconds: 100)
        // a loses the registry, and stands still until its lease is over.
        world.cut("a", true)
        world.stop("a", milliseconds: 9_000)
        // Without the registry it does not hear that b has taken the room.
        world.run(milliseconds: 9_500)
        #expect(world.homes(of: "r") == ["a", "b"])
        return world
    }

    @Test func `a room that another node took and closed ends where it was`() {
        let world = taken(["a", "b"])
        world.call("b", "room.close", ["room": "r"])
        world.run(milliseconds: 500)
        #expect(world.homes(of: "r") == ["a"])
        world.cut("a", false)
        world.run(milliseconds: 5_000)
        #expect(world.homes(of: "r") == [])
        #expect(world.recordedHome(of: "r") == nil)
        #expect(world["a"].cluster.counters.roomsLost == 1)
    }

    @Test func `an old removal in a snapshot lets no home write a record that is there`() {
        let world = NodeWorld(["a", "b"])
        world.call("a", "room.create", ["room": "r"])
        world.run(milliseconds: 100)
        let key = "rooms.\(RoomKey.token(of: "r"))"
        let written = world["a"].written.count { $0 == key }
        world.deliver(to: NodeWorld.name("a")) { node in
            node.cluster.receive(.snapshot, at: world.now)
            node.cluster.receive(.entry(key: key, revision: 1, value: nil), at: world.now)
            node.cluster.receive(.complete, at: world.now)
        }
        world.run(milliseconds: 1_000)
        #expect(world["a"].written.count { $0 == key } == written)
        #expect(world.homes(of: "r") == ["a"])
        #expect(world.recordedHome(of: "r") == "a")
        // Its own news are taken again.
        world.call("b", "room.get", ["room": "r"])
        world.run(milliseconds: 100)
        #expect(world.replies("b") == ["ok at a"])
    }

    @Test func `of two homes after a wipe the lower term ends`() {
        let world = taken(["a", "b", "c"])
        world.wipe()
        world.cut("a", false)
        world.run(milliseconds: 5_000)
        #expect(world.homes(of: "r") == ["b"])
        #expect(world.recordedHome(of: "r") == "b")
        #expect(world["a"].cluster.counters.roomsLost == 1)
    }

    /// The loss of answers decides by seed what of the claim was stored.
    @Test(arguments: 1...12 as ClosedRange<UInt64>)
    func `no record is left of a claim that was given up without an answer`(seed: UInt64) {
        let world = NodeWorld(["a", "b"], seed: seed)
        world.lossChance = 1
        world.call("a", "room.create", ["room": "r"])
        world.run(milliseconds: 3_200)
        world.lossChance = 0
        world.run(milliseconds: 6_000)
        #expect(world.replies("a").count == 1)
        #expect(world.recordedHome(of: "r") == world.homes(of: "r").first)
    }

    @Test func `lost writes are written again`() {
        let world = NodeWorld(["a", "b"], seed: 7)
        world.lossChance = 0.4
        for number in 1...20 {
            let room = JSON.string("r\(number)")
            world.call("a", "room.create", ["room": room], id: Int64(number))
        }
        world.run(milliseconds: 20_000)
        world.lossChance = 0
        world.run(milliseconds: 10_000)
        #expect(world.replies("a").count == 20)
        for number in 1...20 {
            let room = "r\(number)"
            #expect(world.homes(of: room).first == world.recordedHome(of: room))
        }
    }

    @Test func `each reason for which there is no broker is told once`() {
        let world = NodeWorld(["a", "b"])
        let told = { world["a"].warnings.count { $0 == "registry away" } }
        world.setAway(true)
        world.run(milliseconds: 4_000)
        let first = told()
        for _ in 1...3 {
            for reason in ["refused", "unknown authority"] {
                world.deliver(to: NodeWorld.name("a")) {
                    $0.cluster.receive(.away(reason), at: world.now)
                }
            }
        }
        #expect(first == 1 && told() == 3)
        for number in 1...100 {
            world.deliver(to: NodeWorld.name("a")) {
                $0.cluster.receive(.away("reason \(number)"), at: world.now)
            }
        }
        #expect(told() == 8)
        world.setAway(false)
        world.run(milliseconds: 5_000)
        world.setAway(true)
        world.run(milliseconds: 4_000)
        #expect(told() == 9)
    }
}
