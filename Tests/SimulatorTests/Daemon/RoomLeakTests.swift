import Simulator
import Testing
import WorkerInterface

@testable import Contract
@testable import ControlPlane
@testable import JSON
@testable import SFU

/// Isolation of rooms: no packet is ever received in another room than it was sent in.
@Suite struct RoomLeakTests {
    /// Number of random operations: 20,000 for a proof, fewer in each ordinary run.
    static let operations = Trials.number("SFUD_OPERATIONS", usually: 300)

    @Test func `A0-1 100 rooms on two workers keep what is theirs`() throws {
        var walk = try RoomLeakWalk(rooms: 100, seed: 7)
        for _ in 0..<Self.operations { try walk.act() }
        walk.daemon.run(milliseconds: 200)
        let daemon = walk.daemon
        #expect(daemon.strays == 0, "packets in another room")
        #expect(daemon.received > 5 * Self.operations, "too little to tell")
        #expect(walk.roomsMadeAnew > 0 && walk.tries > 0, "too little to tell")
        #expect(Set(daemon.plane.rooms.names).count == 100)
    }
}

/// A random walk over rooms with equal participant names, in which people come, leave, mute and
/// subscribe.
struct RoomLeakWalk {
    private struct Person {
        var name: String
        var client: SimulatedClient
        var stream: JSON?
        var subscriptions: [JSON] = []
    }

    private struct Place {
        var name: String
        /// Number in the marks of its packets.
        var number: UInt32
        var people: [Person] = []
        var isMuted = false
        var born = 0

        var streams: [JSON] { people.compactMap(\.stream) }
    }

    let daemon: SimulatedDaemon
    private(set) var roomsMadeAnew = 0
    /// Number of calls that named another room's stream, and were refused.
    private(set) var tries = 0
    private var places: [Place] = []
    private var lastNumber: UInt32 = 0
    /// Participants who have left, oldest first; packets to them are still inspected.
    private var gone: [SimulatedClient] = []

    init(rooms: Int, seed: UInt64) throws {
        daemon = try SimulatedDaemon(seed: seed, identity: DTLSIdentity())
        daemon.interval = 20
        daemon.mostQuarters = 4
        daemon.keepsFlows = false
        for index in 0..<rooms {
            places.append(Place(name: "room-\(index)", number: 0))
            try make(index)
        }
        try daemon.awaitConnected(places.flatMap { $0.people.map(\.client) })
    }

    /// Performs one operation in one of the rooms.
    mutating func act() throws {
        let room = Int.random(in: places.indices, using: &daemon.random)
        switch Int.random(in: 0..<24, using: &daemon.random) {
        case 0: try remake(room)
        case 1, 2: try add(room, publishes: Bool.random(using: &daemon.random))
        case 3, 4: remove(room)
        case 5, 6: try reconnect(room)
        case 7, 8: mute(room)
        case 9, 10: switchOff(room)
        case 11, 12: turn(room)
        case 13: unpublish(room)
        case 14, 15: resubscribe(room)
        case 16, 17: try tryAnother(room)
        default: break
        }
        daemon.run(milliseconds: 2)
    }

    private mutating func make(_ room: Int) throws {
        lastNumber += 1
        places[room] = Place(name: places[room].name, number: lastNumber)
        try daemon.done("room.create", ["room": .string(places[room].name)])
        try add(room, publishes: true)
        try add(room, publishes: false)
    }

    private mutating func remake(_ room: Int) throws {
        for person in places[room].people { silence(person.client) }
        call("room.close", room)
        try make(room)
        roomsMadeAnew += 1
    }

    private mutating func add(_ room: Int, publishes: Bool) throws {
        guard places[room].people.count < 4 else { return }
        places[room].born += 1
        let name = "person-\(places[room].born)"
        call("participant.join", room, ["participant": .string(name)])
        places[room].people.append(try person(name, room, publishes: publishes))
    }

    /// Connects a participant, and subscribes it to everything.
    private func person(_ name: String, _ room: Int, publishes: Bool) throws -> Person {
        let (client, mids) = try daemon.connect(
            name,
            in: places[room].name,
            number: places[room].number,
            tracks: publishes ? [.audio, .video] : [],
            slots: 2
        )
        var person = Person(name: name, client: client)
        person.stream = mids.first?.stream.map { .string($0.rawValue) }
        if publishes { daemon.senders.append(client) }
        for stream in places[room].streams.prefix(2) {
            let params: [String: JSON] = [
                "room": .string(places[room].name), "participant": .string(name),
                "stream": stream,
            ]
            if let result = try? daemon.done("subscription.add", params),
                let subscription = result["subscription"]
            {
                person.subscriptions.append(subscription)
            }
        }
        return person
    }

