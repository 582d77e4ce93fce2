import RTP
import TestSupport
import Testing

@testable import Contract
@testable import ControlPlane
@testable import JSON
@testable import Rooms
@testable import WorkerInterface

/// Participants at a node whose process begins again, while their home goes on.
@Suite struct PlaceKeptTests {
    @Test func `who is there stays connected, and the workers get all that they had`() throws {
        var call = try KeptCall()
        for _ in 0..<3 {
            let before = try call.worker("b")
            let elsewhere = (try call.worker("a"), try call.worker("c"))
            call.restart()
            #expect(call.world.nodes["b"]?.plane.awaitsHomes == true)
            #expect(try call.worker("b").transports.isEmpty)
            call.world.run(milliseconds: 300)
            call.world.reunite("b")
            #expect(call.world.warnings == [])
            #expect(call.told("participant.connection") == [])
            #expect(call.told("stream.destroyed") == [])
            let states = try call.connections()
            #expect(states == [.connected, .connected, .connected, .connected])
            let new = try call.worker("b")
            #expect(new.transports == before.transports)
            #expect(Set(call.resumed(at: "b")) == Set(before.transports.keys))
            #expect(new.gates.values.count { $0 } == before.gates.values.count { $0 })
            #expect(new.leases.count == before.leases.count)
            #expect(call.firstOpened(at: "b").allSatisfy { $0 })
            #expect(new.mirrors.count == before.mirrors.count)
            #expect(Set(new.bindings.keys) == Set(before.bindings.keys))
            #expect(new.bindings.values.count { $0.open } == 2)
            #expect(try call.worker("a").bindings == elsewhere.0.bindings)
            #expect(try call.worker("a").mirrors == elsewhere.0.mirrors)
            #expect(try call.worker("c").bindings == elsewhere.1.bindings)
            #expect(try call.worker("c").mirrors == elsewhere.1.mirrors)
            #expect(call.world.nodes["b"]?.plane.awaitsHomes == false)
            let known = try #require(call.world.nodes["a"]?.plane.places?.nodes["b"])
            #expect(!known.isDenied && known.owesNothing && known.due == nil)
            call.world.run(milliseconds: 20_000)
        }
        try call.end()
    }

    @Test func `the link thread sends and receives as before`() throws {
        var call = try KeptCall()
        let before = try #require(call.world.nodes["b"]).orders.count { $0.isRoute }
        call.restart()
        call.world.reunite("b")
        let after = try #require(call.world.nodes["b"]).orders
        let isRouted = after.contains(where: \.isRoute)
        #expect(isRouted && before > 0)
        let holds = after.contains { order in
            if case .link(.hold("a", .some)) = order { true } else { false }
        }
        #expect(holds)
        let sent = after.contains { order in
            if case .link(.send(_, _, let nodes)) = order {
                Set(nodes) == ["a", "c"]
            } else {
                false
            }
        }
        #expect(sent)
        try call.end()
    }

    @Test func `a mute in between is answered when the node has it`() throws {
        var call = try KeptCall()
        call.restart()
        let id = call.mute()
        #expect(call.world.replies[id] == nil)
        call.world.reunite("b")
        #expect(call.world.replies[id] != nil)
        let publishers = try call.worker("b").transports.values.flatMap(\.publications)
        #expect(publishers.count == 1)
        let gates = try call.worker("b").gates
        #expect(publishers.allSatisfy { gates[$0.id] == false })
        try call.end()
    }

    @Test func `a node that was away for long has as long as others for the next mute`() throws {
        var call = try KeptCall()
        call.restart()
        let first = call.mute()
        call.world.run(milliseconds: 1_600)
        #expect(call.world.replies[first] != nil)
        call.world.nodes["b"]?.isStopped = true
        call.world.reunite("b")
        let next = call.mute("h")
        call.world.run(milliseconds: 50)
        #expect(call.world.replies[next] == nil)
        call.world.resume("b")
        #expect(call.world.replies[next] != nil)
        try call.end()
    }

    @Test func `a node whose participants have all left meanwhile keeps nothing for them`() throws {
        var call = try KeptCall()
        call.restart()
        for who in ["p", "w"] {
            call.world.send("participant.leave", ["room": "r", "participant": .string(who)])
        }
        call.world.reunite("b")
        #expect(call.world.nodes["b"]?.plane.awaitsHomes == false)
        #expect(call.world.nodes["b"]?.plane.guestTransports == 0)
        try call.end()
    }

