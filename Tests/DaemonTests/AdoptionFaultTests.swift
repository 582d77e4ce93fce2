import RTP
import Testing

@testable import Contract
@testable import ControlPlane
@testable import JSON
@testable import Rooms
@testable import WorkerInterface

/// Takeovers in which nodes know different things, or answer late or wrongly.
@Suite struct AdoptionFaultTests {
    /// A room at `a`: `p` publishes at `b`, `w` watches it there, `v` at `c` and `u` at `d`.
    private func call() throws -> (world: PlaceWorld, stream: String) {
        var world = PlaceWorld("a", "b", "c", "d")
        _ = try world.done("room.create", ["room": "r"])
        let stream = try world.join("p", by: "b", "0:video:sendonly").stream
        for (who, node) in [("w", "b"), ("v", "c"), ("u", "d")] {
            try world.join(who, by: node, "0:video:recvonly")
            try world.watch(who, stream)
        }
        world.events = []
        return (world, try #require(stream))
    }

    private func moved(_ world: PlaceWorld) -> [String] {
        world.events.filter { $0.event == "participant.moveWanted" }
            .compactMap { event in
                if case .string(let who)? = event.data["participant"] { who } else { nil }
            }
    }

    private func open(_ world: PlaceWorld, _ node: String) -> Int? {
        world.nodes[node]?.worker.bindings.values.count { $0.open }
    }

    @Test func `nothing is expected of a node that is out of reach, nor sooner`() throws {
        var (world, _) = try call()
        world.nodes["c"]?.isStopped = true
        world.nodes["b"]?.plane.losePlaces(at: "c", at: world.now)
        world.kill("a")
        world.adopt(from: "a", by: "b")
        world.run(milliseconds: 4_200)
        #expect(world.nodes["b"]?.plane.hasRoom("r") == false)
        world.run(milliseconds: 100)
        #expect(moved(world) == ["v"])
        #expect(open(world, "b") == 1 && open(world, "d") == 1)
    }

    @Test func `a node that is lost while it is asked is waited for like a silent one`() throws {
        var (world, _) = try call()
        world.nodes["c"]?.isStopped = true
        world.nodes["d"]?.isStopped = true
        world.kill("a")
        world.adopt(from: "a", by: "b")
        world.nodes["b"]?.plane.losePlaces(at: "c", at: world.now)
        world.resume("d")
        world.run(milliseconds: 4_200)
        #expect(world.nodes["b"]?.plane.hasRoom("r") == false)
        world.run(milliseconds: 100)
        #expect(moved(world) == ["v"])
    }

    @Test func `a node answers for its own participants alone`() throws {
        var (world, _) = try call()
        world.nodes["c"]?.isStopped = true
        let journal = world.nodes["a"]?.plane.rooms["r"]?.room.participants["v"]?.transports.first
        let place = try #require(journal).place
        let kept = world.nodes["c"]?.plane.places?.guests.homes["a"]?.kept(place, of: "r")
        let negotiation = try #require(kept).negotiation
        world.kill("a")
        world.nodes["d"]?.isStopped = true
        world.adopt(from: "a", by: "b")
        let forged = AdoptionAnswer.Kept(transport: place, worker: 0, negotiation: negotiation)
        let answer = AdoptionAnswer(room: "r", kept: [forged], mirrors: [])
        world.nodes["b"]?.plane.take(answer, of: "d", at: world.now)
        world.run(milliseconds: 4_300)
        #expect(moved(world) == ["v", "u"])
    }

    @Test func `a node answers for the room and the life that it is asked for`() throws {
        var (world, _) = try call()
        let transports = world.nodes["a"]?.plane.rooms["r"]?.room.participants["v"]?.transports
        let asked = try #require(transports).map(\.place)
        for (room, boot, count) in [("r", "boot-a", 1), ("s", "boot-a", 0), ("r", "boot-b", 0)] {
            let former = FormerHome(node: "a", boot: boot)
            let question = AdoptionQuestion(room: room, former: former, asked: asked)
            world.nodes["c"]?.plane.answer(question, of: "b", at: world.now)
            let output = world.nodes["c"]?.plane.takeOutput() ?? []
            let answers = output.compactMap { output in
                if case .place("b", asHome: false, let bytes) = output {
                    JSON.sent(AdoptionAnswer.self, bytes)
                } else {
                    nil
                }
            }
            #expect(answers.map(\.kept.count) == [count], "\(room) \(boot)")
        }
    }

    @Test func `another life of the home extends no lease of this one`() throws {
        var (world, _) = try call()
        world.kill("a")
        let ended = WorkerCommand.link(.hold(home: "a", lease: nil))
        #expect(world.nodes["c"]?.orders.contains(ended) == true)
    }

    @Test func `a slot that was emptied without the node is empty`() throws {
        var (world, _) = try call()
        let subscriptions = world.nodes["a"]?.plane.rooms["r"]?.room.subscriptions.values
        let number = try #require(subscriptions?.first { $0.participant == "v" }?.id)
        let params: JSON = ["room": "r", "subscription": .string(number)]
        try withoutHearing("c", &world, "subscription.remove", params)
        #expect(moved(world) == [] && open(world, "c") == 0 && open(world, "d") == 1)
    }

    /// Lets the home lose a node, and make calls without it; then another node goes on.
    private func withoutHearing(
        _ node: String,
        _ world: inout PlaceWorld,
        _ method: String,
        _ params: JSON
    ) throws {
        world.nodes[node]?.isStopped = true
        let id = world.send(method, params)
        world.run(milliseconds: 1_400)
        #expect(try world.replies[id]?.get() != nil)
        world.nodes["a"]?.isStopped = true
        world.nodes[node]?.waiting = []
        world.resume(node)
        world.kill("a")
        world.adopt(from: "a", by: "b")
    }

    @Test func `a slot that was filled without the node is filled by the new home`() throws {
        var (world, stream) = try call()
        try world.join("x", by: "c", "0:video:recvonly")
        let params: JSON = ["room": "r", "participant": "x", "stream": .string(stream)]
        try withoutHearing("c", &world, "subscription.add", params)
        #expect(moved(world) == [] && open(world, "c") == 2)
        #expect(world.nodes["c"]?.worker.mirrors.count == 1)
    }

    @Test func `what a node tells of another transport than it was asked for does not count`()
        throws
    {
        var (world, _) = try call()
        try world.join("x", by: "c", "0:video:recvonly")
        let room = try #require(world.nodes["a"]?.plane.rooms["r"]?.room)
        let places = ["v", "x"].compactMap { room.participants[$0]?.transports.first?.place }
        let other = world.nodes["c"]?.plane.places?.guests.homes["a"]?.kept(places[1], of: "r")
        let forged = AdoptionAnswer.Kept(
            transport: places[0],
            worker: 0,
            negotiation: try #require(other).negotiation
        )
        world.nodes["c"]?.isStopped = true
        world.kill("a")
        world.adopt(from: "a", by: "b")
        world.nodes["b"]?.plane.take(
            AdoptionAnswer(room: "r", kept: [forged], mirrors: []),
            of: "c",
            at: world.now
        )
        world.settle()
        #expect(moved(world) == ["v", "x"])
    }

    @Test func `what is left at a node where nothing goes on ends at once`() throws {
        var (world, _) = try call()
        let records = world.nodes["a"]?.journaled
        try withLaterOffer(of: "v", "0:video:recvonly", "1:video:sendonly", world: &world)
        world.kill("a")
        world.adopt(from: "a", by: "b", records)
        #expect(moved(world) == ["v"])
        #expect(world.nodes["c"]?.worker.transports.isEmpty == true)
    }

    private func withLaterOffer(
        of participant: String,
        _ lines: String...,
        world: inout PlaceWorld
    ) throws {
        let sdp = JSON.string(TestOffer(lines).text)
        let params: JSON = ["room": "r", "participant": .string(participant), "sdp": sdp]
        _ = try world.done("transport.offer", params)
        world.events = []
    }

    @Test func `who joined unknown to the journal ends where nobody goes on`() throws {
        var (world, stream) = try call()
        let records = world.nodes["a"]?.journaled
        _ = try world.done("participant.leave", ["room": "r", "participant": "v"])
        try world.join("x", by: "c", "0:video:recvonly")
        try world.watch("x", stream)
        world.events = []
        world.kill("a")
        world.adopt(from: "a", by: "b", records)
        #expect(moved(world) == ["v"])
        #expect(world.nodes["c"]?.worker.transports.isEmpty == true)
    }

    @Test func `viewers of a publisher that does not go on do`() throws {
        var (world, _) = try call()
        let records = world.nodes["a"]?.journaled
        try withLaterOffer(of: "p", "0:video:sendonly", "1:audio:sendonly", world: &world)
        world.kill("a")
        world.adopt(from: "a", by: "b", records)
        #expect(moved(world) == ["p"])
        #expect(["b", "c", "d"].map { open(world, $0) } == [0, 0, 0])
        #expect(["b", "c", "d"].map { world.nodes[$0]?.worker.transports.count } == [1, 1, 1])
    }

    @Test func `layers that are wanted stay so, by workers as the new home counts them`() throws {
        var (world, stream) = try call()
        let mirror = try #require(world.nodes["c"]?.worker.mirrors.keys.first)
        world.tell(.layersWanted(mirror, home: nil, 1), of: "c")
        let before = world.nodes["a"]?.plane.rooms["r"]?.room.streams[stream]?.demand
        #expect(before?.values.map { $0 } == [1])
        world.kill("a")
        world.adopt(from: "a", by: "c")
        let after = world.nodes["c"]?.plane.rooms["r"]?.room.streams[stream]?.demand
        #expect(after == [0: 1])
    }
}
