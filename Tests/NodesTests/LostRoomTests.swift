import Contract
import JSON
import Testing

@testable import Nodes

/// Rooms that end with a life of their home: whoever asks for them or hears them is told.
@Suite struct LostRoomTests {
    private let a = NodeWorld.name("a")

    /// A room at `a` with two events.
    private func world(_ names: [String]) -> NodeWorld {
        let world = NodeWorld(names)
        world.call("a", "room.create", ["room": "r"])
        world.call("a", "participant.join", ["room": "r", "participant": "p1"], id: 2)
        world.run(milliseconds: 100)
        return world
    }

    /// Gives the room up at once, as its journal is missing: one node knows that it has ended, the
    /// others have a record of it that says so.
    @Test(arguments: ["a", "b", "c"], [25, 100, 160, 300, 5_000] as [Int64])
    func `who asks for missed events of a lost room is told`(node: String, wait: Int64) {
        let world = world(["a", "b", "c"])
        world.journals = [:]
        world.kill("a")
        world.start("a")
        world.run(milliseconds: wait)
        world.call(node, "events.subscribe", ["since": ["r": 2]], connection: 7)
        world.run(milliseconds: 8_000)
        #expect(world.replies(node, connection: 7) == ["ok at \(node)"])
        let events = world.events(node, connection: 7)
        #expect(!events.isEmpty)
        #expect(events.allSatisfy { $0 == "resync r 0" || $0.hasPrefix("room.closed r ") })
        #expect(world[node].cluster.subscriptions[7]?.positions.isEmpty == true)
    }

    /// Its record says after 15 s that it has ended.
    @Test(arguments: ["a", "b"])
    func `a room that nobody could take is told as lost, also by its node`(node: String) {
        let world = world(["a", "b"])
        world.kill("a")
        world.start("a")
        var load = NodeLoad()
        load.places = 0
        for name in ["a", "b"] { world[name].cluster.note(load, at: world.now) }
        world.run(milliseconds: 1_000)
        world.call(node, "events.subscribe", ["since": ["r": 2]], connection: 7)
        world.run(milliseconds: 20_000)
        #expect(world.replies(node, connection: 7) == ["ok at \(node)"])
        #expect(world.events(node, connection: 7) == ["room.closed r 3"])
    }

    /// Contents of a room's journal when its node is lost.
    enum Wrong: CaseIterable {
        case unreadable
        /// The control plane cannot go on with it.
        case withoutRoom
    }

    @Test(arguments: Wrong.allCases)
    func `the journal of a room that cannot go on is removed, and that of the next one stays`(
        _ wrong: Wrong
    ) throws {
        let world = world(["a", "b"])
        world.kill("a")
        let last = try #require(world.journals["r"]?.last)
        var entry = JournalEntry(
            kind: .snapshot,
            isLast: true,
            group: 1,
            term: 1,
            clock: JournalClock(instant: world.now, unixTime: 0),
            home: a,
            boot: world["a"].boot
        )
        entry.records = [JournalRecord(key: "x", value: [1])]
        let bytes = wrong == .unreadable ? Array("{".utf8) : entry.encoded
        world.journals["r"] = [NodeWorld.Message(sequence: last.sequence, bytes: bytes)]
        world.run(milliseconds: 6_000)
        #expect(world["b"].warnings.contains("room lost with its node"))
        #expect(world.journals["r"]?.isEmpty == true)
        world.call("b", "room.create", ["room": "r"])
        world.run(milliseconds: 1_000)
        #expect(world.replies("b") == ["ok at b"])
        #expect(world.journals["r"]?.isEmpty == false)
    }

    /// Fate of a room's node after the registry had no record of the room any longer.
    enum Loss: CaseIterable {
        /// The link was broken when the room ended.
        case leftUnheard
        case begunAgainUnheard
        /// The registry was wiped.
        case begunAgainWiped
    }

    @Test(arguments: Loss.allCases)
    func `a room without a record ends with the life of its node`(_ loss: Loss) {
        let world = world(["a", "b"])
        world.call("b", "events.subscribe", [:], connection: 9)
        world.call("b", "events.subscribe", ["events": ["participant.*"]], connection: 8)
        world.run(milliseconds: 50)
        switch loss {
        case .leftUnheard:
            closeUnheard(world)
            world.leave("a")
        case .begunAgainUnheard:
            closeUnheard(world)
            world.kill("a")
            world.start("a")
        case .begunAgainWiped:
            world.kill("a")
            world.wipe()
            world.run(milliseconds: 200)
            world.start("a")
        }
        world.run(milliseconds: 1_000)
        #expect(world.events("b", connection: 9) == ["room.closed r 3"])
        let text = world["b"].inbox[9]?.last?.text
        #expect(text?.contains(#""reason":"node-lost""#) == true)
        #expect(world.events("b", connection: 8) == [])
        for connection in [8, 9] as [UInt64] {
            let subscription = world["b"].cluster.subscriptions[connection]
            #expect(subscription?.positions.isEmpty == true)
        }
    }

    /// Ends the room while `b` cannot hear it.
    private func closeUnheard(_ world: NodeWorld) {
        world.severed = [[a, NodeWorld.name("b")]]
        world.breakLinks(of: a)
        world.run(milliseconds: 10)
        world.call("a", "room.close", ["room": "r"], id: 4)
        world.run(milliseconds: 100)
        #expect(world["b"].cluster.directory["r"] == nil)
        #expect(world["b"].cluster.subscriptions[9]?.positions["r"]?.seq == 2)
    }
}
