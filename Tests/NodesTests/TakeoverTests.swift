import Contract
import JSON
import Testing

@testable import Nodes

/// Rooms that go on at another node when theirs is lost, in virtual time.
@Suite struct TakeoverTests {
    private func joins(_ world: NodeWorld, _ node: String, _ count: Int, room: String = "r") {
        for number in 1...count {
            let who = JSON.string("p\(number)")
            let params: JSON = ["room": .string(room), "participant": who]
            world.call(node, "participant.join", params, id: Int64(100 + number))
        }
        world.run(milliseconds: 200)
    }

    @Test func `a room outlives its node, with its people and the numbers of its events`() {
        let world = NodeWorld(["a", "b", "c"])
        world.call("a", "room.create", ["room": "r"])
        for node in ["b", "c"] { world.call(node, "events.subscribe", [:], connection: 9) }
        world.run(milliseconds: 100)
        joins(world, "a", 3)
        world.kill("a")
        world.run(milliseconds: 500)
        world.call("b", "room.get", ["room": "r"], id: 1)
        world.call("c", "room.create", ["room": "r"], id: 2)
        world.run(milliseconds: 3_500)
        let home = world.homes(of: "r")
        #expect(home.count == 1 && home != ["a"])
        #expect(world.replies("b") == ["ok at \(home.first ?? "none")"])
        #expect(world.replies("c") == ["already-exists"])
        #expect(world.recordedHome(of: "r") == home.first)
        #expect(world.recordedTerm(of: "r") == 2)
        let people = world[home.first ?? "b"].records["r"]?.keys.filter { $0.hasPrefix("p/") }
        #expect(people?.sorted() == ["p/p1", "p/p2", "p/p3"])
        let expected =
            ["room.created r 1"] + (2...4).map { "participant.joined r \($0)" }
            + ["participant.moveWanted r 5"]
        for node in ["b", "c"] { #expect(world.events(node, connection: 9) == expected) }
        #expect(world.nodes.values.reduce(0) { $0 + $1.cluster.counters.roomsTakenOver } == 1)
    }

    @Test func `a room that has just been created outlives its node`() {
        let world = NodeWorld(["a", "b"])
        world.call("a", "room.create", ["room": "r"])
        world.run(milliseconds: 100)
        world.kill("a")
        world.run(milliseconds: 4_000)
        #expect(world.homes(of: "r") == ["b"])
    }

    @Test(arguments: [20, 22, 25, 40] as [Int64])
    func `a node that begins again may be asked at once for its former rooms`(wait: Int64) {
        let world = NodeWorld(["a", "b"])
        world.call("a", "room.create", ["room": "r"])
        world.run(milliseconds: 100)
        world.kill("a")
        world.start("a")
        world.run(milliseconds: wait)
        world.call("a", "room.create", ["room": "r"])
        world.run(milliseconds: 3_000)
        #expect(world.replies("a") == ["already-exists"])
        #expect(world.homes(of: "r").count == 1)
    }

    @Test func `a call that was sent to a lost node is executed once`() throws {
        let world = NodeWorld(["a", "b"])
        world.call("a", "room.create", ["room": "r"])
        world.run(milliseconds: 100)
        world.call("b", "room.get", ["room": "r"], id: 1)
        world.run(milliseconds: 100)
        // It has taken effect, and the reply is lost.
        try loseHome(world)
        // These have not.
        world.call("b", "participant.join", ["room": "r", "participant": "y"], id: 3)
        world.call("b", "room.get", ["room": "r"], id: 4)
        world.run(milliseconds: 8_000)
        #expect(world.replies("b") == ["ok at a", "outcome-unknown", "ok at b", "ok at b"])
        #expect(world["b"].joins == ["r/y": 1])
        #expect(world["b"].cluster.counters.outcomesUnknown == 1)
        let present = world["b"].records["r"]?.keys.filter { $0.hasPrefix("p/") }
        #expect(present?.sorted() == ["p/x", "p/y"])
    }

    /// A home that loses its room while the joins of `x` and `y` are not saved.
    private func unsaved() -> NodeWorld {
        let world = NodeWorld(["a", "b"])
        world.call("a", "room.create", ["room": "r"])
        world.run(milliseconds: 100)
        // The first write gets no answer, and what follows is in none.
        world.cut("a", true)
        for (id, who) in [(2, "x"), (3, "y")] as [(Int64, JSON)] {
            world.call("a", "participant.join", ["room": "r", "participant": who], id: id)
        }
        world.stop("a", milliseconds: 5_000)
        world.after(milliseconds: 2_500) { world.cut("a", false) }
        return world
    }

    @Test func `a call that was given up unsaved may be executed again where it was`() {
        let world = unsaved()
        world.run(milliseconds: 4_900)
        #expect(world.homes(of: "r") == ["a", "b"])
        world.kill("b")
        world.run(milliseconds: 15_000)
        #expect(world.homes(of: "r") == ["a"])
        #expect(world["a"].cluster.counters.roomsLost == 1)
        #expect(world.replies("a") == ["ok at a", "outcome-unknown", "ok at a, not durable"])
        #expect(world["a"].joins == ["r/x": 1, "r/y": 1])
        #expect(world["a"].records["r"]?.keys.filter { $0.hasPrefix("p/") } == ["p/y"])
    }

    @Test func `a call that was executed twice is seen, though its room was given up unsaved`() {
        let world = unsaved()
        world["a"].joins["r/y"] = 2
        world.run(milliseconds: 8_000)
        #expect(world.homes(of: "r") == ["b"])
        // The first one has its answer, so it may not be executed again either.
        #expect(world["a"].joins == ["r/x": 1, "r/y": 2])
    }

    @Test func `of a call that may have taken effect nothing else is said`() throws {
        let world = NodeWorld(["a", "b"])
        world.call("a", "room.create", ["room": "r"])
        world.run(milliseconds: 100)
        world.call("b", "room.get", ["room": "r"], id: 1)
        world.run(milliseconds: 100)
        try loseHome(world)
        world.run(milliseconds: 3_500)
        // The registry is away when the room should be taken over.
        world.setAway(true)
        world.run(milliseconds: 15_000)
        #expect(world.replies("b") == ["ok at a", "outcome-unknown"])
    }

    @Test func `nor if the new home cannot be reached`() throws {
        let world = NodeWorld(["a", "b", "c"])
        world.call("a", "room.create", ["room": "r"])
        world.run(milliseconds: 100)
        limit(world, "b", to: 0)
        try loseHome(world)
        let (b, c) = (NodeWorld.name("b"), NodeWorld.name("c"))
        world.severed = [[b, c]]
        world.breakLinks(of: b)
        world.run(milliseconds: 20_000)
        #expect(world.homes(of: "r").contains("c"))
        #expect(world.replies("b") == ["outcome-unknown"])
    }

    @Test func `nor if the room ended with its home`() throws {
        let world = NodeWorld(["a", "b"])
        world.call("a", "room.create", ["room": "r"])
        world.run(milliseconds: 100)
        try loseHome(world)
        world.journals = [:]
        world.run(milliseconds: 12_000)
        #expect(world.replies("b") == ["outcome-unknown"])
    }

    @Test func `a node that stood still asks whose its rooms are before it answers`() {
        let world = NodeWorld(["a", "b"])
        world.call("a", "room.create", ["room": "r"])
        world.run(milliseconds: 100)
        // News of the registry come long after the node is awake.
        world.lag[NodeWorld.name("a")] = 10_000
        world.stop("a", milliseconds: 8_000)
        world.run(milliseconds: 7_000)
        #expect(world.recordedHome(of: "r") == "b")
        world.call("a", "room.get", ["room": "r"], id: 8)
        world.run(milliseconds: 2_500)
        #expect(world.replies("a").last == "ok at b")
    }

    @Test func `what the lost home writes while its journal is read counts too`() throws {
        let world = NodeWorld(["a", "b"])
        world.call("a", "room.create", ["room": "r"])
        world.run(milliseconds: 100)
        joins(world, "a", 1)
        let lost = world["a"]
        world.kill("a")
        while world["b"].cluster.holds["r"]?.contents == nil { world.run(milliseconds: 1) }
        var late = JournalEntry(
            kind: .changes,
            isLast: true,
            group: 1_000,
            term: 1,
            clock: JournalClock(instant: world.now, unixTime: 0),
            home: lost.name,
            boot: lost.boot
        )
        late.records = [JournalRecord(key: "p/late", value: [1])]
        let last = try #require(world.journals["r"]?.last?.sequence)
        // Before the new home's first write.
        let outcome = world.append("r", late.encoded, last)
        #expect(outcome != .conflict)
        world.run(milliseconds: 1_000)
        let people = world["b"].records["r"]?.keys.filter { $0.hasPrefix("p/") }
        #expect(people?.sorted() == ["p/late", "p/p1"])
    }

    @Test(arguments: [0, 2])
    func `a node takes no more of a lost node's rooms than it has places for`(places: Int) {
        let world = NodeWorld(["a", "b", "c"])
        for number in 1...10 {
            world.call("a", "room.create", ["room": .string("r\(number)")], id: Int64(number))
        }
        world.run(milliseconds: 500)
        limit(world, "b", to: places)
        world.kill("a")
        world.run(milliseconds: 8_000)
        let homes = (1...10).flatMap { world.homes(of: "r\($0)") }
        #expect(homes.count == 10 && homes.count { $0 == "b" } == places)
    }

    private func limit(_ world: NodeWorld, _ node: String, to places: Int) {
        var load = NodeLoad()
        load.places = places
        world[node].cluster.note(load, at: world.now)
    }

    /// Makes a join at `b` that takes effect at `a`, which stands still before it answers.
    private func loseHome(_ world: NodeWorld) throws {
        world.call("b", "participant.join", ["room": "r", "participant": "x"], id: 2)
        while try people(world).isEmpty { world.run(milliseconds: 1) }
        world.stop("a", milliseconds: 60_000)
    }

    /// Participants in a room's journal.
    private func people(_ world: NodeWorld) throws -> [String] {
        let messages = world.journals["r"]?.map(\.bytes) ?? []
        return try #require(JournalContents(messages)).records.keys.filter { $0.hasPrefix("p/") }
    }

    @Test func `a lost node's rooms are spread over the others`() {
        let world = NodeWorld(["a", "b", "c"])
        for number in 1...20 {
            world.call("a", "room.create", ["room": .string("r\(number)")], id: Int64(number))
        }
        world.run(milliseconds: 500)
        world.kill("a")
        world.run(milliseconds: 4_000)
        let homes = (1...20).flatMap { world.homes(of: "r\($0)") }
        #expect(homes.count == 20)
        #expect(homes.count { $0 == "b" } > 3 && homes.count { $0 == "c" } > 3)
    }

    @Test func `a node that stood still finds its room elsewhere, and says nothing`() {
        let world = NodeWorld(["a", "b"])
        world.call("a", "room.create", ["room": "r"])
        for node in ["a", "b"] { world.call(node, "events.subscribe", [:], connection: 9) }
        world.run(milliseconds: 100)
        joins(world, "a", 2)
        world.stop("a", milliseconds: 8_000)
        // They arrive when the node wakes up, before it has heard that its room is gone.
        world.run(milliseconds: 7_000)
        world.call("a", "participant.join", ["room": "r", "participant": "late"], id: 7)
        world.call("a", "room.get", ["room": "r"], id: 8)
        world.run(milliseconds: 3_000)
        #expect(world.homes(of: "r") == ["b"])
        let replies = world.replies("a").suffix(2)
        #expect(replies == ["ok at b", "ok at b"])
        #expect(world["b"].joins["r/late"] == 1)
        let events = world.events("b", connection: 9)
        #expect(events.last == "participant.joined r 5")
        #expect(world.events("a", connection: 9) == events)
        let own = world["a"].inbox[9]?.filter { $0.text.contains(#""seq":4,"of":"a""#) }
        #expect(own == [])
        #expect(world["a"].cluster.counters.roomsLost == 1)
    }

    @Test func `a node that begins again loses no room`() {
        let world = NodeWorld(["a", "b"])
        world.call("a", "room.create", ["room": "r"])
        world.call("b", "events.subscribe", [:], connection: 9)
        world.run(milliseconds: 100)
        joins(world, "b", 1)
        world.kill("a")
        world.run(milliseconds: 200)
        world.start("a")
        world.run(milliseconds: 2_500)
        #expect(world.homes(of: "r").count == 1)
        world.call("a", "room.get", ["room": "r"])
        world.run(milliseconds: 200)
        #expect(world.replies("a") == ["ok at \(world.homes(of: "r").first ?? "")"])
        #expect(
            world.events("b", connection: 9)
                == [
                    "room.created r 1", "participant.joined r 2", "participant.moveWanted r 3",
                ]
        )
    }

    @Test func `a room without a journal ends with its node`() {
        let world = NodeWorld(["a", "b"])
        world.call("a", "room.create", ["room": "r"])
        world.call("b", "events.subscribe", [:], connection: 9)
        world.run(milliseconds: 100)
        world.journals = [:]
        world.kill("a")
        world.run(milliseconds: 4_500)
        #expect(world.events("b", connection: 9) == ["room.created r 1", "room.closed r 2"])
        world.call("b", "room.get", ["room": "r"], id: 1)
        world.call("b", "room.create", ["room": "r"], id: 2)
        world.run(milliseconds: 200)
        #expect(world.replies("b") == ["no-such-room", "ok at b"])
    }

    @Test func `a call says when its change is not durable, and waits for half a second`() {
        let world = NodeWorld(["a", "b"])
        world.call("a", "room.create", ["room": "r"])
        world.run(milliseconds: 100)
        world.setAway(true)
        world.call("a", "participant.join", ["room": "r", "participant": "x"], id: 2)
        world.run(milliseconds: 500)
        #expect(world.replies("a") == ["ok at a", "ok at a, not durable"])
        world.run(milliseconds: 4_000)
        world.call("a", "participant.join", ["room": "r", "participant": "y"], id: 3)
        world.call("a", "room.get", ["room": "r"], id: 4)
        // Nothing waits while the broker is known to be away.
        world.run(milliseconds: 2)
        #expect(world.replies("a").suffix(2) == ["ok at a, not durable", "ok at a"])
        world.setAway(false)
        world.run(milliseconds: 3_000)
        world.kill("a")
        world.run(milliseconds: 4_500)
        #expect(world.homes(of: "r") == ["b"])
        #expect(world["b"].records["r"]?["p/x"] != nil && world["b"].records["r"]?["p/y"] != nil)
    }

    @Test func `a journal is bounded by snapshots, and removed with its room`() {
        let world = NodeWorld(["a", "b"])
        world.call("a", "room.create", ["room": "r"])
        world.run(milliseconds: 50)
        for number in 1...1_300 {
            let who = JSON.string("p\(number % 10)")
            let params: JSON = ["room": "r", "participant": who]
            world.call("a", "participant.join", params, id: Int64(number))
            world.run(milliseconds: 20)
        }
        #expect(world.journals["r"]?.count ?? 0 > 10)
        #expect(world.journals["r"]?.count ?? 0 < 600)
        #expect(world["a"].cluster.counters.journalSnapshots >= 3)
        world.call("b", "room.close", ["room": "r"])
        world.run(milliseconds: 200)
        #expect(world.replies("b") == ["ok at a"])
        #expect(world.journals["r"]?.isEmpty != false)
    }

    @Test func `a room that was closed does not come back`() {
        let world = NodeWorld(["a", "b"])
        world.call("a", "room.create", ["room": "r"])
        world.run(milliseconds: 50)
        // The name cannot be given back before the node dies.
        world.call("a", "room.close", ["room": "r"], id: 2)
        while world.replies("a").count < 2 { world.run(milliseconds: 1) }
        world.kill("a")
        world.run(milliseconds: 5_000)
        #expect(world.homes(of: "r") == [])
        world.call("b", "room.get", ["room": "r"])
        world.run(milliseconds: 200)
        #expect(world.replies("b") == ["no-such-room"])
    }

    @Test func `a wiped journal is written again by the homes`() {
        let world = NodeWorld(["a", "b"])
        world.call("a", "room.create", ["room": "r"])
        world.run(milliseconds: 100)
        joins(world, "a", 2)
        world.wipe()
        world.run(milliseconds: 4_000)
        world.kill("a")
        world.run(milliseconds: 4_500)
        #expect(world.homes(of: "r") == ["b"])
        let people = world["b"].records["r"]?.keys.filter { $0.hasPrefix("p/") }.sorted()
        #expect(people == ["p/p1", "p/p2"])
    }
}