    @Test func `nor does it if the home has begun again meanwhile, too`() throws {
        var call = try KeptCall()
        call.restart()
        for who in ["p", "w"] {
            call.world.send("participant.leave", ["room": "r", "participant": .string(who)])
        }
        call.world.run(milliseconds: 1_600)
        call.world.restart("a")
        call.world.forgetSessions()
        call.world.reunite("a")
        call.world.reunite("b")
        #expect(call.world.nodes["b"]?.plane.awaitsHomes == false)
        #expect(call.world.nodes["b"]?.plane.guestTransports == 0)
    }

    @Test func `facts that come late count no longer when the node has all again`() throws {
        var call = try KeptCall()
        call.restart()
        let facts = try #require(call.world.nodes["b"]?.plane.placeFacts)
        call.world.reunite("b")
        call.world.nodes["a"]?.plane.takePlaceFacts(facts, of: "b", at: call.world.now)
        _ = call.mute()
        #expect(call.world.nodes["a"]?.plane.places?.nodes["b"]?.keepsGuests == false)
        try call.end()
    }

    @Test func `a home keeps the number of its lease`() throws {
        var call = try KeptCall()
        call.restart()
        let guests = try #require(call.world.nodes["b"]?.plane.places?.guests)
        let lease = try #require(guests.lost.values.first?.lease)
        call.world.reunite("b")
        #expect(call.world.nodes["b"]?.plane.places?.guests.homes["a"]?.lease == lease)
        try call.end()
    }

    @Test func `what the process before has told counts no longer`() throws {
        var call = try KeptCall()
        let unheard = JSON.compact(UnheardNodes(unheard: ["c"]))
        call.world.nodes["a"]?.plane.receivePlaceEvents(unheard, from: "b", at: call.world.now)
        let (slot, binding) = try #require(try call.worker("b").bindings.first)
        let number = binding.subscription
        call.world.tell(.videoHeld(slot, subscription: number, .quality), of: "b")
        let room = try #require(call.world.nodes["a"]?.plane.rooms["r"]?.room)
        #expect(room.subscriptions[number]?.held == .quality)
        call.restart()
        call.world.reunite("b")
        let after = try #require(call.world.nodes["a"]?.plane)
        #expect(after.rooms["r"]?.room.subscriptions[number]?.held == nil)
        #expect(after.places?.detours.hears("b", "c") == true)
        call.world.run(milliseconds: 6_000)
        try call.end()
    }

