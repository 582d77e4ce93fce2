import Contract
import JSON
import RTP
import Testing

@testable import Nodes

/// Events that come late, twice, or not at all: each connection gets each event once and in order.
@Suite struct EventPositionTests {
    private let a = NodeWorld.name("a")
    private let b = NodeWorld.name("b")

    /// A room at `a` with two events, which a connection at `b` has.
    private func world(
        _ names: [String] = ["a", "b"],
        events: [String]? = nil
    ) -> NodeWorld {
        let world = NodeWorld(names)
        world.call("a", "room.create", ["room": "r"])
        world.call("a", "participant.join", ["room": "r", "participant": "p1"], id: 2)
        world.run(milliseconds: 100)
        var params: [String: JSON] = ["since": ["r": 0]]
        params["events"] = events.map { .array($0.map(JSON.string)) }
        world.call("b", "events.subscribe", .object(params), connection: 9)
        world.run(milliseconds: 50)
        return world
    }

    private func join(_ world: NodeWorld, _ who: String) {
        let params: JSON = ["room": "r", "participant": .string(who)]
        world.call("a", "participant.join", params, id: 3)
        world.run(milliseconds: 50)
    }

    /// Lets `b` receive an event of the room from a node.
    private func tell(
        _ world: NodeWorld,
        _ seq: UInt64,
        from node: NodeName,
        name: String = "x"
    ) {
        let line = """
            {"method":"event","params":{"event":"\(name)","room":"r","seq":\(seq)}}
            """
        let message = LinkMessage.event(
            connections: [9],
            room: "r",
            seq: seq,
            name: name,
            line: Array(line.utf8)
        )
        world.deliver(to: b) { $0.cluster.receive(message, from: node, at: world.now) }
    }

    private func seqs(_ world: NodeWorld, _ node: String = "b") -> [Int] {
        world.events(node, connection: 9).compactMap { event in
            event.split(separator: " ").last.flatMap { Int($0) }
        }
    }

    private func position(_ world: NodeWorld) -> UInt64? {
        world["b"].cluster.subscriptions[9]?.positions["r"]?.seq
    }

    @Test func `a replay whose end was lost with the link begins where it was cut`() {
        let world = world()
        // The first event of a replay came, and neither the others nor the positions.
        tell(world, 3, from: a)
        world["b"].cluster.detachAll(from: a)
        #expect(position(world) == 3)
        world["b"].cluster.attachAll(to: a, at: world.now)
        let asked = world["b"].cluster.takeOutput().compactMap { item -> JSON? in
            guard case .send(_, .call(_, _, _, _, let line)) = item else { return nil }
            return (try? JSON(parsing: line))?["params"]?["since"]
        }
        #expect(asked == [["r": 3]])
    }

    @Test func `an event that is told twice comes once`() {
        let world = world()
        for seq in [3, 4, 3, 4, 5] as [UInt64] { tell(world, seq, from: a) }
        #expect(seqs(world) == [1, 2, 3, 4, 5])
    }

    @Test func `a home that answers late is not heard, as the room is elsewhere`() {
        let world = world(["a", "b", "c"])
        world.deliver(to: a) { $0.cluster.handOver("r", at: world.now) }
        world.run(milliseconds: 1_000)
        #expect(world.homes(of: "r") != ["a"])
        let before = seqs(world)
        tell(world, UInt64(before.count + 1), from: a)
        #expect(seqs(world) == before && before == [1, 2, 3])
    }

    @Test func `events that another home told before the registry knew it are asked for`() {
        let world = world()
        // This one does not come.
        world["b"].cluster.subscriptions[9]?.awaited["r"] = 1_000
        join(world, "p2")
        world["b"].cluster.subscriptions[9]?.awaited = [:]
        #expect(seqs(world) == [1, 2])
        join(world, "p3")
        #expect(seqs(world) == [1, 2, 3, 4])
        // Nobody has the others.
        tell(world, 7, from: a)
        world.run(milliseconds: 50)
        tell(world, 8, from: a)
        #expect(seqs(world) == [1, 2, 3, 4, 8])
    }

    /// The answer about another room of the same home tells how far this one has come.
    @Test func `positions say nothing of a room whose missed events are still to come`() {
        let world = world(events: ["participant.*", "x"])
        world["b"].cluster.subscriptions[9]?.awaited["r"] = 1_000
        let positions = LinkMessage.positions(["r": 9])
        world["b"].cluster.receive(positions, from: a, at: world.now)
        #expect(position(world) == 2)
        // Later events would leave a gap before the missed ones.
        tell(world, 5, from: a)
        #expect(seqs(world) == [2])
        world["b"].cluster.noteAnswered(1_000, of: 9, by: a, at: world.now)
        world["b"].cluster.receive(positions, from: a, at: world.now)
        #expect(position(world) == 9)
    }

    @Test func `positions move no connection that gets all events, as it knows better`() {
        let world = world()
        world["b"].cluster.receive(.positions(["r": 9]), from: a, at: world.now)
        #expect(position(world) == 2)
    }

