import Contract
import JSON
import RTP
import Testing

@testable import Nodes

/// Rooms that their homes let go while they run, in virtual time.
@Suite struct RoomHandoverTests {
    /// A room at `a` with three people, whose events all nodes hear.
    private func room(_ names: [String] = ["a", "b", "c"], seed: UInt64 = 1) -> NodeWorld {
        let world = NodeWorld(names, seed: seed)
        world.call("a", "room.create", ["room": "r"])
        for name in names { world.call(name, "events.subscribe", [:], connection: 9) }
        world.run(milliseconds: 100)
        join(world, "a", 1...3)
        world.run(milliseconds: 200)
        for name in names { world[name].inbox[1] = nil }
        return world
    }

    private func join(_ world: NodeWorld, _ node: String, _ numbers: ClosedRange<Int>) {
        for number in numbers {
            let params: JSON = ["room": "r", "participant": .string("p\(number)")]
            world.call(node, "participant.join", params, id: Int64(100 + number), connection: 5)
        }
    }

    private func handOver(_ world: NodeWorld, isForced: Bool = false) {
        world.deliver(to: NodeWorld.name("a")) {
            $0.cluster.handOver("r", isForced: isForced, at: world.now)
        }
    }

    private func people(_ world: NodeWorld, _ node: String) -> [String] {
        (world[node].records["r"]?.keys ?? [:].keys).filter { $0.hasPrefix("p/") }.sorted()
    }

    /// Everybody has heard the same, each event once.
    private func expectOneStory(_ world: NodeWorld, _ count: Int) {
        for node in world.nodes.values where !node.isDead {
            let seqs = world.events(node.name.rawValue, connection: 9)
                .compactMap { $0.split(separator: " ").last.flatMap { Int($0) } }
            #expect(seqs == Array((seqs.first ?? 0)...count), "\(node.name)")
        }
    }

    @Test func `a room goes to another node, and calls wait meanwhile`() throws {
        let world = room()
        join(world, "b", 4...4)
        handOver(world)
        join(world, "a", 5...5)
        for name in ["a", "b", "c"] { world.call(name, "room.get", ["room": "r"]) }
        world.run(milliseconds: 1_000)
        let home = try #require(world.homes(of: "r").first)
        #expect(world.homes(of: "r").count == 1 && home != "a")
        #expect(world.recordedHome(of: "r") == home && world.recordedTerm(of: "r") == 2)
        for name in ["a", "b", "c"] {
            let reply = try #require(world.replies(name).first)
            #expect(world.replies(name).count == 1 && ["ok at a", "ok at \(home)"].contains(reply))
        }
        #expect(people(world, home) == ["p/p1", "p/p2", "p/p3", "p/p4", "p/p5"])
        for name in ["a", "b"] {
            #expect(world.replies(name, connection: 5).allSatisfy { $0.hasPrefix("ok at") })
        }
        #expect(world["a"].placed.contains("let go r") && world["a"].warnings.isEmpty)
        #expect(world["a"].cluster.counters.roomsLetGo == 1)
        #expect(world["a"].cluster.peers[NodeWorld.name("a")] == nil)
        join(world, "a", 6...6)
        world.run(milliseconds: 200)
        #expect(people(world, home).last == "p/p6")
        // Creation, six joins, and what a takeover tells.
        expectOneStory(world, 8)
    }

    @Test func `a room that nobody takes comes back`() {
        let world = room(["a", "b"])
        var load = NodeLoad()
        load.places = 0
        handOver(world)
        world["b"].cluster.note(load, at: world.now)
        world.run(milliseconds: 500)
        world.call("b", "room.get", ["room": "r"])
        world.run(milliseconds: 1_800)
        #expect(world.homes(of: "r") == [])
        world.run(milliseconds: 700)
        #expect(world.homes(of: "r") == ["a"])
        #expect(world.replies("b") == ["ok at a"])
        #expect(people(world, "a") == ["p/p1", "p/p2", "p/p3"])
        // It stays, though there would be a place now.
        load.places = 1
        world["b"].cluster.note(load, at: world.now)
        world.run(milliseconds: 1_000)
        handOver(world)
        world.run(milliseconds: 1_000)
        #expect(world.homes(of: "r") == ["a"])
        join(world, "b", 4...4)
        world.run(milliseconds: 500)
        expectOneStory(world, 6)
        // The drain's deadline leaves it no choice.
        handOver(world, isForced: true)
        world.run(milliseconds: 1_500)
        #expect(world.homes(of: "r") == ["b"])
        expectOneStory(world, 7)
    }

