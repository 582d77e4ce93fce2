import RTP
import Testing

@testable import Contract
@testable import ControlPlane
@testable import JSON
@testable import Rooms
@testable import WorkerInterface

/// Media that passes by way of a room's home, as the nodes of publisher and viewer do not hear each
/// other.
@Suite struct PlaceDetourTests {
    /// Makes a room at `a` with a publisher at `b` and a viewer at `c`.
    private func call(
        among nodes: [String] = ["a", "b", "c"]
    ) throws -> (world: PlaceWorld, stream: String) {
        var world = PlaceWorld(nodes)
        _ = try world.done("room.create", ["room": "r"])
        let stream = try world.join("p", by: "b", "0:video:sendonly").stream
        try world.join("v", by: "c", "0:video:recvonly")
        try world.watch("v", stream)
        return (world, try #require(stream))
    }

    private func hear(_ world: inout PlaceWorld, _ isHeard: Bool) {
        for (node, other) in [("b", "c"), ("c", "b")] {
            let event = WorkerEvent.link(.media(other, isAlive: isHeard))
            world.tell(event, of: node, worker: PlaceWorld.link)
        }
    }

    /// Nodes that the link thread of a node was told to take media from, in order.
    private func parents(_ world: PlaceWorld, of node: String) -> [String] {
        (world.nodes[node]?.orders ?? []).compactMap { order in
            if case .link(.receive(_, _, let parent)) = order { parent } else { nil }
        }
    }

    /// Lists of nodes to which media of other nodes goes on from the home.
    private func onward(_ world: PlaceWorld) -> [[String]] {
        (world.nodes["a"]?.orders ?? []).compactMap { order in
            if case .link(.send(_, _, let nodes)) = order { nodes } else { nil }
        }
    }

    private func gates(_ world: PlaceWorld) -> [Bool] {
        (world.nodes["a"]?.orders ?? []).compactMap { order in
            if case .gate(_, let open) = order { open } else { nil }
        }
    }

    private func handles(_ world: PlaceWorld, of node: String) -> Int {
        world.nodes[node]?.plane.shared.identifiers[PlaceWorld.link].publications.used ?? -1
    }

    @Test func `a stream passes by way of the home until it is heard again for 5 s`() throws {
        var (world, _) = try call()
        #expect(parents(world, of: "c") == ["b"] && parents(world, of: "a").isEmpty)
        hear(&world, false)
        #expect(parents(world, of: "c") == ["b", "a"])
        #expect(parents(world, of: "a") == ["b"] && onward(world) == [["c"]])
        #expect(gates(world) == [true])
        hear(&world, true)
        world.run(milliseconds: 4_900)
        #expect(parents(world, of: "c") == ["b", "a"], "it has to hold")
        world.run(milliseconds: 200)
        #expect(parents(world, of: "c") == ["b", "a", "b"])
        #expect(onward(world) == [["c"]], "until the direct way has begun")
        world.run(milliseconds: 1_100)
        #expect(onward(world) == [["c"], []])
        #expect(handles(world, of: "a") == 0)
    }

    @Test func `a node that is lost again within 5 s changes nothing`() throws {
        var (world, _) = try call()
        hear(&world, false)
        hear(&world, true)
        world.run(milliseconds: 3_000)
        hear(&world, false)
        hear(&world, true)
        world.run(milliseconds: 3_000)
        #expect(parents(world, of: "c") == ["b", "a"])
        world.run(milliseconds: 2_100)
        #expect(parents(world, of: "c") == ["b", "a", "b"])
    }

    @Test func `a mute closes the gate on the way before it is answered`() throws {
        var (world, _) = try call()
        hear(&world, false)
        let target: JSON = ["room": "r", "participant": "p", "media": ["video"]]
        _ = try world.done("participant.hardMute", target)
        #expect(gates(world) == [true, false])
        #expect(world.nodes["c"]?.worker.gates.values.allSatisfy { !$0 } == true)
        _ = try world.done("participant.hardUnmute", target)
        #expect(gates(world) == [true, false, true])
        hear(&world, true)
        world.run(milliseconds: 6_200)
        _ = try world.done("participant.hardMute", target)
        #expect(gates(world).count == 3, "nothing passes by the home any longer")
    }

    @Test func `a muted stream that comes another way stays muted`() throws {
        var (world, _) = try call()
        let target: JSON = ["room": "r", "participant": "p", "media": ["video"]]
        _ = try world.done("participant.hardMute", target)
        hear(&world, false)
        #expect(parents(world, of: "c") == ["b", "a"])
        #expect(gates(world).isEmpty, "it begins closed")
        _ = try world.done("participant.hardUnmute", target)
        #expect(gates(world) == [true])
    }

    @Test func `a mute while the direct way begins closes both`() throws {
        var (world, _) = try call()
        hear(&world, false)
        hear(&world, true)
        world.run(milliseconds: 5_100)
        let target: JSON = ["room": "r", "participant": "p", "media": ["video"]]
        _ = try world.done("participant.hardMute", target)
        #expect(gates(world) == [true, false])
    }

    @Test func `a path that breaks while the direct way begins is left at once`() throws {
        var (world, _) = try call()
        hear(&world, false)
        hear(&world, true)
        world.run(milliseconds: 5_100)
        hear(&world, false)
        world.run(milliseconds: 2_000)
        #expect(parents(world, of: "c") == ["b", "a", "b", "a"])
        #expect(onward(world) == [["c"]], "it goes on meanwhile")
    }

    /// The order of the nodes is that in which their workers are told.
    @Test(arguments: [["a", "b", "c"], ["a", "c", "b"]])
    func `a role that is heard in a muted room is heard on the way, too`(nodes: [String]) throws {
        var world = PlaceWorld(nodes)
        let roles: [JSON] = [
            ["name": "participant", "publish": ["audio": true]],
            ["name": "moderator", "publish": ["audio": ["maxBitrate": 20_000]]],
        ]
        _ = try world.done("room.create", ["room": "r", "settings": ["roles": .array(roles)]])
        let stream = try world.join("p", by: "b", "0:audio:sendonly").stream
        try world.join("v", by: "c", "0:audio:recvonly")
        try world.watch("v", stream)
        hear(&world, false)
        _ = try world.done("room.hardMute", ["room": "r", "sparing": "moderators"])
        #expect(gates(world) == [true, false])
        for (role, isHeard) in [("moderator", true), ("participant", false)] {
            let change: JSON = [
                "room": "r", "participant": "p", "role": .string(role), "force": true,
            ]
            _ = try world.done("role.change", change)
            #expect(gates(world).last == isHeard)
        }
    }

    @Test(arguments: ["viewer", "publisher", "room"])
    func `it ends with its viewer, its publisher and its room`(who: String) throws {
        var (world, _) = try call()
        hear(&world, false)
        #expect(handles(world, of: "a") == 1)
        switch who {
        case "viewer": _ = try world.done("participant.leave", ["room": "r", "participant": "v"])
        case "publisher":
            _ = try world.done("participant.leave", ["room": "r", "participant": "p"])
        default: _ = try world.done("room.close", ["room": "r"])
        }
        #expect(handles(world, of: "a") == 0 && handles(world, of: "c") == 0)
        #expect(onward(world) == [["c"], []])
    }

    @Test func `who comes later gets it by way of the home at once, and the home shares it`() throws
    {
        var (world, stream) = try call()
        hear(&world, false)
        try world.join("w", by: "c", "0:video:recvonly")
        try world.watch("w", stream)
        #expect(onward(world) == [["c"]], "once for all viewers there")
        try world.join("near", by: nil, "0:video:recvonly")
        try world.watch("near", stream)
        #expect(parents(world, of: "a") == ["b"] && handles(world, of: "a") == 1)
        for leaving in ["v", "w"] {
            let who: JSON = ["room": "r", "participant": .string(leaving)]
            _ = try world.done("participant.leave", who)
        }
        #expect(onward(world) == [["c"], []] && handles(world, of: "a") == 1)
        _ = try world.done("participant.leave", ["room": "r", "participant": "near"])
        #expect(handles(world, of: "a") == 0)
    }

    @Test func `media is asked for by another way where it never came`() throws {
        var world = PlaceWorld("a", "b", "c")
        hear(&world, false)
        _ = try world.done("room.create", ["room": "r"])
        let stream = try world.join("p", by: "b", "0:video:sendonly").stream
        try world.join("v", by: "c", "0:video:recvonly")
        try world.watch("v", stream)
        #expect(parents(world, of: "c") == ["b", "a"])
    }

    @Test func `a home that goes on with the room hears of it too`() throws {
        var (world, _) = try call(among: ["a", "b", "c", "d"])
        hear(&world, false)
        world.kill("a")
        world.adopt(from: "a", by: "d")
        world.run(milliseconds: 4_500)
        #expect(world.nodes["d"]?.plane.rooms["r"] != nil)
        #expect(parents(world, of: "c").suffix(2) == ["b", "d"])
        #expect(parents(world, of: "d") == ["b"])
        #expect(world.warnings.filter { $0.contains("unknown") }.isEmpty)
    }

    @Test func `a room that is let go leaves nothing at its former home`() throws {
        var (world, _) = try call()
        hear(&world, false)
        let now = world.now
        world.nodes["a"]?.plane.handOver("r", at: now)
        world.settle()
        #expect(onward(world) == [["c"]], "the next home has yet to be told")
        world.run(milliseconds: 4_100)
        #expect(handles(world, of: "a") == 0)
        #expect(onward(world) == [["c"], []])
    }

    @Test func `a node with two workers has it until neither needs it`() {
        var detours = Detours()
        let home = RelayTarget(worker: 9, publication: PublicationID(index: 1, generation: 1))
        let mirrors = (20...21).map { worker in
            RelayTarget(worker: worker, publication: PublicationID(index: 7, generation: 1))
        }
        for mirror in mirrors + mirrors { detours.feed(mirror, of: home, at: "c") }
        #expect(detours.nodes(of: home) == ["c"])
        #expect(detours.stop(mirrors[0]) == home && detours.nodes(of: home) == ["c"])
        #expect(detours.stop(mirrors[0]) == nil && detours.nodes(of: home) == ["c"])
        #expect(detours.stop(mirrors[1]) == home && detours.nodes(of: home).isEmpty)
    }

    @Test func `what is no news is not told, and a list that is too long is left alone`() throws {
        var (world, _) = try call()
        let long = [(0...64).map { "n\($0)" } + ["b"], ["b", String(repeating: "n", count: 65)]]
        for names in long + Array(repeating: ["b", "a", "c", "unknown"], count: 3) {
            let bytes = JSON.compact(UnheardNodes(unheard: names))
            world.nodes["a"]?.plane.receivePlaceEvents(bytes, from: "c", at: world.now)
            world.settle()
        }
        #expect(onward(world) == [["c"]])
        #expect(world.warnings == [#"a: node does not hear others ["c", "b unknown"]"#])
    }

    @Test func `a node that the home meets later counts as named before`() throws {
        var world = PlaceWorld("a", "b", "c")
        _ = try world.done("room.create", ["room": "r"])
        let bytes = JSON.compact(UnheardNodes(unheard: ["d"]))
        world.nodes["a"]?.plane.receivePlaceEvents(bytes, from: "c", at: world.now)
        world.add("d")
        let stream = try world.join("p", by: "d", "0:video:sendonly").stream
        try world.join("v", by: "c", "0:video:recvonly")
        try world.watch("v", stream)
        #expect(parents(world, of: "c") == ["a"] && parents(world, of: "a") == ["d"])
    }

    @Test func `a node of an earlier version keeps its media for those that hear it`() throws {
        var (world, _) = try call()
        let sent = try #require(world.nodes["b"]).plane.placeFacts
        var facts = try #require(JSON.sent(PlaceFacts.self, sent))
        facts.feedsHomes = nil
        world.nodes["a"]?.plane.takePlaceFacts(JSON.compact(facts), of: "b", at: world.now)
        hear(&world, false)
        #expect(parents(world, of: "c") == ["b"] && onward(world).isEmpty)
    }

    @Test func `a node that was never heard has two seconds`() {
        var hearing = Hearing()
        let start = Instant(nanoseconds: 1_000_000_000)
        hearing.expect("b", at: start)
        hearing.expect("b", at: start.advanced(milliseconds: 1_000))
        #expect(hearing.hears("b") && !hearing.isHeard("b"))
        #expect(hearing.deadline == start.advanced(milliseconds: 2_000))
        hearing.expire(at: start.advanced(milliseconds: 1_999))
        #expect(hearing.hears("b"))
        hearing.expire(at: start.advanced(milliseconds: 2_000))
        #expect(!hearing.hears("b") && hearing.deadline == nil)
        hearing.expect("c", at: start)
        hearing.note("c", isHeard: true, at: start)
        #expect(hearing.hears("c") && hearing.isHeard("c") && hearing.deadline == nil)
    }

    @Test func `a node that counts as lost and is heard all the time stays heard`() throws {
        var (world, _) = try call()
        world.nodes["c"]?.plane.losePlaces(at: "b", at: world.now)
        let facts = try #require(world.nodes["b"]).plane.placeFacts
        world.nodes["c"]?.plane.takePlaceFacts(facts, of: "b", at: world.now)
        let stream = try world.join("q", by: "b", "0:video:sendonly").stream
        try world.join("w", by: "c", "0:video:recvonly")
        try world.watch("w", stream)
        world.run(milliseconds: 2_500)
        #expect(parents(world, of: "c") == ["b", "b"] && onward(world).isEmpty)
    }
}
