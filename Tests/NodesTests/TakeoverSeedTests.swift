import Contract
import JSON
import Nodes
import TestSupport
import Testing

/// Nodes that die, stand still, let rooms go and lose the registry at any moment, by seed.
@Suite struct TakeoverSeedTests {
    private static let names = ["a", "b", "c", "d"]
    private static let rooms = (1...5).map { "r\($0)" }

    @Test(arguments: NodeWorld.seeds + NodeWorld.found)
    func `no answered durable call is lost, and rooms have one home`(seed: UInt64) {
        let hasBroker = seed % 2 == 0
        let world = NodeWorld(Self.names, seed: seed)
        var random = SeededRandom(seed: seed &* 991)
        for name in Self.names { world.call(name, "events.subscribe", [:], connection: 9) }
        for (index, room) in Self.rooms.enumerated() {
            let name = random.pick(Self.names) ?? "a"
            world.call(name, "room.create", ["room": .string(room)], id: Int64(index))
        }
        world.run(milliseconds: 500)
        var asked: [String: (room: String, who: String)] = [:]
        for number in 1...150 {
            let name = random.pick(Self.names) ?? "a"
            if !world[name].isDead {
                let who = "p\(number)"
                let room = random.pick(Self.rooms) ?? "r1"
                asked["\(name)/\(world[name].boot)/\(number)"] = (room, who)
                let params: JSON = ["room": .string(room), "participant": .string(who)]
                world.call(name, "participant.join", params, id: Int64(number), connection: 2)
            }
            fault(world, random.pick(Self.names) ?? "a", &random, hasBroker: hasBroker)
            world.run(milliseconds: random.pick(1...300))
        }
        let durable = answered(world, asked)
        world.lossChance = 0
        world.setAway(false)
        for name in Self.names where world[name].isCut { world.cut(name, false) }
        world.run(milliseconds: 30_000)
        for room in Self.rooms {
            let homes = world.homes(of: room)
            #expect(homes.count == 1, "room \(room) at \(homes)")
            #expect(world.recordedHome(of: room) == homes.first, "room \(room)")
        }
        for (room, who) in durable where hasBroker {
            let home = world.homes(of: room).first ?? "a"
            #expect(world[home].records[room]?["p/\(who)"] != nil, "\(who) of \(room)")
        }
        for node in world.everybody {
            let twice = node.joins.filter { $0.value != 1 }.keys.sorted()
            #expect(twice.isEmpty, "executed twice at \(node.name)")
        }
        if hasBroker { expectOneStory(world) }
    }

    /// Joins that were answered as durable.
    private func answered(
        _ world: NodeWorld,
        _ asked: [String: (room: String, who: String)]
    ) -> [(room: String, who: String)] {
        var durable: [(room: String, who: String)] = []
        for node in world.everybody {
            for line in node.inbox[2] ?? [] {
                guard let json = try? JSON(parsing: Array(line.text.utf8)),
                    case .integer(let id) = json["id"], let result = json["result"],
                    result["durable"] == nil,
                    let call = asked["\(node.name)/\(node.boot)/\(id)"]
                else { continue }
                durable.append(call)
            }
        }
        return durable
    }

    /// Everybody sees the same event under each number, and none is missing.
    private func expectOneStory(_ world: NodeWorld) {
        var told: [String: String] = [:]
        for node in world.everybody {
            var last: [String: Int64] = [:]
            for line in node.inbox[9] ?? [] where !line.isReply {
                guard let json = try? JSON(parsing: Array(line.text.utf8)),
                    let params = json["params"], case .string(let room) = params["room"],
                    case .integer(let seq) = params["seq"]
                else { continue }
                let key = "\(room)/\(seq)"
                #expect(told[key, default: line.text] == line.text, "event \(key)")
                told[key] = line.text
                #expect(last[room].map { $0 + 1 == seq } ?? true, "\(node.name): \(room) \(seq)")
                last[room] = seq
            }
        }
    }

    private func fault(
        _ world: NodeWorld,
        _ name: String,
        _ random: inout SeededRandom,
        hasBroker: Bool
    ) {
        let isAlive = !world[name].isDead
        let mayDie = isAlive && Self.names.count { !world[$0].isDead } > 1
        switch random.pick(1...60) {
        case 1...2: if mayDie { world.kill(name) }
        case 3...6: if !isAlive { revive(world, name) }
        case 7...8: if isAlive { world.stop(name, milliseconds: random.pick(100...6_000)) }
        case 9...12: world.breakLinks(of: NodeWorld.name(name))
        case 13: if !hasBroker { world.setAway(!world.isAway) }
        case 14...15: if !hasBroker { world.cut(name, !world[name].isCut) }
        case 16: if !hasBroker { world.lossChance = random.unit() * 0.3 }
        case 17...19:
            let room = random.pick(Self.rooms) ?? "r1"
            world.deliver(to: NodeWorld.name(name)) { $0.cluster.handOver(room, at: world.now) }
        default: break
        }
    }

    private func revive(_ world: NodeWorld, _ name: String) {
        world.start(name)
        world.call(name, "events.subscribe", [:], connection: 9)
    }
}
