import Contract
import JSON
import Nodes
import TestSupport
import Testing

/// Random calls and faults by seed; after a quiet time everything must agree.
@Suite struct ClusterSeedTests {
    private static let names = ["a", "b", "c", "d"]

    @Test(arguments: NodeWorld.seeds)
    func `one name is one room, and each call has one answer`(seed: UInt64) {
        let world = NodeWorld(Self.names, seed: seed)
        var random = SeededRandom(seed: seed &* 77)
        var asked: [String: Int64] = [:]
        for name in Self.names { world.call(name, "events.subscribe", [:], connection: 9) }
        for _ in 0..<120 {
            let name = random.pick(Self.names) ?? "a"
            if !world[name].isDead { call(world, name, &random, &asked) }
            fault(world, random.pick(Self.names) ?? "a", &random)
            world.run(milliseconds: random.pick(1...400))
        }
        world.lossChance = 0
        world.setAway(false)
        world.run(milliseconds: 25_000)
        for name in Self.names where !world[name].isDead {
            let answers = world.replies(name).count
            #expect(answers == Int(asked["\(name)/\(world[name].boot)"] ?? 0), "node \(name)")
        }
        for node in world.everybody {
            let twice = node.joins.filter { $0.value != 1 }.keys.sorted()
            #expect(twice.isEmpty, "executed twice at \(node.name)")
        }
        // The registry keeps the rooms of nodes that all have died.
        guard Self.names.contains(where: { !world[$0].isDead }) else { return }
        for number in 1...6 {
            let room = "r\(number)"
            let homes = world.homes(of: room)
            #expect(homes.count <= 1, "room \(room) at \(homes)")
            #expect(world.recordedHome(of: room) == homes.first, "room \(room)")
        }
        expectSameRooms(world)
    }

    /// Checks that each node finds the same rooms.
    private func expectSameRooms(_ world: NodeWorld) {
        let alive = Self.names.filter { !world[$0].isDead }
        for name in alive {
            for number in 1...6 {
                let room = JSON.string("r\(number)")
                world.call(name, "room.get", ["room": room], connection: UInt64(20 + number))
            }
        }
        world.run(milliseconds: 500)
        for name in alive {
            for number in 1...6 {
                let home = world.homes(of: "r\(number)").first
                let expected = home.map { "ok at \($0)" } ?? "no-such-room"
                #expect(world.replies(name, connection: UInt64(20 + number)) == [expected])
            }
        }
    }

    private func call(
        _ world: NodeWorld,
        _ name: String,
        _ random: inout SeededRandom,
        _ asked: inout [String: Int64]
    ) {
        let key = "\(name)/\(world[name].boot)"
        let id = (asked[key] ?? 0) + 1
        asked[key] = id
        let room = JSON.string("r\(random.pick(1...6))")
        switch random.pick(1...10) {
        case 1...4: world.call(name, "room.create", ["room": room], id: id)
        case 5: world.call(name, "room.close", ["room": room], id: id)
        default:
            let who = JSON.string("\(key)-\(id)".replacing("/", with: "-"))
            let params: JSON = ["room": room, "participant": who]
            world.call(name, "participant.join", params, id: id)
        }
    }

    private func fault(_ world: NodeWorld, _ name: String, _ random: inout SeededRandom) {
        switch random.pick(1...40) {
        case 1 where !world[name].isDead: world.kill(name)
        case 2, 3, 4: if world[name].isDead { world.start(name) }
        case 5 where !world[name].isDead: world.stop(name, milliseconds: random.pick(100...6_000))
        case 6: world.wipe()
        case 7: world.setAway(!world.isAway)
        case 8...11: world.breakLinks(of: NodeWorld.name(name))
        case 12: world.lossChance = random.unit() * 0.3
        default: break
        }
    }
}
