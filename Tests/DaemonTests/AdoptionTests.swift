import RTP
import Testing

@testable import Contract
@testable import ControlPlane
@testable import JSON
@testable import Rooms
@testable import WorkerInterface

/// Transports that outlive the home of their room, at nodes that go on.
@Suite struct AdoptionTests {
    /// A room at `a`: `p` publishes at `b`, `v` watches it at `c`, and `w` at `b`; `h` is at the
    /// home, and `v` watches it too.
    private struct Call: PlaceStory {
        var world = PlaceWorld("a", "b", "c")
        var stream = ""
        var lost = ""

        init() throws {
            _ = try world.done("room.create", ["room": "r"])
            stream = try #require(try world.join("p", by: "b", "0:video:sendonly").stream)
            lost = try #require(try world.join("h", by: nil, "0:video:sendonly").stream)
            try world.join("v", by: "c", "0:video:recvonly", "1:video:recvonly")
            try world.join("w", by: "b", "0:video:recvonly")
            try world.watch("v", stream)
            try world.watch("v", lost)
            try world.watch("w", stream)
        }

        /// Kills the home; another node goes on.
        mutating func lose(to heir: String = "b") {
            world.events = []
            for name in ["b", "c"] { world.nodes[name]?.orders = [] }
            world.kill("a")
            world.adopt(from: "a", by: heir)
        }

        /// A room of another home with a viewer there; returns its subscription's number.
        mutating func watched(at home: String) throws -> (number: UInt64, stream: String) {
            _ = try world.done("room.create", ["room": "own"], to: home)
            var stream = ""
            for (who, line) in [("x", "0:video:sendonly"), ("y", "0:video:recvonly")] {
                let params: [String: JSON] = ["room": "own", "participant": .string(who)]
                _ = try world.done("participant.join", .object(params), to: home)
                let sdp = JSON.string(TestOffer([line]).text)
                let offer = JSON.object(params.merging(["sdp": sdp]) { $1 })
                let result = try world.done("transport.offer", offer, to: home)
                    .decode(TransportOffer.Result.self)
                stream = result.mids.first?.stream?.rawValue ?? stream
            }
            let params: JSON = ["room": "own", "participant": "y", "stream": .string(stream)]
            let id = try world.done("subscription.add", params, to: home)["subscription"]
            guard case .string(let text)? = id else { return (0, stream) }
            return (try #require(UInt64(text.dropFirst(4))), stream)
        }

        /// Rooms and handles that are left at the nodes that go on.
        mutating func end(at heir: String) throws {
            for who in ["p", "v", "w", "h"] {
                let params: JSON = ["room": "r", "participant": .string(who)]
                _ = try world.done("participant.leave", params, to: heir)
            }
            _ = try world.done("room.close", ["room": "r"], to: heir)
            for name in ["b", "c"] {
                let node = try #require(world.nodes[name])
                #expect(node.plane.leakedObjects == [], "\(name)")
                #expect(node.worker.transports.isEmpty && node.worker.mirrors.isEmpty, "\(name)")
                #expect(node.plane.places?.guests.lost.isEmpty == true, "\(name)")
                #expect(node.plane.places?.routes.isEmpty == true, "\(name)")
            }
        }
    }

    @Test(arguments: ["b", "c"]) func `who is elsewhere stays connected`(heir: String) throws {
        var call = try Call()
        let before = (try call.worker("b"), try call.worker("c"))
        for name in ["b", "c"] {
            for transport in try call.worker(name).transports.keys {
                call.world.tell(.transport(transport, .connected), of: name)
            }
        }
        call.lose(to: heir)
        #expect(call.world.warnings == [])
        #expect(call.told("participant.moveWanted") == ["h"])
        #expect(call.told("participant.connection") == ["h"])
        let state = try call.world.done("participant.list", ["room": "r"], to: heir)
        let people = try state.decode(ParticipantList.Result.self).participants
        #expect(people.map(\.connection) == [.connected, .disconnected, .connected, .connected])
        #expect(people.map(\.node) == ["b", heir, "c", "b"])
        for (name, old) in [("b", before.0), ("c", before.1)] {
            let new = try call.worker(name)
            #expect(new.transports == old.transports, "\(name)")
            let areOpen = new.gates.filter { new.home(of: $0.key) != nil }.values.allSatisfy { $0 }
            #expect(areOpen)
            for (slot, binding) in new.bindings where binding.open {
                #expect(old.bindings[slot]?.publication == binding.publication, "\(name)")
            }
        }
        let bound = try call.worker("c").bindings.values.count { $0.open }
        let mirrors = try call.worker("c").mirrors
        #expect(bound == 1, "only the stream of the lost node has ended")
        #expect(mirrors.count == 1 && mirrors.allSatisfy { before.1.mirrors[$0.key] != nil })
        try call.end(at: heir)
    }