    @Test func `who came and left in between is as the room says`() throws {
        var call = try KeptCall()
        call.restart()
        let leaving = call.world.send("participant.leave", ["room": "r", "participant": "w"])
        let late: [String: JSON] = ["room": "r", "participant": "q"]
        let joining = call.world.send("participant.join", .object(late), by: "b")
        let sdp = JSON.string(TestOffer(["0:video:sendonly"]).text)
        let offer: [String: JSON] = late.merging(["sdp": sdp]) { $1 }
        let offering = call.world.send("transport.offer", .object(offer), by: "b")
        call.world.reunite("b")
        for id in [leaving, joining, offering] { #expect(call.world.replies[id] != nil) }
        let new = try call.world.join("n", by: "c", "0:video:sendonly").stream
        try call.world.join("m", by: nil, "0:video:recvonly")
        try call.world.watch("m", new)
        #expect(try call.worker("b").transports.count == 2)
        #expect(call.resumed(at: "b").count == 1)
        #expect(call.told("participant.connection") == [])
        #expect(try call.connections().filter { $0 == .connected }.count == 3)
        try call.world.join("o", by: "b", "0:video:recvonly")
        try call.world.watch("o", new)
        try call.end("n", "m", "o", "q")
    }

    @Test func `a room that is closed in between leaves nothing`() throws {
        var call = try KeptCall()
        call.restart()
        let id = call.world.send("room.close", ["room": "r"])
        call.world.reunite("b")
        #expect(call.world.replies[id] != nil)
        call.world.run(milliseconds: 16_000)
        try call.expectNothingLeft()
    }

    @Test func `what no home asks for ends after a while`() throws {
        var call = try KeptCall()
        call.world.restart("b")
        call.world.run(milliseconds: 14_000)
        #expect(call.world.nodes["b"]?.plane.awaitsHomes == true)
        call.world.run(milliseconds: 2_000)
        #expect(call.world.nodes["b"]?.plane.awaitsHomes == false)
        #expect(call.told("participant.connection").count == 2)
        call.world.reunite("b")
        try call.end()
    }

    @Test func `home and node begin again at once`() throws {
        var call = try KeptCall()
        let before = try call.worker("b")
        call.world.nodes["b"]?.commands = []
        call.world.restart("b", isKnown: true)
        call.world.restart("a")
        let id = call.mute()
        call.world.run(milliseconds: 300)
        #expect(call.world.replies[id] == nil)
        call.world.forgetSessions()
        call.world.reunite("b")
        call.world.reunite("a")
        #expect(call.world.replies[id] != nil)
        #expect(call.told("participant.connection") == [])
        let new = try call.worker("b")
        #expect(Set(new.transports.keys) == Set(before.transports.keys))
        #expect(Set(call.resumed(at: "b")) == Set(before.transports.keys))
        let closed = new.gates.values.contains(false)
        #expect(closed)
        try call.end()
    }

    @Test func `a node that could not follow has nobody any longer`() throws {
        var call = try KeptCall()
        let before = try call.worker("b")
        call.world.nodes["b"]?.commands = []
        call.world.nodes["b"]?.plane.endGuests(of: "a", at: call.world.now)
        call.world.nodes["a"]?.plane.disownPlaces(at: "b", at: call.world.now)
        call.world.run(milliseconds: 2_000)
        #expect(call.resumed(at: "b") == [])
        #expect(before.transports.count == 2)
        #expect(try call.worker("b").transports.isEmpty)
        #expect(call.told("participant.connection").count == 2)
        // It is there for others, over the same link.
        try call.world.join("n", by: "b", "0:video:recvonly")
        #expect(try call.worker("b").transports.count == 1)
        try call.end("n")
    }

    @Test func `what a home goes on with and does not build anew ends`() throws {
        var call = try KeptCall()
        call.restart()
        call.world.restart("a")
        call.world.forgetSessions()
        // The facts of another process, to which the home sent this.
        let facts = try #require(call.world.nodes["c"]?.plane.placeFacts)
        call.world.nodes["a"]?.plane.takePlaceFacts(facts, of: "b", at: call.world.now)
        call.world.settle()
        #expect(try call.worker("b").transports.isEmpty)
        #expect(call.world.nodes["b"]?.plane.awaitsHomes == false)
        call.world.reunite("a")
        #expect(call.told("participant.connection").count == 2)
        try call.end()
    }

    @Test func `who leaves while both begin again leaves nothing`() throws {
        var call = try KeptCall()
        call.restart()
        call.world.restart("a")
        let leaving = call.world.send("participant.leave", ["room": "r", "participant": "w"])
        call.world.forgetSessions()
        call.world.reunite("b")
        call.world.reunite("a")
        #expect(call.world.replies[leaving] != nil)
        #expect(try call.worker("b").transports.count == 1)
        let guests = call.world.nodes["b"]?.plane.places?.guests.homes["a"]?.workers[0]
        #expect(guests?.objects.count == 1 && guests?.transports.used.count == 1)
        #expect(guests?.objects.values.first?.isAdopted == false)
        try call.end()
    }

    @Test func `a mirror has a handle that no process had`() throws {
        var call = try KeptCall()
        var seen: Set<PublicationID> = []
        for _ in 0..<3 {
            // They come and go without a word to the transports.
            for _ in 0..<3 {
                let id = try call.world.done(
                    "subscription.list",
                    ["room": "r", "participant": "w"]
                )
                .decode(SubscriptionList.Result.self).subscriptions.last?.subscription
                let params: JSON = [
                    "room": "r", "subscription": .string(try #require(id).rawValue),
                ]
                _ = try call.world.done("subscription.remove", params)
                try call.world.watch("w", call.own)
            }
            for case .mirror(let mirror) in call.world.nodes["b"]?.commands ?? [] {
                seen.insert(mirror.configuration.id)
            }
            call.restart()
            call.world.reunite("b")
            for case .mirror(let mirror) in call.world.nodes["b"]?.commands ?? [] {
                #expect(!seen.contains(mirror.configuration.id))
            }
        }
        try call.end()
    }

    @Test func `speech that ended with the process is over`() throws {
        var world = PlaceWorld("a", "b")
        _ = try world.done("room.create", ["room": "r"])
        try world.join("p", by: "b", "0:audio:sendonly")
        let worker = try #require(world.nodes["b"]?.worker)
        let publication = try #require(
            worker.transports.values.flatMap(\.publications).first?.id
        )
        let transport = try #require(worker.transports.keys.first)
        world.tell(.transport(transport, .connected), of: "b")
        world.tell(.speech(publication, .began(at: world.now)), of: "b")
        #expect(isSpeaking(in: world))
        world.restart("b", isKnown: true)
        #expect(isSpeaking(in: world))
        world.reunite("b")
        #expect(!isSpeaking(in: world))
    }

    private func isSpeaking(in world: PlaceWorld) -> Bool {
        let room = world.nodes["a"]?.plane.rooms["r"]?.room
        return room?.participants["p"]?.transports.flatMap(\.tracks)
            .contains { $0.speaking != nil } == true
    }
}

extension WorkerCommand {
    /// Whether it tells the link thread of media.
    fileprivate var isRoute: Bool {
        switch self {
        case .link(.send), .link(.receive): true
        default: false
        }
    }
}
