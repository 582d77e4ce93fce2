import RTP
import Testing

@testable import Contract
@testable import ControlPlane
@testable import JSON
@testable import Rooms
@testable import WorkerInterface

/// Participants of a room at several nodes, as their control planes run them.
@Suite struct PlaceTests {
    /// Makes a room at `a` with a publisher there and a viewer at `b`.
    private func call() throws -> (world: PlaceWorld, stream: String) {
        var world = PlaceWorld("a", "b", "c")
        _ = try world.done("room.create", ["room": "r"])
        let stream = try world.join("p", by: nil, "0:video:sendonly").stream
        try world.join("v", by: "b", "0:video:recvonly")
        try world.watch("v", stream)
        return (world, try #require(stream))
    }

    private func mute(_ world: inout PlaceWorld, _ isMuted: Bool, of participant: String) -> Int64 {
        world.send(
            isMuted ? "participant.hardMute" : "participant.hardUnmute",
            ["room": "r", "participant": .string(participant), "media": ["video"]]
        )
    }

    @Test func `who joins by way of a node is answered for it`() throws {
        var world = PlaceWorld("a", "b")
        _ = try world.done("room.create", ["room": "r"])
        let near = try world.join("x", by: nil, "0:video:sendonly")
        #expect(near.answer.contains("127.0.0.1 5004"))
        let joined = try world.done(
            "participant.join",
            ["room": "r", "participant": "y"],
            by: "b"
        )
        #expect(joined["node"] == "b")
        #expect(joined["participantInfo"]?["node"] == "b")
        let list = try world.done("participant.list", ["room": "r"])
        let people = try list.decode(ParticipantList.Result.self).participants
        #expect(people.map(\.node) == ["a", "b"])
        let far = try world.join("y", by: "b", "0:video:recvonly")
        #expect(far.answer.contains("127.0.0.2 5004"))
        #expect(far.answer.contains("02:02:02"), "the fingerprint is that of b")
        #expect(world.nodes["b"]?.worker.transports.count == 1)
        #expect(world.nodes["a"]?.worker.transports.count == 1)
    }

    @Test func `without media to a node its participants connect at the home`() throws {
        var world = PlaceWorld("a", "b")
        world.tell(.link(.media("b", isAlive: false)), of: "a", worker: PlaceWorld.link)
        _ = try world.done("room.create", ["room": "r"])
        let far = try world.join("y", by: "b", "0:video:recvonly")
        #expect(far.answer.contains("127.0.0.1 5004"))
    }

    @Test func `a publication goes over the link, and ends with its viewer`() throws {
        var (world, _) = try call()
        let far = try #require(world.nodes["b"])
        #expect(far.worker.mirrors.count == 1)
        #expect(far.worker.mirrors.values.first?.home.worker == PlaceWorld.link)
        #expect(
            far.orders.contains { order in
                if case .link(.receive(_, let name, from: "a")) = order {
                    name.home == "a/boot-a"
                } else {
                    false
                }
            }
        )
        let sends = try #require(world.nodes["a"]).orders.contains { order in
            if case .link(.send(_, as: _, to: ["b"])) = order { true } else { false }
        }
        #expect(sends)
        _ = try world.done("participant.leave", ["room": "r", "participant": "v"])
        let left = try #require(world.nodes["b"])
        #expect(left.worker.mirrors.isEmpty && left.worker.transports.isEmpty)
        #expect(left.plane.shared.identifiers.allSatisfy { $0.publications.used == 0 })
        let near = try #require(world.nodes["a"])
        #expect(near.plane.shared.identifiers[PlaceWorld.link].publications.used == 0)
        #expect(near.worker.relays.values.allSatisfy { $0.isEmpty })
    }

    @Test func `a mute closes the gates at all nodes before it is answered`() throws {
        var (world, _) = try call()
        #expect(world.nodes["b"]?.worker.gates.values.allSatisfy { $0 } == true)
        let id = mute(&world, true, of: "p")
        let reply = try #require(try world.replies[id]?.get())
        let fence = try #require(try reply.decode(TargetResults.self).fence)
        #expect(fence.silent == nil)
        #expect(world.nodes["b"]?.worker.gates.values.allSatisfy { !$0 } == true)
        #expect(world.nodes["a"]?.worker.gates.values.allSatisfy { !$0 } == true)
    }

    @Test func `a silent node costs a mute 1.3 s and is named, and hears of it later`() throws {
        var (world, _) = try call()
        world.nodes["b"]?.isStopped = true
        let id = mute(&world, true, of: "p")
        world.run(milliseconds: 1_240)
        #expect(world.replies[id] == nil, "the lease has not run out")
        world.run(milliseconds: 120)
        let reply = try #require(try world.replies[id]?.get())
        let silent = try reply.decode(TargetResults.self).fence?.silent
        #expect(silent == ["b"])
        let denied = world.nodes["a"]?.orders.contains(.link(.grant("b", false)))
        #expect(denied == true)
        // While it is silent, further calls need not wait again for as long.
        let next = mute(&world, false, of: "p")
        world.run(milliseconds: 20)
        #expect(world.replies[next] != nil)
        world.resume("b")
        #expect(world.nodes["a"]?.orders.last == .link(.grant("b", true)))
        #expect(world.nodes["b"]?.worker.gates.values.allSatisfy { $0 } == true)
    }

    @Test func `a publisher at another node is seen at the home and at a third`() throws {
        var world = PlaceWorld("a", "b", "c")
        _ = try world.done("room.create", ["room": "r"])
        let stream = try world.join("p", by: "b", "0:video:sendonly").stream
        for (name, node) in [("x", nil), ("y", "c"), ("z", "b")] as [(String, String?)] {
            try world.join(name, by: node, "0:video:recvonly")
            try world.watch(name, stream)
        }
        let origin = try #require(world.nodes["b"])
        let sends = origin.orders.compactMap { order -> [String]? in
            if case .link(.send(_, as: _, to: let nodes)) = order { nodes } else { nil }
        }
        #expect(sends.last == ["a", "c"])
        #expect(origin.worker.bindings.count == 1 && origin.worker.mirrors.isEmpty)
        for name in ["a", "c"] {
            let receives = world.nodes[name]?.orders.contains { order in
                if case .link(.receive(_, _, from: "b")) = order { true } else { false }
            }
            #expect(receives == true, "\(name)")
        }
        let id = mute(&world, true, of: "p")
        #expect(world.replies[id] != nil)
        for node in world.nodes.values {
            #expect(node.worker.gates.values.allSatisfy { !$0 })
        }
    }

    @Test func `who offers again when its node is lost is answered for the home`() throws {
        var (world, _) = try call()
        let who: [String: JSON] = ["room": "r", "participant": "v"]
        func offer() throws -> String {
            let sdp = JSON.string(TestOffer(["0:video:recvonly"]).text)
            let params = JSON.object(who.merging(["sdp": sdp]) { $1 })
            let result = try world.done("transport.offer", params)
            return try result.decode(TransportOffer.Result.self).sdp
        }
        world.nodes["b"]?.isStopped = true
        world.nodes["a"]?.plane.losePlaces(at: "b", at: world.now)
        world.run(milliseconds: 1_060)
        #expect(try offer().contains("127.0.0.1 5004"))
        #expect(try world.done("participant.get", .object(who))["node"] == "a")
        // It is back, and joins there decide for it again.
        world.nodes["b"]?.isStopped = false
        world.meet("a", "b")
        _ = try world.done("participant.join", .object(who), by: "b")
        #expect(try offer().contains("127.0.0.2 5004"))
    }

    @Test func `the participants of a lost node are disconnected, and nothing is left`() throws {
        var (world, _) = try call()
        world.nodes["b"]?.isStopped = true
        world.events = []
        let id = mute(&world, true, of: "p")
        world.nodes["a"]?.plane.losePlaces(at: "b", at: world.now)
        world.settle()
        #expect(world.replies[id] == nil, "datagrams may still come through, and with them leases")
        world.run(milliseconds: 1_060)
        #expect(world.replies[id] != nil)
        let gone = world.events.contains { event in
            event.event == "participant.connection" && event.data["participant"] == "v"
                && event.data["connection"] == "disconnected"
        }
        #expect(gone)
        _ = try world.done("participant.leave", ["room": "r", "participant": "v"])
        _ = try world.done("room.close", ["room": "r"])
        #expect(world.nodes["a"]?.plane.leakedObjects == [])
        // The node gives up its guests when it hears nothing of their home.
        world.nodes["b"]?.waiting = []
        world.nodes["b"]?.plane.endGuests(of: "a", at: world.now)
        world.resume("b")
        #expect(world.nodes["b"]?.worker.transports.isEmpty == true)
        #expect(world.nodes["b"]?.plane.leakedObjects == [])
        #expect(world.nodes["b"]?.orders.last == .link(.hold(home: "a", lease: nil)))
    }

    @Test func `each home has a lease of its own, however many come and go`() throws {
        var guests = Guests()
        for number in 0..<500 {
            let taken = guests.takeLease()
            let lease = try #require(taken)
            #expect((0..<CoreLimits.leases).contains(lease))
            guests.homes["home-\(number)"] = Guests.Home(lease: lease)
            #expect(Set(guests.homes.values.map(\.lease)).count == guests.homes.count)
            guests.homes["home-\(number - 63)"] = nil
        }
        while let lease = guests.takeLease() {
            guests.homes["other-\(lease)"] = Guests.Home(lease: lease)
        }
        #expect(guests.homes.count == CoreLimits.leases)
    }

    @Test func `a lost node has no lease before it has passed a fence`() throws {
        var (world, _) = try call()
        world.nodes["b"]?.isStopped = true
        world.nodes["a"]?.plane.losePlaces(at: "b", at: world.now)
        world.settle()
        #expect(world.nodes["a"]?.orders.contains(.link(.grant("b", false))) == true)
        // A right that is lost meanwhile has no effect there before the last lease is over.
        let id = mute(&world, true, of: "p")
        world.run(milliseconds: 1_000)
        #expect(world.replies[id] == nil)
        world.run(milliseconds: 60)
        #expect(world.replies[id] != nil)
        world.nodes["b"]?.waiting = []
        world.nodes["b"]?.plane.endGuests(of: "a", at: world.now)
        world.resume("b")
        world.meet("a", "b")
        world.settle()
        let granted = WorkerCommand.link(.grant("b", true))
        #expect(world.nodes["a"]?.orders.contains(granted) == false)
        try world.join("w", by: "b", "0:video:recvonly")
        #expect(world.nodes["a"]?.orders.last == granted)
    }

    @Test func `what a node does not know of another is refused, whatever it is`() throws {
        var (world, _) = try call()
        let before = world.nodes["b"]?.worker.transports.count
        let commands: [PlaceCommands] = [
            PlaceCommands(worker: 7, place: 3, commands: []),
            PlaceCommands(worker: -1, place: 3, commands: [.fence(epoch: 1)]),
            PlaceCommands(
                worker: 0,
                place: 3,
                commands: [
                    .close(TransportID(index: 900, generation: 1)),
                    .gate(PublicationID(index: 900, generation: 1), open: true),
                    .unmirror(PublicationID(index: 900, generation: 1)),
                    .bind(SlotID(index: 900, generation: 1), nil),
                ]
            ),
        ]
        for message in commands {
            world.nodes["b"]?.waiting.append(("a", true, JSON.compact(message)))
        }
        for bytes in [[], [0xff], [0xa1, 0x61, 0x78], Array("{}".utf8)] as [[UInt8]] {
            world.nodes["b"]?.waiting.append(("a", true, bytes))
            world.nodes["a"]?.waiting.append(("b", false, bytes))
        }
        world.settle()
        #expect(world.nodes["b"]?.worker.transports.count == before)
        // A node speaks for its own places alone.
        let strange = PlaceEvents(
            place: 3,
            clock: world.now,
            events: [.transport(TransportID(index: 0, generation: 1), .disconnected(.timeout))]
        )
        world.nodes["a"]?.waiting.append(("c", false, JSON.compact(strange)))
        world.settle()
        #expect(world.nodes["a"]?.plane.rooms["r"]?.room.participants["v"]?.transports.count == 1)
    }

    @Test func `a home that begins again with its calls keeps rooms with people elsewhere`() throws
    {
        var (world, stream) = try call()
        let other = try world.join("q", by: "b", "0:video:sendrecv").stream
        try world.join("w", by: nil, "0:video:recvonly")
        try world.watch("w", other)
        world.events = []
        // The other node is of a version that keeps nobody for a home that begins again.
        world.restart("a", isAwaited: false)
        world.reunite("a")
        let list = try world.done("participant.list", ["room": "r"])
        let people = try list.decode(ParticipantList.Result.self).participants
        #expect(people.map(\.participant.rawValue) == ["p", "v", "q", "w"])
        let lost = people.filter { $0.connection == .disconnected }.map(\.participant.rawValue)
        #expect(lost == ["v", "q"])
        let streams = try world.done("stream.list", ["room": "r"])
            .decode(StreamList.Result.self).streams
        #expect(streams.map(\.stream.rawValue) == [stream])
        // They come back as after any lost connection.
        world.run(milliseconds: 6_000)
        try world.join("v", by: "b", "0:video:recvonly")
        try world.watch("v", stream)
        #expect(world.nodes["b"]?.worker.mirrors.count == 1)
    }

    @Test func `figures that are too many for a message are left out of it`() throws {
        let id = TransportID(index: 1, generation: 1)
        let figures = RemoteEvent.statistics(
            token: 7,
            (0..<100).map { _ in TransportStatistics(id: id) },
            [],
            []
        )
        let events = PlaceEvents(
            place: 3,
            clock: Instant(nanoseconds: 5),
            events: [figures, .explained(token: 8, nil)]
        )
        #expect(events.encoded().isWhole)
        let (bytes, isWhole) = events.encoded(within: 1_000)
        let left = try #require(JSON.sent(PlaceEvents.self, bytes))
        #expect(!isWhole && bytes.count < 1_000)
        #expect(left.events == [.statistics(token: 7, [], [], []), .explained(token: 8, nil)])
    }

    @Test func `a part of a message that has no fence frees handles too`() throws {
        var (world, _) = try call()
        let home = try #require(world.nodes["a"]).plane
        let room = try #require(home.rooms["r"]).room
        let place = try #require(home.shared.remote?.place(of: 0, at: "b"))
        let closes = room.transports(at: place).map { RemoteCommand.close($0.place.id) }
        let ends = room.mirrors(at: place).map { RemoteCommand.unmirror($0) }
        #expect(closes.count == 1 && ends.count == 1)
        let part = PlaceCommands(worker: 0, place: place, commands: closes + ends)
        for bytes in part.parts {
            world.nodes["b"]?.plane.receivePlaceCommands(bytes, from: "a", "boot-a", at: world.now)
        }
        world.settle()
        let far = try #require(world.nodes["b"]).plane
        let used = far.shared.identifiers.map {
            $0.transports.used + $0.publications.used + $0.slots.used
        }
        #expect(used.allSatisfy { $0 == 0 }, "\(used)")
        #expect(far.places?.guests.fences.isEmpty == true)
        #expect(!world.warnings.contains { $0.contains("fence") }, "the home has heard of none")
    }

    @Test(arguments: ["memory", "time"])
    func `a node that is short of it takes nobody new, and keeps who is there`(
        shortage: String
    ) throws {
        var limits = ControlLimits()
        limits.memoryMegabytes = 200
        var world = PlaceWorld(["a", "b"], limits: limits)
        func setShort(_ isShort: Bool) {
            let isMemory = shortage == "memory"
            world.nodes["b"]?.plane.shared.memory.residentMegabytes = isShort && isMemory ? 200 : 0
            var overload = WorkerOverload()
            if isShort, !isMemory { overload.step = .joins }
            world.tell(.pressure(overload, transports: 1), of: "b")
        }
        _ = try world.done("room.create", ["room": "r"])
        try world.join("p", by: "b", "0:audio:recvonly")
        setShort(true)
        try world.join("q", by: "b", "0:audio:recvonly")
        #expect(world.nodes["b"]?.worker.transports.count == 1)
        #expect(world.nodes["b"]?.plane.joinsRefused == 1)
        let refused = try world.done("participant.get", ["room": "r", "participant": "q"])
        #expect(refused["connection"] == "disconnected")
        let more = JSON.string(TestOffer(["0:audio:recvonly", "1:audio:recvonly"]).text)
        _ = try world.done("transport.offer", ["room": "r", "participant": "p", "sdp": more])
        #expect(world.nodes["b"]?.worker.transports.values.map(\.slots.count) == [2])
        setShort(false)
        try world.join("q", by: "b", "0:audio:recvonly")
        #expect(world.nodes["b"]?.worker.transports.count == 2)
        _ = try world.done("room.close", ["room": "r"])
        #expect(world.nodes.values.allSatisfy { $0.plane.leakedObjects == [] })
    }

    @Test func `wants of a node's viewers reach its link thread`() throws {
        var (world, _) = try call()
        let mirror = try #require(world.nodes["b"]?.worker.mirrors.keys.first)
        let home = world.nodes["b"]?.worker.mirrors[mirror]?.home
        world.tell(.layersWanted(mirror, home: home, 0b101), of: "b")
        let wants = (world.nodes["b"]?.orders ?? []).compactMap { order -> UInt8? in
            if case .link(.want(_, let mask)) = order { mask } else { nil }
        }
        #expect(wants == [0b101])
    }
}
