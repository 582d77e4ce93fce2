import RTP
import Testing

@testable import Contract
@testable import ControlPlane
@testable import JSON
@testable import Rooms
@testable import WorkerInterface

/// Participants at other nodes whose home begins again with its rooms.
@Suite struct PlaceReturnTests {
    /// A room at `a`: `p` publishes at `b`, `v` watches it at `c`, and `w` at `b`; `h` is at the
    /// home, `v` watches it, and it watches `p`.
    private struct Call: PlaceStory {
        var world = PlaceWorld("a", "b", "c")
        var stream = ""

        init() throws {
            _ = try world.done("room.create", ["room": "r"])
            stream = try #require(try world.join("p", by: "b", "0:video:sendonly").stream)
            let own = try world.join("h", by: nil, "0:video:sendonly", "1:video:recvonly").stream
            try world.join("v", by: "c", "0:video:recvonly", "1:video:recvonly")
            try world.join("w", by: "b", "0:video:recvonly")
            for (viewer, stream) in [("v", stream), ("v", own), ("w", stream), ("h", stream)] {
                try world.watch(viewer, stream)
            }
            for name in ["a", "b", "c"] {
                for transport in try worker(name).transports.keys {
                    world.tell(.transport(transport, .connected), of: name)
                }
            }
            world.events = []
        }

        /// Ends the room; nothing is left at any node.
        mutating func end(_ others: String...) throws {
            for who in ["p", "v", "w", "h"] + others {
                let params: JSON = ["room": "r", "participant": .string(who)]
                _ = try world.done("participant.leave", params)
            }
            _ = try world.done("room.close", ["room": "r"])
            try expectNothingLeft()
        }
    }