    @Test(arguments: [nil, ["participant.*"]])
    func `nothing is kept of a room that has ended, whoever is told`(events: [String]?) {
        let world = world(events: events)
        world.call("a", "room.close", ["room": "r"], id: 4)
        world.run(milliseconds: 500)
        #expect(position(world) == nil)
        #expect(world["b"].cluster.peers[a]?.closed.isEmpty == true)
    }

    @Test func `a room that a node does not have leaves no position`() {
        let world = world()
        tell(world, 0, from: a, name: "resync")
        #expect(position(world) == nil)
    }

    @Test func `who subscribes once more gets nothing again when the home is lost`() {
        let world = world(["a", "b", "c"])
        world.call("b", "events.subscribe", [:], connection: 9)
        world.run(milliseconds: 50)
        #expect(position(world) == 2)
        world.kill("a")
        world.run(milliseconds: 10_000)
        #expect(world.homes(of: "r") != ["a"])
        // The events after these are news of the new home.
        let seqs = seqs(world)
        #expect(seqs.count >= 2 && seqs == Array(1...seqs.count))
    }

    /// The registry keeps the last record alone, so that the end of the first room is not seen.
    @Test func `a new room of a name that was free for a moment begins again`() {
        let world = world(["a", "b", "c"])
        world.cut("b", true)
        world.call("a", "room.close", ["room": "r"], id: 4)
        world.run(milliseconds: 200)
        world.call("c", "room.create", ["room": "r"], id: 5)
        world.run(milliseconds: 200)
        world.cut("b", false)
        world.run(milliseconds: 2_000)
        #expect(world.homes(of: "r") == ["c"])
        #expect(seqs(world) == [1, 2, 3, 1])
        world.call("c", "participant.join", ["room": "r", "participant": "p"], id: 6)
        world.run(milliseconds: 100)
        #expect(seqs(world) == [1, 2, 3, 1, 2])
    }

    @Test func `positions of a room that is not known to be there do not count`() throws {
        let world = world()
        let known = try #require(world["b"].cluster.directory["r"])
        world["b"].cluster.directory["r"]?.record.home = NodeWorld.name("c")
        let positions = LinkMessage.positions(["r": 9, "s": 4])
        world["b"].cluster.receive(positions, from: a, at: world.now)
        #expect(position(world) == 2)
        #expect(world["b"].cluster.subscriptions[9]?.positions["s"] == nil)
        world["b"].cluster.directory["r"] = known
    }

    @Test func `a home that counts as lost and is linked again is asked for what was missed`() {
        let world = world()
        var load = NodeLoad()
        load.places = 0
        // Nobody takes the room over.
        world["b"].cluster.note(load, at: world.now)
        world.severed = [[a, b]]
        world.breakLinks(of: a)
        world.cut("a", true)
        join(world, "p2")
        join(world, "p3")
        world.run(milliseconds: 4_500)
        #expect(world["b"].cluster.counters.nodesLost == 1)
        // The link is up before the registry tells that the home lives.
        world.severed = []
        world.run(milliseconds: 500)
        world.cut("a", false)
        world.run(milliseconds: 3_000)
        join(world, "p4")
        world.run(milliseconds: 500)
        #expect(seqs(world) == [1, 2, 3, 4, 5])
    }

    @Test func `a question that a lost life was asked is asked again`() {
        let world = world()
        world.call("b", "events.subscribe", ["since": ["r": 0]], id: 2, connection: 8)
        let asks = world["b"].cluster.subscriptions[8]
        #expect(asks?.attachments[a]?.isAsked == true && asks?.awaited.keys.sorted() == ["r"])
        world["b"].cluster.failCalls(to: a, exceptOf: nil, at: world.now)
        let fails = world["b"].cluster.subscriptions[8]
        #expect(fails?.attachments[a]?.isAsked == false && fails?.awaited.isEmpty == true)
        world.breakLinks(of: a)
        world.run(milliseconds: 500)
        #expect(world.events("b", connection: 8) == world.events("b", connection: 9))
    }

    @Test func `an event that is let out and not told yet is not replayed`() {
        let world = world()
        let event = ReplayedEvent(room: "r", seq: 3, name: "x", line: [1])
        world["a"].cluster.journaling.released["r"] = [3: [1]]
        #expect(world["a"].cluster.replayed([event]).isEmpty)
        world["a"].cluster.send([1], "x", in: "r", seq: 3)
        #expect(world["a"].cluster.replayed([event]) == [event])
    }

    @Test func `all events of a room that is being taken over wait for it`() {
        let world = NodeWorld(["a", "b"])
        var hold = Hold(term: 1, exists: false, stage: .restoring)
        hold.takeoverEnd = world.now.advanced(milliseconds: 10_000)
        hold.isWriting = true
        world["b"].cluster.holds["r"] = hold
        let params: JSON = ["since": ["r": 0]]
        let request = IPCRequest(id: .integer(0), method: EventsSubscribe.name, params: params)
        let call = LinkMessage.call(
            number: 1_000,
            answered: 0,
            first: 1_000,
            connection: 9,
            line: request.encoded()
        )
        world["b"].cluster.receive(call, from: a, at: world.now)
        #expect(world["b"].cluster.holds["r"]?.waiting.map(\.asksForPeer) == [true])
        // A refusal would count as an answer.
        let late = world.now.advanced(milliseconds: 11_000)
        world["b"].cluster.expireHolds(at: late)
        #expect(world["b"].cluster.holds["r"]?.waiting.count == 1)
    }

