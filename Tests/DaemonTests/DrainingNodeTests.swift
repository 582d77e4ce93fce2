import RTP
import TestSupport
import Testing

@testable import Contract
@testable import ControlPlane
@testable import JSON
@testable import Rooms
@testable import WorkerInterface

/// Nodes that drain: whom they ask to move, and which rooms leave them.
@Suite struct DrainingNodeTests {
    @Test func `who is elsewhere by the time is not asked`() throws {
        var call = try MovingCall()
        for number in 0..<20 { try call.world.join("x\(number)", by: "c", "0:video:recvonly") }
        call.show(draining: ["c"])
        call.world.run(milliseconds: 30)
        let known = call.asked.count
        for number in 0..<20 {
            let who: JSON = ["room": "r", "participant": .string("x\(number)")]
            _ = try call.world.done("participant.join", who, by: "b")
            let sdp = JSON.string(TestOffer(["0:video:recvonly"]).text)
            let params: JSON = [
                "room": "r", "participant": .string("x\(number)"), "sdp": sdp,
            ]
            _ = try call.world.done("transport.offer", params)
        }
        call.world.run(milliseconds: 2_000)
        #expect(call.asked.dropFirst(known).allSatisfy { $0.hasPrefix("v ") }, "\(call.asked)")
        #expect(known < 5)
    }

    @Test func `who offers first when its node drains already is answered for another`() throws {
        var call = try MovingCall()
        let who: JSON = ["room": "r", "participant": "x"]
        #expect(try call.world.done("participant.join", who, by: "b")["node"] == "b")
        call.show(draining: ["b"])
        let answer = try call.offer("x", peer: 2, "0:video:recvonly")
        #expect(answer.sdp.contains("127.0.0.1 5004"))
        #expect(try call.get("x").node == "a")
        try call.end()
    }

    @Test func `at the deadline those of other homes are sent away`() throws {
        var call = try MovingCall()
        _ = try call.world.done("server.drain", ["deadline": 2], to: "b")
        call.show(draining: ["b"])
        call.world.run(milliseconds: 1_900)
        #expect(call.told("participant.connection") == [])
        #expect(!call.world.serverEvents.contains("b: server.drained"))
        call.world.run(milliseconds: 1_000)
        #expect(try call.get("p").connection == .disconnected)
        #expect(try call.worker("b").transports.isEmpty)
        #expect(call.world.serverEvents.contains("b: server.drained"))
        try call.end()
    }