    private mutating func silence(_ client: SimulatedClient) {
        daemon.senders.removeAll { $0 === client }
        gone.append(client)
        guard gone.count > 200 else { return }
        daemon.forget(Array(gone.prefix(100)))
        gone.removeFirst(100)
    }

    private func call(_ method: String, _ room: Int, _ more: [String: JSON] = [:]) {
        _ = daemon.send(method, more.merging(["room": .string(places[room].name)]) { $1 })
    }

    /// Removes a participant, whose client continues to send for a while.
    private mutating func remove(_ room: Int) {
        guard let place = places[room].people.indices.randomElement(using: &daemon.random) else {
            return
        }
        let person = places[room].people.remove(at: place)
        let who = JSON.string(person.name)
        if Bool.random(using: &daemon.random) {
            call("participant.leave", room, ["participant": who])
        } else {
            call("participant.drop", room, ["participants": [who]])
        }
        daemon.run(milliseconds: 3)
        silence(person.client)
    }

    /// Reconnects a participant over another transport.
    private mutating func reconnect(_ room: Int) throws {
        guard let place = places[room].people.indices.randomElement(using: &daemon.random) else {
            return
        }
        let old = places[room].people[place]
        let who = JSON.string(old.name)
        if Bool.random(using: &daemon.random) {
            call("participant.join", room, ["participant": who])
        } else {
            call("transport.close", room, ["participant": who])
        }
        places[room].people[place].stream = nil
        let publishes = old.stream != nil
        places[room].people[place] = try person(old.name, room, publishes: publishes)
        silence(old.client)
    }

    private mutating func mute(_ room: Int) {
        if Bool.random(using: &daemon.random) {
            places[room].isMuted.toggle()
            call(places[room].isMuted ? "room.hardMute" : "room.hardUnmute", room)
        } else if let person = places[room].people.randomElement(using: &daemon.random) {
            let isOn = Bool.random(using: &daemon.random)
            call(
                isOn ? "participant.hardMute" : "participant.hardUnmute",
                room,
                ["participant": .string(person.name), "media": ["audio", "video"]]
            )
        }
    }

    private func switchOff(_ room: Int) {
        let state = JSON.bool(Bool.random(using: &daemon.random))
        if let stream = places[room].streams.randomElement(using: &daemon.random) {
            call("stream.update", room, ["stream": stream, "video": state])
        }
        guard let subscription = subscription(in: room) else { return }
        call("subscription.update", room, ["subscription": subscription, "audio": state])
    }

    private func subscription(in room: Int) -> JSON? {
        places[room].people.flatMap(\.subscriptions).randomElement(using: &daemon.random)
    }

    private func turn(_ room: Int) {
        guard let stream = places[room].streams.randomElement(using: &daemon.random),
            let subscription = subscription(in: room)
        else { return }
        call("subscription.update", room, ["subscription": subscription, "stream": stream])
    }

    private mutating func unpublish(_ room: Int) {
        guard let place = places[room].people.firstIndex(where: { $0.stream != nil }) else {
            return
        }
        call("stream.unpublish", room, ["stream": places[room].people[place].stream ?? .null])
        places[room].people[place].stream = nil
    }

    private mutating func resubscribe(_ room: Int) {
        guard let place = places[room].people.indices.randomElement(using: &daemon.random) else {
            return
        }
        for subscription in places[room].people[place].subscriptions {
            call("subscription.remove", room, ["subscription": subscription])
        }
        let who = JSON.string(places[room].people[place].name)
        places[room].people[place].subscriptions = []
        for stream in places[room].streams {
            let params: [String: JSON] = [
                "room": .string(places[room].name), "participant": who, "stream": stream,
            ]
            if let result = try? daemon.done("subscription.add", params),
                let subscription = result["subscription"]
            {
                places[room].people[place].subscriptions.append(subscription)
            }
        }
    }

    /// Names a stream of another room in every possible call.
    private mutating func tryAnother(_ room: Int) throws {
        let other = Int.random(in: places.indices, using: &daemon.random)
        guard other != room, let stream = places[other].streams.first,
            let person = places[room].people.first
        else { return }
        var ids = [
            daemon.send(
                "subscription.add",
                [
                    "room": .string(places[room].name), "participant": .string(person.name),
                    "stream": stream,
                ]
            )
        ]
        if let subscription = subscription(in: room) {
            ids.append(
                daemon.send(
                    "subscription.update",
                    [
                        "room": .string(places[room].name), "subscription": subscription,
                        "stream": stream,
                    ]
                )
            )
        }
        for id in ids {
            #expect(throws: IPCError.self) { try daemon.reply(to: id) }
            tries += 1
        }
    }
}