    /// Its client asks before the registry has been read.
    @Test func `a node that has just begun says nothing of rooms that it does not know yet`() {
        let world = world()
        world.kill("b")
        world.start("b")
        world.call("b", "events.subscribe", ["since": ["r": 1]], connection: 9)
        #expect(world.replies("b", connection: 9).isEmpty)
        world.run(milliseconds: 3_000)
        #expect(world.replies("b", connection: 9) == ["ok at b"])
        #expect(world.events("b", connection: 9) == ["participant.joined r 2"])
    }

    @Test func `a node that does not reach the registry says after 5 s what it knows`() {
        let world = world()
        world.setAway(true)
        world.kill("b")
        world.start("b")
        world.call("b", "events.subscribe", ["since": ["r": 1]], connection: 9)
        world.run(milliseconds: 4_800)
        #expect(world.replies("b", connection: 9).isEmpty)
        world.run(milliseconds: 400)
        #expect(world.replies("b", connection: 9) == ["ok at b"])
        #expect(world.events("b", connection: 9) == ["resync r 0"])
    }

    /// The connection has the first two events.
    @Test(
        arguments: [
            (kept: 3..<7, last: 6, told: "3 4 5 6"), (kept: 4..<7, last: 6, told: "expired 6"),
            (kept: 7..<7, last: 6, told: "expired 6"), (kept: 1..<3, last: 2, told: ""),
            (kept: 3..<3, last: 2, told: ""), (kept: 1..<2, last: 1, told: "ahead 1"),
        ] as [(kept: Range<UInt64>, last: UInt64, told: String)]
    )
    func `who has missed more than a takeover kept is told to ask for the room`(
        _ row: (kept: Range<UInt64>, last: UInt64, told: String)
    ) {
        let world = world()
        let kept = row.kept.map { (seq: $0, name: "x", line: Array("\($0)".utf8)) }
        world["b"].cluster.adopted("r", last: row.last, events: kept, at: world.now)
        let lines = world["b"].cluster.takeOutput().compactMap { item -> String? in
            guard case .line(let connection, let line) = item, connection == 9 else { return nil }
            return String(decoding: line, as: UTF8.self)
        }
        let parts = row.told.split(separator: " ")
        guard let reason = parts.first, let last = parts.last, Int(reason) == nil else {
            #expect(lines == parts.map(String.init))
            return
        }
        #expect(lines.count == 1)
        #expect(lines.first?.contains(#""event":"resync","room":"r","seq":\#(last),"#) == true)
        #expect(lines.first?.contains(#""reason":"\#(reason)""#) == true)
    }

    /// If each looked at all rooms of the cluster, this would take a minute.
    @Test func `a subscription to one room costs the same, however many there are`() throws {
        let world = world()
        let known = try #require(world["b"].cluster.directory["r"])
        for number in 1...50_000 { world["b"].cluster.directory["r\(number)"] = known }
        let params: JSON = ["rooms": ["r"], "since": ["r": 1]]
        for connection in 100...599 as ClosedRange<UInt64> {
            world.call("b", "events.subscribe", params, connection: connection)
        }
        world.run(milliseconds: 50)
        for connection in 100...599 as ClosedRange<UInt64> {
            #expect(world.events("b", connection: connection) == ["participant.joined r 2"])
        }
    }

    /// If each looked at all rooms of the cluster, this would take a minute.
    @Test func `a link that is back costs one look at all rooms, however many subscribe`() throws {
        let world = world()
        for connection in 100...599 as ClosedRange<UInt64> {
            world.call("b", "events.subscribe", [:], connection: connection)
        }
        world.run(milliseconds: 50)
        var elsewhere = try #require(world["b"].cluster.directory["r"])
        elsewhere.record.home = NodeWorld.name("c")
        for number in 1...50_000 { world["b"].cluster.directory["r\(number)"] = elsewhere }
        world["b"].cluster.detachAll(from: a)
        world["b"].cluster.attachAll(to: a, at: world.now)
        let asked = world["b"].cluster.takeOutput().compactMap { item -> UInt64? in
            guard case .send(_, .call(_, _, _, let connection, _)) = item else { return nil }
            return connection
        }
        #expect(asked == [9] + Array(100...599))
    }

    @Test func `a former room's positions do not count for a new one of its name`() {
        let world = world()
        world["b"].cluster.forgetFormer("r", than: a)
        #expect(position(world) == 2)
        world["b"].cluster.forgetFormer("r", than: NodeWorld.name("c"))
        #expect(position(world) == nil)
    }
}