    @Test func `who is elsewhere stays connected when the home begins again`() throws {
        var call = try Call()
        for _ in 0..<3 {
            let before = (try call.worker("b"), try call.worker("c"))
            call.world.warnings = []
            for name in ["b", "c"] { call.world.nodes[name]?.orders = [] }
            call.world.restart("a")
            call.world.run(milliseconds: 300)
            call.world.reunite("a")
            #expect(call.world.warnings.filter { $0.hasPrefix("a:") } == [])
            #expect(call.told("participant.connection") == [])
            #expect(call.told("stream.destroyed") == [])
            let states = try call.connections()
            #expect(states == [.connected, .connected, .connected, .connected])
            for (name, old) in [("b", before.0), ("c", before.1)] {
                let new = try call.worker(name)
                #expect(new.transports == old.transports, "\(name)")
                #expect(new.mirrors == old.mirrors, "\(name)")
                #expect(new.gates == old.gates, "\(name)")
                #expect(new.bindings == old.bindings, "\(name)")
                let hasEnded = try #require(call.world.nodes[name]).orders.contains { order in
                    switch order {
                    case .link(.end), .unmirror, .gate(_, open: false): true
                    default: false
                    }
                }
                #expect(!hasEnded, "\(name)")
                let isLate = try #require(call.world.nodes["a"]?.plane.places?.nodes[name])
                #expect(!isLate.isDenied && isLate.owesNothing && isLate.due == nil)
            }
            call.world.run(milliseconds: 20_000)
        }
        #expect(try call.worker("b").transports.count == 2)
        try call.end()
    }

    @Test func `calls go on for those who stayed`() throws {
        var call = try Call()
        call.world.restart("a")
        call.world.reunite("a")
        let new = try call.world.join("n", by: "c", "0:video:sendonly").stream
        try call.world.join("m", by: nil, "0:video:recvonly")
        try call.world.join("o", by: "b", "0:video:recvonly")
        for viewer in ["m", "o"] { try call.world.watch(viewer, new) }
        for name in ["a", "b", "c"] {
            #expect(try call.worker(name).bindings.values.count { $0.open } == 2, "\(name)")
        }
        let id = call.mute()
        #expect(call.world.replies[id] != nil)
        for name in ["a", "b", "c"] {
            let closed = try call.worker(name).gates.values.count { !$0 }
            #expect(closed == 1, "\(name)")
        }
        try call.end("n", "m", "o")
    }

    @Test func `a mute in between is answered when the nodes have it`() throws {
        var call = try Call()
        call.world.restart("a")
        let id = call.mute()
        call.world.run(milliseconds: 500)
        #expect(call.world.replies[id] == nil)
        #expect(try call.worker("b").gates.values.contains(true))
        call.world.nodes["c"]?.isStopped = true
        call.world.reunite("a")
        #expect(call.world.replies[id] == nil)
        #expect(call.world.nodes["a"]?.plane.places?.nodes["c"]?.isDenied == true)
        call.world.resume("c")
        #expect(call.world.replies[id] != nil)
        let publishers = try call.worker("b").gates.filter { $0.value }
        #expect(publishers.isEmpty)
        #expect(try call.connections().allSatisfy { $0 == .connected })
        try call.end()
    }

    @Test func `a room that is closed in between leaves nothing at the nodes`() throws {
        var call = try Call()
        call.world.restart("a")
        let id = call.world.send("room.close", ["room": "r"])
        call.world.run(milliseconds: 500)
        #expect(call.world.replies[id] == nil)
        call.world.reunite("a")
        #expect(call.world.replies[id] != nil)
        try call.expectNothingLeft()
    }

    @Test func `who leaves in between has nothing left when that is answered`() throws {
        var call = try Call()
        call.world.restart("a")
        let id = call.world.send("participant.leave", ["room": "r", "participant": "p"])
        call.world.nodes["b"]?.isStopped = true
        call.world.reunite("a")
        #expect(call.world.replies[id] == nil)
        call.world.resume("b")
        #expect(call.world.replies[id] != nil)
        #expect(try call.worker("b").transports.count == 1)
        #expect(try call.worker("c").mirrors.count == 1)
        #expect(try call.connections() == [.connected, .connected, .connected])
        for name in ["b", "c"] {
            let guests = call.world.nodes[name]?.plane.places?.guests
            #expect(guests?.lost.isEmpty == true, "\(name)")
        }
        _ = try call.world.join("p", by: "b", "0:video:sendonly")
        try call.end()
    }

    @Test func `who offers in between is connected there and stays`() throws {
        var call = try Call()
        let who: [String: JSON] = ["room": "r", "participant": "x"]
        _ = try call.world.done("participant.join", .object(who), by: "c")
        call.world.restart("a")
        let sdp = JSON.string(TestOffer(["0:video:recvonly"]).text)
        let id = call.world.send("transport.offer", .object(who.merging(["sdp": sdp]) { $1 }))
        call.world.run(milliseconds: 500)
        call.world.reunite("a")
        #expect(call.world.replies[id] != nil)
        call.world.run(milliseconds: 16_000)
        #expect(call.told("participant.connection") == [])
        #expect(try call.worker("c").transports.count == 2)
        try call.end("x")
    }

    @Test func `a node that is not heard is given up when its last lease is over`() throws {
        var call = try Call()
        call.world.restart("a")
        let id = call.mute()
        call.world.run(milliseconds: 4_200)
        #expect(call.world.replies[id] == nil)
        call.world.run(milliseconds: 100)
        #expect(call.world.replies[id] != nil)
        let states = try call.connections()
        #expect(states == [.disconnected, .connected, .disconnected, .disconnected])
        #expect(call.world.nodes["a"]?.plane.places?.nodes["b"]?.isDenied == true)
        // It ends its old transports when it is heard, and is a node like any other again.
        call.world.reunite("a")
        #expect(try call.worker("b").transports.isEmpty)
        #expect(try call.worker("c").transports.isEmpty)
        call.world.run(milliseconds: 16_000)
        #expect(try call.worker("b").transports.isEmpty)
        try call.world.join("w", by: "b", "0:video:recvonly")
        #expect(call.world.nodes["a"]?.plane.places?.nodes["b"]?.isDenied == false)
        try call.end()
    }

    @Test func `a node ends what the home knows nothing of as soon as it is heard`() throws {
        var call = try Call()
        let saved = try #require(call.world.nodes["a"]?.saved)
        _ = try call.world.done("room.create", ["room": "s"])
        _ = try call.world.done("participant.join", ["room": "s", "participant": "z"], by: "c")
        let sdp = JSON.string(TestOffer(["0:video:recvonly"]).text)
        let params: JSON = ["room": "s", "participant": "z", "sdp": sdp]
        _ = try call.world.done("transport.offer", params, by: "c")
        #expect(try call.worker("c").transports.count == 2)
        call.world.nodes["a"]?.saved = saved
        call.world.restart("a")
        call.world.reunite("a")
        #expect(try call.worker("c").transports.count == 1)
        #expect(call.world.nodes["c"]?.plane.places?.guests.lost.isEmpty == true)
        try call.end()
    }

    /// Each process of a home counts its fences from the start.
    @Test(arguments: [true, false])
    func `a fence of the process before is not told to the next one`(isAwaited: Bool) throws {
        var call = try Call()
        let fence = GuestFence(home: "a", worker: 0, epoch: 1, waiting: [0], freed: [])
        let added = call.world.nodes["b"]?.plane.places?.guests.add(fence)
        let number = try #require(added)
        call.world.restart("a", isAwaited: isAwaited)
        call.world.reunite("a")
        let id = call.mute()
        let known = call.world.nodes["b"]?.plane.places?.guests.fences[number]
        #expect(known != nil && known?.home != "a")
        #expect(call.world.replies[id] != nil)
    }

    @Test func `a transport that has ended meanwhile is told as lost`() throws {
        var call = try Call()
        call.world.restart("a")
        let viewer = try #require(try call.worker("c").transports.keys.first)
        call.world.tell(.transport(viewer, .disconnected(.timeout)), of: "c")
        call.world.reunite("a")
        #expect(try call.connections() == [.connected, .connected, .disconnected, .connected])
        #expect(call.told("participant.connection") == ["v"])
        try call.end()
    }

    @Test func `a node of the version before keeps nobody, and all the rest goes on`() throws {
        var call = try Call()
        call.world.restart("a", isAwaited: false)
        call.world.reunite("a")
        let states = try call.connections()
        #expect(states == [.disconnected, .connected, .disconnected, .disconnected])
        for name in ["b", "c"] {
            #expect(try call.worker(name).transports.isEmpty, "\(name)")
        }
        try call.world.join("p", by: "b", "0:video:sendonly")
        try call.end()
    }

    @Test func `a home that is back too late takes nobody from the next one`() throws {
        var call = try Call()
        let records = call.world.nodes["a"]?.journaled
        call.world.kill("a")
        call.world.resume("a")
        call.world.restart("a")
        call.world.reunite("a")
        #expect(try call.worker("b").transports.count == 2)
        call.world.adopt(from: "a", by: "b", records)
        let people = try call.world.done("participant.list", ["room": "r"], to: "b")
            .decode(ParticipantList.Result.self).participants
        #expect(people.map(\.connection) == [.connected, .disconnected, .connected, .connected])
    }

    @Test func `a room of the memory of a process before this was kept has nobody elsewhere`()
        throws
    {
        var call = try Call()
        call.world.nodes["a"]?.saved[RoomRecords.placesKey] = nil
        call.world.restart("a")
        let states = try call.connections()
        #expect(states == [.disconnected, .connected, .disconnected, .disconnected])
        call.world.reunite("a")
        call.world.run(milliseconds: 16_000)
        try call.end()
    }
}