    @Test func `media keeps its way between the others, under another name`() throws {
        var call = try Call()
        call.lose(to: "c")
        let sent = try #require(call.world.nodes["b"]).orders.compactMap { order in
            if case .link(.send(let id, as: let name, to: ["c"])) = order {
                (handle: id, name: name)
            } else {
                nil
            }
        }
        let received = try #require(call.world.nodes["c"]).orders.compactMap { order in
            if case .link(.receive(let made, let name, from: "b")) = order {
                (handle: made.id, name: name)
            } else {
                nil
            }
        }
        let name = try #require(sent.last).name
        #expect(name.home == "c/boot-c" && received.map(\.name) == [name])
        // The media that c took from the lost home has ended, and nothing else.
        for (node, handle) in [("b", sent.last?.handle), ("c", received.first?.handle)] {
            let kept = try #require(handle)
            let hasEnded = try #require(call.world.nodes[node]).orders.contains { order in
                switch order {
                case .link(.end(let id)), .unmirror(let id), .gate(let id, open: false): id == kept
                default: false
                }
            }
            #expect(!hasEnded, "\(node)")
        }
    }

    @Test func `a mute by the new home acts at all nodes before it is answered`() throws {
        var call = try Call()
        call.lose()
        let params: JSON = ["room": "r", "participant": "p", "media": ["video"]]
        call.world.nodes["c"]?.isStopped = true
        let id = call.world.send("participant.hardMute", params, to: "b")
        #expect(call.world.replies[id] == nil)
        call.world.resume("c")
        #expect(call.world.replies[id] != nil)
        for name in ["b", "c"] {
            let worker = try call.worker(name)
            let video = worker.gates.filter { worker.home(of: $0.key) != nil }
            #expect(!video.isEmpty && video.values.allSatisfy { !$0 }, "\(name)")
        }
    }

    @Test func `who offers again is answered for the transport that it has`() throws {
        var call = try Call()
        let who: [String: JSON] = ["room": "r", "participant": "v"]
        func offer(to home: String) throws -> (fragment: String, text: String) {
            let lines = ["0:video:recvonly", "1:video:recvonly", "2:audio:recvonly"]
            let sdp = JSON.string(TestOffer(lines).text)
            let params = JSON.object(who.merging(["sdp": sdp]) { $1 })
            let text = try call.world.done("transport.offer", params, to: home)
                .decode(TransportOffer.Result.self).sdp
            let line = text.split(separator: "\r\n").first { $0.hasPrefix("a=ice-ufrag") }
            return (String(try #require(line)), text)
        }
        let before = try offer(to: "a")
        call.lose()
        let after = try offer(to: "b")
        #expect(after.fragment == before.fragment)
        #expect(after.text.contains("127.0.0.3 5004") && after.text.contains("03:03:03"))
        #expect(try call.worker("c").transports.count == 1)
        // New streams reach those who stayed.
        let new = try call.world.join("n", by: nil, at: "b", "0:video:sendonly").stream
        try call.world.watch("v", new, at: "b")
        let worker = try call.worker("c")
        #expect(worker.bindings.values.count { $0.open } == 2 && worker.mirrors.count == 2)
    }

    @Test func `a node that does not answer is gone when its last lease is over`() throws {
        var call = try Call()
        call.world.nodes["c"]?.isStopped = true
        call.lose()
        #expect(call.told("participant.moveWanted") == [])
        call.world.run(milliseconds: 4_200)
        #expect(call.world.nodes["b"]?.plane.hasRoom("r") == false)
        call.world.run(milliseconds: 100)
        #expect(call.world.nodes["b"]?.plane.hasRoom("r") == true)
        #expect(call.told("participant.moveWanted") == ["h", "v"])
        let open = try call.worker("b").bindings.values.count { $0.open }
        #expect(open == 1, "w watches p")
        // It answers at last, and gets nothing that the room would not know of.
        call.world.resume("c")
        #expect(try call.worker("c").leases.values.allSatisfy { $0 == 0 })
    }

    @Test func `leases are those of the new home, and none at itself`() throws {
        var call = try Call()
        call.lose()
        let lease = try #require(call.world.nodes["c"]?.plane.places?.guests.homes["b"]).lease
        #expect(try call.worker("c").leases.values.map { $0 } == [lease])
        #expect(try call.worker("b").leases.isEmpty)
    }

    @Test func `a lease counts only once the new home has said what may be sent`() throws {
        var call = try Call()
        // The home has gone on without c, which has not heard of it.
        call.world.nodes["c"]?.isStopped = true
        let params: JSON = ["room": "r", "participant": "p", "media": ["video"]]
        let id = call.world.send("participant.hardMute", params)
        call.world.run(milliseconds: 1_400)
        #expect(call.world.replies[id] != nil)
        call.world.nodes["a"]?.isStopped = true
        call.world.nodes["c"]?.waiting = []
        call.world.resume("c")
        call.world.nodes["c"]?.commands = []
        call.lose()
        let commands = try #require(call.world.nodes["c"]).commands
        let leases = commands.indices.filter { index in
            if case .lease = commands[index] { true } else { false }
        }
        let closed = try #require(
            commands.firstIndex { if case .mirror(let made) = $0 { !made.open } else { false } }
        )
        #expect(!leases.isEmpty && leases.allSatisfy { $0 > closed })
    }

    @Test func `who has left meanwhile is sent nothing by the new home`() throws {
        var call = try Call()
        try call.world.join("u", by: "c", "0:video:recvonly")
        try call.world.watch("u", call.stream)
        call.world.nodes["c"]?.isStopped = true
        let id = call.world.send("participant.leave", ["room": "r", "participant": "v"])
        call.world.run(milliseconds: 1_400)
        #expect(call.world.replies[id] != nil)
        call.world.nodes["a"]?.isStopped = true
        call.world.nodes["c"]?.waiting = []
        call.world.resume("c")
        call.lose()
        let worker = try call.worker("c")
        #expect(worker.transports.count == 1 && worker.bindings.values.count { $0.open } == 1)
        // Before the lease counts.
        let commands = try #require(call.world.nodes["c"]).commands
        let closed = commands.lastIndex { if case .close = $0 { true } else { false } }
        let leased = commands.lastIndex { if case .lease = $0 { true } else { false } }
        let order = (try #require(closed), try #require(leased))
        #expect(order.0 < order.1)
        _ = try call.world.done("participant.leave", ["room": "r", "participant": "u"], to: "b")
        let params: JSON = ["room": "r", "participant": "v"]
        call.world.send("participant.join", params, to: "b")
        // Media that only they were sent is nobody's.
        call.world.run(milliseconds: 15_000)
        try call.end(at: "b")
    }

    @Test func `a transport whose last offer is in no journal ends, and no other`() throws {
        var call = try Call()
        try call.world.join("u", by: "c", "0:video:recvonly")
        try call.world.watch("u", call.stream)
        let records = call.world.nodes["a"]?.journaled
        let sdp = JSON.string(
            TestOffer(["0:video:recvonly", "1:video:recvonly", "2:video:sendonly"]).text
        )
        let params: JSON = ["room": "r", "participant": "v", "sdp": sdp]
        _ = try call.world.done("transport.offer", params)
        call.world.events = []
        call.world.kill("a")
        call.world.adopt(from: "a", by: "b", records)
        #expect(call.told("participant.moveWanted") == ["h", "v"])
        let worker = try call.worker("c")
        #expect(worker.transports.count == 1 && worker.bindings.values.count { $0.open } == 1)
        _ = try call.world.done("participant.leave", ["room": "r", "participant": "u"], to: "b")
        call.world.run(milliseconds: 15_000)
        try call.end(at: "b")
    }

    @Test func `the rooms of the new home have their own subscriptions`() throws {
        var call = try Call()
        let own = try call.watched(at: "b")
        call.lose()
        call.world.events = []
        let slot = try #require(
            try call.worker("b").bindings.first { $0.value.subscription == own.number }
        )
        call.world.tell(.started(slot.key, subscription: own.number), of: "b")
        let told = call.world.events.filter { $0.event == "subscription.connected" }
        #expect(told.map(\.room) == ["own"])
        #expect(own.number < 1 << 53)
        _ = try call.world.done("room.close", ["room": "own"], to: "b")
        try call.end(at: "b")
    }

    @Test func `the next home too is outlived`() throws {
        var call = try Call()
        call.lose()
        call.world.events = []
        call.world.kill("b")
        call.world.adopt(from: "b", by: "c")
        #expect(call.told("participant.moveWanted") == ["p", "w"])
        let worker = try call.worker("c")
        #expect(worker.transports.count == 1 && worker.leases.isEmpty)
        for who in ["p", "v", "w", "h"] {
            let params: JSON = ["room": "r", "participant": .string(who)]
            _ = try call.world.done("participant.leave", params, to: "c")
        }
        _ = try call.world.done("room.close", ["room": "r"], to: "c")
        #expect(call.world.nodes["c"]?.plane.leakedObjects == [])
    }

    @Test func `a node that is lost before the room goes on is not waited for again`() throws {
        var call = try Call()
        call.world.nodes["c"]?.isStopped = true
        call.lose()
        call.world.nodes["b"]?.plane.losePlaces(at: "c", at: call.world.now)
        call.world.run(milliseconds: 4_300)
        #expect(call.told("participant.moveWanted") == ["h", "v"])
        call.world.nodes["b"]?.plane.cancelAdoption(of: "r")
    }

    @Test func `a room that goes on elsewhere after all is not taken`() throws {
        var call = try Call()
        call.world.nodes["c"]?.isStopped = true
        call.lose()
        call.world.nodes["b"]?.plane.cancelAdoption(of: "r")
        call.world.resume("c")
        call.world.run(milliseconds: 5_000)
        #expect(call.world.nodes["b"]?.plane.hasRoom("r") == false)
    }

    @Test func `the new home hears what was told to nobody`() throws {
        var call = try Call()
        let transports = try call.worker("b").transports
        let speaker = try #require(transports.first { !$0.value.publications.isEmpty })
        let viewer = try #require(transports.first { $0.value.publications.isEmpty })
        call.world.kill("a")
        call.world.tell(.transport(speaker.key, .connected), of: "b")
        call.world.tell(.transport(speaker.key, .reconnecting), of: "b")
        call.world.tell(.transport(viewer.key, .connected), of: "b")
        call.world.tell(.transport(viewer.key, .disconnected(.timeout)), of: "b")
        call.world.events = []
        call.world.adopt(from: "a", by: "c")
        let state = try call.world.done("participant.list", ["room": "r"], to: "c")
        let people = try state.decode(ParticipantList.Result.self).participants
        let states = people.map(\.connection)
        #expect(states == [.reconnecting, .disconnected, .connecting, .disconnected])
        #expect(call.told("participant.moveWanted") == ["h"])
    }

    @Test func `what nobody goes on with ends after 15 s`() throws {
        var call = try Call()
        call.world.kill("a")
        call.world.run(milliseconds: 14_900)
        #expect(try call.worker("c").transports.count == 1)
        call.world.run(milliseconds: 200)
        for name in ["b", "c"] {
            let node = try #require(call.world.nodes[name])
            #expect(node.worker.transports.isEmpty && node.worker.mirrors.isEmpty)
            #expect(node.plane.leakedObjects == [])
        }
    }

    @Test func `a killed node that is back is another home, whose media is its own`() throws {
        var call = try Call()
        let records = call.world.nodes["a"]?.journaled
        call.world.kill("a")
        // Its new life knows nothing of the room, and gives its objects the same names.
        call.world.begin("a")
        _ = try call.world.done("room.create", ["room": "r"])
        let stream = try call.world.join("x", by: "b", "0:video:sendonly").stream
        try call.world.join("y", by: "c", "0:video:recvonly")
        try call.world.watch("y", stream)
        let before = try call.worker("c").mirrors
        #expect(before.count == 3 && Set(before.values.map(\.home)).count == 3)
        call.world.adopt(from: "a", by: "b", records, boot: "boot-a")
        let after = try call.worker("c").mirrors
        #expect(after.count == 2 && after.allSatisfy { before[$0.key]?.home == $0.value.home })
        _ = try call.world.done("room.close", ["room": "r"])
        #expect(try call.worker("c").mirrors.count == 1)
        #expect(try call.worker("c").bindings.values.count { $0.open } == 1)
        try call.end(at: "b")
    }
}