    @Test func `only rooms of people at the node are looked at`() throws {
        var call = try MovingCall()
        for room in ["q", "s"] { _ = try call.world.done("room.create", ["room": .string(room)]) }
        func rooms(at node: String) -> [String] {
            guard let plane = call.world.nodes["a"]?.plane else { return [] }
            let places = plane.shared.remote?.places(at: node) ?? []
            return plane.rooms.names(withTransportsIn: places)
        }
        #expect(rooms(at: "b") == ["r"] && rooms(at: "c") == ["r"])
        #expect(call.world.nodes["a"]?.plane.rooms.names(withTransportsIn: 0..<1) == ["r"])
        call.show(draining: ["b"])
        call.world.run(milliseconds: 100)
        _ = try call.offerOfPublisher(peer: 2)
        #expect(rooms(at: "b") == ["r"])
        call.connectAll(at: "a")
        #expect(rooms(at: "b") == [] && rooms(at: "c") == ["r"])
        for room in ["q", "s"] { _ = try call.world.done("room.close", ["room": .string(room)]) }
        try call.end()
        for node in ["b", "c"] { #expect(rooms(at: node) == []) }
    }

    @Test func `who was to go to a node that drains too is asked again`() throws {
        var call = try MovingCall()
        call.show(draining: ["a", "b"])
        call.world.run(milliseconds: 100)
        #expect(call.asked == ["p c drain"], "the home knows by itself whether it drains")
        _ = try call.world.done("server.drain", [:])
        call.show(draining: ["a", "b"])
        call.world.run(milliseconds: 1_000)
        #expect(Set(call.asked) == ["p c drain", "w c drain"])
        call.show(draining: ["a", "c"])
        call.world.run(milliseconds: 1_000)
        #expect(call.asked.contains("w b drain") && call.asked.contains("v b drain"))
        call.world.nodes["a"]?.plane.receive(
            .link(.media("b", isAlive: false)),
            from: PlaceWorld.link,
            at: call.world.now
        )
        let count = call.asked.count
        call.world.run(milliseconds: 1_000)
        #expect(call.asked.count == count, "there is nowhere to go")
    }

    @Test func `who does not move is asked again after half a minute`() throws {
        var call = try MovingCall()
        call.show(draining: ["b"])
        call.world.run(milliseconds: 29_000)
        #expect(call.asked == ["p a drain"])
        call.world.run(milliseconds: 2_000)
        #expect(call.asked.count == 2 && call.asked.allSatisfy { $0.hasPrefix("p ") })
    }

    @Test func `nobody joins at a node that drains, if there is another`() throws {
        var call = try MovingCall()
        call.show(draining: ["b"])
        let params: JSON = ["room": "r", "participant": "x"]
        #expect(try call.world.done("participant.join", params, by: "b")["node"] == "a")
        _ = try call.world.done("server.drain", [:])
        call.show(draining: ["a", "b"])
        #expect(try call.world.done("participant.join", params)["node"] == "c")
        call.show(draining: ["a", "b", "c"])
        #expect(try call.world.done("participant.join", params)["node"] == "a")
    }

    @Test func `questions are spread and paced, and end when the node no longer drains`() throws {
        var world = PlaceWorld("a", "b", "c")
        _ = try world.done("room.create", ["room": "r"])
        for number in 0..<40 { try world.join("v\(number)", by: "c", "0:video:recvonly") }
        var call = try MovingCall()
        call.world = world
        call.connectAll(at: "c")
        call.show(draining: ["c"], loads: ["a": 0.5, "b": 0.45, "c": 0.3])
        call.world.run(milliseconds: 400)
        #expect((15...21).contains(call.asked.count))
        call.show(draining: [])
        let count = call.asked.count
        call.world.run(milliseconds: 1_000)
        #expect(call.asked.count == count)
        call.show(draining: ["c"], loads: ["a": 0.5, "b": 0.2])
        call.world.run(milliseconds: 2_000)
        #expect(call.asked.dropFirst(count).allSatisfy { $0.contains(" b drain") })
        #expect(call.asked.count == count + 40, "a drain that begins again asks again")
        call.show(draining: [])
        call.show(draining: ["c"], loads: ["a": 0.3, "b": 0.25])
        call.world.run(milliseconds: 2_000)
        #expect(call.asked.dropFirst(count + 40).allSatisfy { $0.contains(" a drain") }, "the home")
    }

    @Test func `a room leaves a home that drains when nobody is connected there`() throws {
        var call = try MovingCall()
        _ = try call.world.done("server.drain", [:])
        call.show(draining: ["a"])
        call.world.run(milliseconds: 1_000)
        #expect(call.asked.first?.hasPrefix("w ") == true)
        #expect(call.world.handed.isEmpty)
        _ = try call.offer("w", peer: 2, "0:video:recvonly", "1:audio:recvonly")
        for name in ["b", "c"] { call.connectAll(at: name) }
        call.world.run(milliseconds: 1_000)
        #expect(call.world.handed.first?.room == "r" && call.world.handed.first?.node == "a")
        // Its journal is complete, and the registry knows: others take it over.
        let records = call.world.nodes["a"]?.journaled
        call.world.nodes["a"]?.plane.handOver("r", at: call.world.now)
        call.world.settle()
        let before = (try call.worker("b"), try call.worker("c"))
        #expect(before.0.transports.count + before.1.transports.count == 3)
        call.world.events = []
        call.world.adopt(from: "a", by: "b", records)
        for (name, old) in [("b", before.0), ("c", before.1)] {
            let new = try call.worker(name)
            #expect(new.transports.keys == old.transports.keys, "\(name)")
            #expect(new.bindings.values.count { $0.open } == old.bindings.values.count { $0.open })
        }
        #expect(call.told("participant.connection") == [] && call.asked == [])
        call.world.run(milliseconds: 500)
        #expect(!call.world.serverEvents.contains("a: server.drained"), "it might come back")
        call.world.run(milliseconds: 4_000)
        #expect(call.world.serverEvents.contains("a: server.drained"))
        // The former home's last words end nothing that goes on.
        call.world.run(milliseconds: 25_000)
        #expect(try call.worker("b").transports == before.0.transports)
        #expect(try call.worker("c").bindings.values.contains(where: \.open))
        #expect(call.world.warnings == [])
        let home = try call.world.done("room.get", ["room": "r"], to: "b")
        #expect(home["node"] == "b")
        _ = try call.world.done("room.close", ["room": "r"], to: "b")
        for (name, node) in call.world.nodes {
            #expect(node.plane.leakedObjects == [], "\(name)")
            #expect(node.worker.transports.isEmpty && node.worker.mirrors.isEmpty, "\(name)")
        }
    }

    @Test func `a home that takes its room back keeps those at other nodes`() throws {
        var call = try MovingCall()
        let records = call.world.nodes["a"]?.journaled
        call.world.nodes["a"]?.plane.handOver("r", at: call.world.now)
        call.world.settle()
        let before = (try call.worker("b"), try call.worker("c"))
        call.world.run(milliseconds: 2_500)
        call.world.events = []
        call.world.adopt(from: "a", by: "a", records)
        // Its last words find nothing.
        call.world.run(milliseconds: 20_000)
        #expect(call.told("participant.connection").count == 1, "the viewer at the home")
        for (name, old) in [("b", before.0), ("c", before.1)] {
            #expect(try call.worker(name).transports.keys == old.transports.keys, "\(name)")
        }
        #expect(try call.worker("c").bindings.values.count { $0.open } == 2)
        _ = try call.world.done(
            "participant.hardMute",
            ["room": "r", "participant": "p", "media": ["audio", "video"]]
        )
        #expect(try call.worker("b").gates.values.allSatisfy { !$0 })
        try call.end()
    }

    @Test func `what the next home has asked about outlives the word of the former one`() throws {
        var call = try MovingCall()
        let records = call.world.nodes["a"]?.journaled
        call.world.nodes["a"]?.plane.handOver("r", at: call.world.now)
        call.world.settle()
        let before = try call.worker("b")
        // The next home has to wait for a node that does not answer.
        call.world.nodes["c"]?.isStopped = true
        call.world.adopt(from: "a", by: "b", records)
        call.world.run(milliseconds: 4_100)
        #expect(try call.worker("b").transports.keys == before.transports.keys)
        call.world.run(milliseconds: 16_000)
        #expect(try call.worker("b").transports.keys == before.transports.keys)
        #expect(try call.world.done("room.get", ["room": "r"], to: "b")["node"] == "b")
    }

    @Test func `what nobody takes over ends at the nodes, too`() throws {
        var call = try MovingCall()
        call.world.nodes["a"]?.plane.handOver("r", at: call.world.now)
        call.world.settle()
        #expect(try call.worker("a").transports.isEmpty)
        #expect(try call.worker("b").transports.count == 1)
        call.world.run(milliseconds: 3_900)
        #expect(try call.worker("b").transports.count == 1)
        call.world.run(milliseconds: 200)
        #expect(try call.worker("b").transports.isEmpty && call.worker("c").transports.isEmpty)
        #expect(call.world.warnings == [])
    }

    @Test func `at the deadline rooms leave with people still connected`() throws {
        var call = try MovingCall()
        _ = try call.world.done("server.drain", ["deadline": 5])
        call.show(draining: ["a"])
        call.world.run(milliseconds: 4_900)
        #expect(call.world.handed.isEmpty)
        call.world.run(milliseconds: 300)
        #expect(call.world.handed.map(\.room).contains("r"))
        #expect(call.world.handed.allSatisfy { $0.isForced }, "also what came back before")
        // No node takes it: it ends.
        call.world.run(milliseconds: 10_000)
        #expect(call.told("room.closed") == ["room.closed"])
    }

    @Test func `a room that comes back after the time of grace ends`() throws {
        var call = try MovingCall()
        _ = try call.world.done("server.drain", ["deadline": 1])
        call.show(draining: ["a"])
        call.world.run(milliseconds: 10_500)
        let records = call.world.nodes["a"]?.journaled
        call.world.nodes["a"]?.plane.handOver("r", at: call.world.now)
        call.world.settle()
        call.world.run(milliseconds: 2_500)
        #expect(!call.world.serverEvents.contains("a: server.drained"))
        call.world.adopt(from: "a", by: "a", records)
        call.world.run(milliseconds: 1_000)
        #expect(call.told("room.closed") == ["room.closed"])
        call.world.run(milliseconds: 2_000)
        #expect(call.world.serverEvents.contains("a: server.drained"))
    }
}