    @Test(arguments: [true, false])
    func `a room stays where no other node has a place for it`(isFull: Bool) {
        let world = room(["a", "b"])
        var load = NodeLoad()
        if isFull { load.places = 0 } else { load.state = .draining }
        world["b"].cluster.note(load, at: world.now)
        world.run(milliseconds: 1_000)
        handOver(world)
        world.run(milliseconds: 3_000)
        #expect(world["a"].cluster.counters.roomsLetGo == 0)
        #expect(world.homes(of: "r") == ["a"])
    }

    @Test func `without the registry a room stays`() {
        let world = room()
        world.setAway(true)
        handOver(world)
        world.run(milliseconds: 300)
        world.call("a", "room.get", ["room": "r"], id: 7)
        world.run(milliseconds: 4_000)
        #expect(world.homes(of: "r") == ["a"])
        #expect(world.replies("a") == ["ok at a"])
        handOver(world)
        world.run(milliseconds: 100)
        world.setAway(false)
        world.run(milliseconds: 3_000)
        #expect(world.homes(of: "r") == ["a"])
        #expect(world.recordedHome(of: "r") == "a")
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `a mark of which the answer is lost ends nothing`(seed: UInt64) {
        let world = NodeWorld(["a", "b"], seed: seed)
        world.call("a", "room.create", ["room": "r"])
        for name in ["a", "b"] { world.call(name, "events.subscribe", [:], connection: 9) }
        world.run(milliseconds: 300)
        world.lossChance = 0.7
        handOver(world)
        world.run(milliseconds: 60)
        world.call("a", "room.get", ["room": "r"], id: 7)
        world.run(milliseconds: 3_000)
        world.lossChance = 0
        world.run(milliseconds: 8_000)
        let homes = world.homes(of: "r")
        #expect(homes.count == 1 && world.recordedHome(of: "r") == homes.first)
        #expect(world.replies("a").count == 2)
        join(world, "b", 1...1)
        world.run(milliseconds: 500)
        #expect(people(world, homes.first ?? "a") == ["p/p1"])
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `each event comes once though the mark is not answered for long`(seed: UInt64) {
        let world = room(["a", "b"], seed: seed)
        // The broker may have taken it, and the next home is known long before the answer.
        world.lossChance = 1
        handOver(world)
        world.run(milliseconds: 5)
        world.lossChance = 0
        world.run(milliseconds: 1_200)
        world.call("a", "events.subscribe", ["since": ["r": 2]], connection: 7)
        world.run(milliseconds: 5_000)
        join(world, "b", 4...4)
        world.run(milliseconds: 500)
        let homes = world.homes(of: "r")
        #expect(homes.count == 1 && world.recordedHome(of: "r") == homes.first)
        // Creation, four joins, and what a takeover tells.
        expectOneStory(world, 6)
        let seqs = world.events("a", connection: 7).compactMap { $0.split(separator: " ").last }
        #expect(seqs == ["3", "4", "5", "6"])
    }

    /// At once the home still answers; then nobody does, until another node has the room.
    @Test(arguments: ["a", "b", "c"], [0, 50, 104, 112, 400] as [Int64])
    func `missed events are told whenever they are asked for`(node: String, wait: Int64) {
        let world = room()
        handOver(world)
        world.run(milliseconds: wait)
        world.call(node, "events.subscribe", ["since": ["r": 2]], connection: 7)
        world.run(milliseconds: 4_000)
        join(world, "b", 4...4)
        world.run(milliseconds: 500)
        let seqs = world.events(node, connection: 7).compactMap { $0.split(separator: " ").last }
        #expect(seqs == ["3", "4", "5", "6"])
        #expect(world.replies(node, connection: 7).count == 1)
        expectOneStory(world, 6)
    }

    /// A room that stays at `a`, and one that `a` has let go and takes back after 2.5 s, as `b` has
    /// no place for it; `b` hears of that late.
    private func leftRoom(lag: Int64 = 3_000) -> NodeWorld {
        let world = room(["a", "b"])
        world.call("a", "room.create", ["room": "s"], id: 2)
        world.run(milliseconds: 200)
        var load = NodeLoad()
        load.places = 0
        world.lag[NodeWorld.name("b")] = lag
        handOver(world)
        world["b"].cluster.note(load, at: world.now)
        world.run(milliseconds: 100)
        return world
    }

    private func joinOther(_ world: NodeWorld) {
        world.call("a", "participant.join", ["room": "s", "participant": "q"], id: 3)
        world.run(milliseconds: 50)
    }

    @Test func `a question that waits for a room keeps nobody from hearing of the others`() {
        let world = leftRoom()
        world.call("b", "events.subscribe", ["since": ["r": 2]], connection: 7)
        world.run(milliseconds: 2_150)
        #expect(world.replies("b", connection: 7) == ["ok at b"])
        joinOther(world)
        #expect(world.homes(of: "r") == [])
        #expect(world.events("b", connection: 7) == ["participant.joined s 2"])
        world.run(milliseconds: 1_500)
        let events = (3...4).map { "participant.joined r \($0)" } + ["participant.moveWanted r 5"]
        #expect(world.events("b", connection: 7).dropFirst() == ArraySlice(events))
    }

    @Test func `of several questions that wait about the same events one owes positions`() throws {
        let world = leftRoom()
        let (a, b) = (NodeWorld.name("a"), NodeWorld.name("b"))
        world.call("b", "events.subscribe", ["since": ["r": 2]], connection: 7)
        world.run(milliseconds: 50)
        let boot = try #require(world["b"].cluster.members[a]).record.boot
        for _ in 0..<2 {
            _ = world["b"].cluster.ask(a, for: [RoomID("r"): 2], 7, boot: boot, at: world.now)
        }
        world.run(milliseconds: 50)
        let guests = world["a"].cluster.guests.values
        #expect(guests.count == 3 && guests.filter(\.hasWaited).count == 1)
        #expect(world["a"].cluster.peers[b]?.interests[7] != nil)
        world.run(milliseconds: 3_500)
        #expect(world["a"].cluster.guests.isEmpty)
    }

    @Test func `a question that waits for a room does not replace a newer one`() throws {
        let world = leftRoom()
        let (a, b) = (NodeWorld.name("a"), NodeWorld.name("b"))
        world.call("b", "events.subscribe", ["since": ["r": 2]], connection: 7)
        world.run(milliseconds: 50)
        #expect(world["a"].cluster.guests.count == 1)
        world.call("b", "events.subscribe", ["rooms": ["s"]], id: 2, connection: 7)
        world.run(milliseconds: 3_500)
        #expect(world.homes(of: "r") == ["a"])
        join(world, "a", 4...4)
        joinOther(world)
        #expect(world.replies("b", connection: 7) == ["ok at b", "ok at b"])
        #expect(world.events("b", connection: 7) == ["participant.joined s 2"])
        let interest = try #require(world["a"].cluster.peers[b]?.interests[7])
        #expect(interest.rooms == ["s"])
        #expect(world["a"].cluster.guests.isEmpty)
        #expect(world["b"].cluster.peers[a]?.calls.isEmpty == true)
    }

    @Test func `a subscription that waits for a room is answered before a newer one`() {
        let world = leftRoom(lag: 0)
        world.call("b", "events.subscribe", ["since": ["r": 2]], connection: 7)
        world.run(milliseconds: 50)
        #expect(world.replies("b", connection: 7) == [])
        world.call("b", "events.subscribe", ["rooms": ["s"]], id: 2, connection: 7)
        world.run(milliseconds: 100)
        #expect(world.replies("b", connection: 7) == ["ok at b", "ok at b"])
        world.run(milliseconds: 3_500)
        #expect(world.homes(of: "r") == ["a"])
        joinOther(world)
        #expect(world.events("b", connection: 7) == ["participant.joined s 2"])
    }

    /// A refusal would count as an answer, and what was missed would never come.
    @Test func `a question waits for a room however many calls do`() {
        let world = leftRoom()
        let request = IPCRequest(id: .integer(1), method: "room.get", params: ["room": "r"])
        let call = PendingCall(request: request, line: request.encoded(), origin: .here(1))
        let until = world.now.advanced(milliseconds: 10_000)
        let waiting = Array(repeating: (call: call, until: until), count: NodeList.waitingLimit)
        world["a"].cluster.orphans["r"]?.waiting = waiting
        // A connection with some of the events alone sees no gap.
        let params: JSON = ["since": ["r": 2], "events": ["participant.*"]]
        world.call("b", "events.subscribe", params, connection: 7)
        world.call("a", "room.get", ["room": "r"], id: 2, connection: 6)
        world.run(milliseconds: 50)
        #expect(world.replies("a", connection: 6) == ["limit-reached"])
        world["a"].cluster.orphans["r"]?.waiting.removeAll { !$0.call.asksForPeer }
        world.run(milliseconds: 3_650)
        #expect(world.homes(of: "r") == ["a"])
        #expect(world.replies("b", connection: 7) == ["ok at b"])
        let events = (3...4).map { "participant.joined r \($0)" } + ["participant.moveWanted r 5"]
        #expect(world.events("b", connection: 7) == events)
        #expect(world["a"].cluster.guests.isEmpty)
    }

    @Test func `a question that waits for a room goes with its connection`() {
        let world = leftRoom()
        let b = NodeWorld.name("b")
        world.call("b", "events.subscribe", ["since": ["r": 2]], connection: 7)
        world.run(milliseconds: 50)
        world.deliver(to: b) { $0.cluster.connectionClosed(7) }
        world.run(milliseconds: 50)
        #expect(world["a"].cluster.guests.isEmpty)
        world.run(milliseconds: 3_500)
        #expect(world.homes(of: "r") == ["a"])
        #expect(world["a"].cluster.peers[b]?.interests[7] == nil)
    }

    @Test func `a connection that is closed as it waits for a room is forgotten`() {
        let world = room()
        handOver(world)
        world.run(milliseconds: 50)
        world.call("b", "events.subscribe", ["since": ["r": 2]], connection: 7)
        #expect(world["b"].cluster.subscriptions[7] != nil)
        world.deliver(to: NodeWorld.name("b")) { $0.cluster.connectionClosed(7) }
        world.run(milliseconds: 4_000)
        #expect(world["b"].cluster.subscriptions[7] == nil)
        #expect(world["b"].inbox[7] == nil)
    }

    @Test(arguments: 1...10 as ClosedRange<UInt64>)
    func `calls do not wait for a registry that is lost at the mark`(seed: UInt64) {
        let world = room(["a", "b"], seed: seed)
        world.lossChance = 1
        handOver(world)
        world.run(milliseconds: 8)
        world.lossChance = 0
        world.setAway(true)
        world.call("a", "room.get", ["room": "r"])
        world.run(milliseconds: 11_000)
        // The home goes on with the room unless it has heard of the mark.
        let isLeft = world["a"].cluster.counters.roomsLetGo == 1
        #expect(world.replies("a") == [isLeft ? "registry-away" : "ok at a"])
        world.setAway(false)
        world.run(milliseconds: 8_000)
        let homes = world.homes(of: "r")
        #expect(homes.count == 1 && world.recordedHome(of: "r") == homes.first)
        #expect(people(world, homes.first ?? "a") == ["p/p1", "p/p2", "p/p3"])
    }

    @Test func `a home that dies as it lets a room go loses nothing`() {
        for wait in stride(from: Int64(0), through: 40, by: 5) {
            let world = room()
            handOver(world)
            world.run(milliseconds: wait)
            world.kill("a")
            world.run(milliseconds: 6_000)
            let homes = world.homes(of: "r")
            #expect(homes.count == 1, "after \(wait) ms")
            #expect(people(world, homes.first ?? "b") == ["p/p1", "p/p2", "p/p3"], "\(wait) ms")
        }
    }

    @Test func `a home that began again with its calls repeats no event when it is emptied`() {
        let world = room()
        world.restart("a")
        world.run(milliseconds: 2_000)
        world.call("a", "events.subscribe", ["since": ["r": 3]], connection: 9)
        world.run(milliseconds: 200)
        // It has told none of the room's events since then.
        handOver(world)
        world.run(milliseconds: 2_000)
        #expect(world.homes(of: "r").count == 1 && world.homes(of: "r") != ["a"])
        #expect(world.events("a", connection: 9).first == "participant.joined r 4")
        // Creation, three joins, and what a takeover tells.
        expectOneStory(world, 5)
    }

    @Test func `a room that has just been told to go cannot be told again`() {
        let world = room()
        handOver(world)
        handOver(world)
        world.run(milliseconds: 1_500)
        handOver(world)
        world.run(milliseconds: 1_500)
        #expect(world["a"].cluster.counters.roomsLetGo == 1)
        #expect(world.recordedTerm(of: "r") == 2)
    }
}
