import RTP
import TestSupport
import Testing

@testable import Contract
@testable import ControlPlane
@testable import JSON
@testable import Rooms
@testable import SFU
@testable import WorkerInterface

/// Invariants under seeded random calls, offers, worker events and late fences.
@Suite struct ControlWalkTests {
    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var workers: Int
        var spread: Int
        /// Whether everybody may send and watch, and stays long.
        var isCalm: Bool
    }

    static let rows = [
        Row(testDescription: "a worker a room", workers: 2, spread: 8, isCalm: false),
        Row(testDescription: "rooms on two workers", workers: 2, spread: 0, isCalm: false),
        Row(testDescription: "rooms on three workers", workers: 3, spread: 0, isCalm: false),
        Row(testDescription: "much watched, on two", workers: 2, spread: 0, isCalm: true),
        Row(testDescription: "much watched, on three", workers: 3, spread: 0, isCalm: true),
    ]

    @Test(arguments: rows, Extent.seeds(3, short: 1))
    func `random calls keep the invariants`(row: Row, seed: UInt64) throws {
        var walk = ControlWalk(row, seed: seed)
        for _ in 0..<1_200 { walk.step() }
        walk.settle()
        walk.endAll()
        let plane = walk.driver.plane
        #expect(plane.rooms.owners.isEmpty && plane.operations.isEmpty && plane.rooms.isEmpty)
        for identifiers in plane.shared.identifiers {
            #expect(identifiers.transports.used == 0)
            #expect(identifiers.publications.used == 0)
            #expect(identifiers.slots.used == 0)
        }
        for worker in walk.workers {
            #expect(worker.transports.isEmpty && worker.mirrors.isEmpty && worker.taps.isEmpty)
        }
        #expect(walk.mirrorsMade > 50 || !row.isCalm, "too few to tell")
        for id in walk.sent { #expect(walk.driver.replies[id] != nil, "call \(id)") }
        walk.checkEvents()
    }
}

private struct ControlWalk {
    var driver: ControlDriver
    var workers: [WalkWorker]
    var mirrorsMade = 0
    var sent: [Int64] = []
    private var random: SeededRandom
    private let isCalm: Bool
    private let names = ["r0", "r1"]
    private let people = ["a", "b", "c", "d", "e"]

    init(_ row: ControlWalkTests.Row, seed: UInt64) {
        var limits = ControlLimits()
        limits.workerSpread = row.spread
        driver = ControlDriver(
            workers: row.workers,
            limits: limits,
            recordings: "/recordings",
            seed: seed
        )
        // The last one is the recorder.
        workers = (0...row.workers).map { WalkWorker(index: $0) }
        isCalm = row.isCalm
        driver.holdsFences = true
        random = SeededRandom(seed: seed)
    }

    mutating func step() {
        switch Int.random(in: 0..<63, using: &random) {
        case 0: if !isCalm { send("room.close", ["room": room]) }
        case 1..<4: create()
        case 4..<10: join()
        case 10: send("participant.leave", ["room": room, "participant": person])
        case 11..<26: offer()
        case 26: send("transport.close", ["room": room, "participant": person])
        case 27..<43: subscribe()
        case 43..<46: updateSubscription()
        case 46: send("subscription.remove", ["room": room, "subscription": subscription])
        case 47..<50: updateStream()
        case 50..<55: workerEvent()
        case 60: send("recording.start", ["room": room])
        case 61: send("recording.stop", ["room": room])
        case 62:
            let tap = UInt64.random(in: 1..<40, using: &random)
            driver.tell(.tap(.ended(tap, reason: "too-slow", [])), from: workers.count - 1)
        case 55..<57: driver.fence(worker: Int.random(in: workers.indices, using: &random))
        default: settle()
        }
        takeCommands()
    }

    /// Lets the workers pass all fences, and compares their state with the expected one.
    mutating func settle() {
        driver.fence()
        takeCommands()
        driver.fence()
        for entry in driver.plane.rooms.entries.values { check(entry.room) }
        for worker in workers { worker.check(among: workers) }
    }

    mutating func endAll() {
        for name in names { send("room.close", ["room": .string(name)]) }
        driver.fence()
        takeCommands()
    }

    func checkEvents() {
        var last: [RoomID: Int64] = [:]
        var alive: Set<String> = []
        for event in driver.events {
            guard let room = event.room else { continue }
            #expect(event.seq == (last[room] ?? 0) + 1, "\(event.event)")
            last[room] = event.seq
            switch (event.event, event.data["stream"]) {
            case ("stream.created", .string(let id)?): alive.insert(id)
            case ("stream.destroyed", .string(let id)?):
                #expect(alive.remove(id) != nil, "a stream ends once, and after it began")
            default: break
            }
        }
        #expect(alive.isEmpty)
    }

    private mutating func takeCommands() {
        let limbo = driver.plane.operations.freed
        for (worker, command) in driver.commands {
            if case .mirror(let mirror) = command {
                let id = mirror.configuration.id
                if workers[worker].mirrors[id] == nil { mirrorsMade += 1 }
                for case .publication(worker, let freed) in limbo where freed.index == id.index {
                    #expect(freed == id, "a place is taken before its fence has been passed")
                }
            }
            workers[worker].apply(command)
        }
        driver.commands = []
    }

    private mutating func send(_ method: String, _ params: JSON) {
        sent.append(driver.send(method, params))
    }

    private var room: JSON { mutating get { .string(name) } }
    private var person: JSON {
        mutating get { .string(people.randomElement(using: &random) ?? "") }
    }

    private var name: String { mutating get { names.randomElement(using: &random) ?? "" } }

    /// A random stream and, mostly, its own room.
    private var stream: (room: JSON, stream: JSON) {
        mutating get {
            let all = driver.plane.rooms.entries.values.flatMap { entry in
                entry.room.streams.listedNames.map { (entry.room.name, $0) }
            }.sorted(by: <)
            let found = all.randomElement(using: &random) ?? ("r0", "none")
            let isElsewhere = Int.random(in: 0..<8, using: &random) == 0
            return (isElsewhere ? room : .string(found.0), .string(found.1))
        }
    }

    private var subscription: JSON {
        mutating get {
            let all = driver.plane.rooms.entries.values.flatMap { $0.room.subscriptions.keys }
                .sorted()
            return .string("sub-\(all.randomElement(using: &random) ?? 0)")
        }
    }

    private mutating func create() {
        guard !isCalm else { return send("room.create", ["room": room]) }
        let modes: [JSON] = [
            "group", "group", "group", "lecture", "single_host", "single_host_audio_only",
        ]
        let mode = modes.randomElement(using: &random) ?? "group"
        let knock = Int.random(in: 0..<4, using: &random) == 0
        send("room.create", ["room": room, "settings": ["mode": mode, "knock": .bool(knock)]])
    }

    private mutating func join() {
        guard !isCalm else {
            return send("participant.join", ["room": room, "participant": person])
        }
        let roles: [JSON] = [
            "moderator", "moderator", "participant", "participant", "viewer", "king",
        ]
        let modes: [JSON] = [
            "SEND_AND_RECV", "SEND_AND_RECV", "SEND_AND_RECV", "RECV_ONLY", "SIGNALLING_ONLY",
        ]
        send(
            "participant.join",
            [
                "room": room, "participant": person,
                "role": roles.randomElement(using: &random) ?? "viewer",
                "mode": modes.randomElement(using: &random) ?? "RECV_ONLY",
            ]
        )
    }

    private mutating func offer() {
        let directions =
            ["sendonly", "recvonly", "sendrecv", "inactive"]
            + Array(repeating: "sendrecv", count: isCalm ? 12 : 0)
        let lines = (0..<5).map { mid in
            let kind = mid % 2 == 0 ? "audio" : "video"
            return "\(mid):\(kind):\(directions.randomElement(using: &random) ?? "")"
        }
        let sources: [JSON] = [[:], ["3": "screen"], ["2": "screen", "3": "screen"]]
        let transports: [JSON] = ["main", "main", "second", "third"]
        let isBad = Int.random(in: 0..<10, using: &random) == 0
        send(
            "transport.offer",
            [
                "room": room, "participant": person,
                "sdp": .string(isBad ? "v=1" : TestOffer(lines).text),
                "sources": sources.randomElement(using: &random) ?? [:],
                "transport": transports.randomElement(using: &random) ?? "main",
            ]
        )
    }

    private mutating func subscribe() {
        let (room, stream) = stream
        var params: [String: JSON] = ["room": room, "participant": person, "stream": stream]
        if Int.random(in: 0..<4, using: &random) == 0 { params["videoMid"] = "3" }
        send("subscription.add", .object(params))
    }

    private mutating func updateSubscription() {
        let (room, stream) = stream
        var params: [String: JSON] = ["room": room, "subscription": subscription]
        params["video"] = .bool(Bool.random(using: &random))
        if Bool.random(using: &random) { params["stream"] = stream }
        send("subscription.update", .object(params))
    }

    private mutating func updateStream() {
        let (room, stream) = stream
        if Int.random(in: 0..<4, using: &random) == 0 {
            send("stream.unpublish", ["room": room, "stream": stream])
        } else {
            send(
                "stream.update",
                ["room": room, "stream": stream, "audio": .bool(Bool.random(using: &random))]
            )
        }
    }

    /// Makes a worker event; its handle is valid, ended or invalid.
    private mutating func workerEvent() {
        let worker = Int.random(in: workers.indices, using: &random)
        let index = UInt32.random(in: 0..<12, using: &random)
        let generation = UInt32.random(in: 1..<4, using: &random)
        let transport = TransportID(index: index, generation: generation)
        let changes: [TransportChange] = [
            .connected, .reconnecting, .reconnected, .disconnected(.timeout),
        ]
        let number = UInt64.random(in: 0..<40, using: &random)
        let slot = SlotID(index: index, generation: generation)
        let publication = PublicationID(index: index, generation: generation)
        let events: [WorkerEvent] = [
            .transport(transport, changes.randomElement(using: &random) ?? .connected),
            .started(slot, subscription: number),
            .layerChanged(slot, subscription: number, from: nil, to: LayerName(rid: "h")),
            .layers(publication, codec: .vp8, []),
            .fenced(epoch: .max, at: driver.now, packets: 1),
            .statistics(token: .max, WorkerStatistics()),
        ]
        driver.tell(events.randomElement(using: &random) ?? events[0], from: worker)
    }

    /// Derives the expected state of each gate and slot again, and compares it with the worker's.
    private func check(_ room: Room) {
        for participant in room.participants.values {
            for transport in participant.transports {
                let worker = workers[transport.place.worker]
                #expect(worker.transports[transport.place.id] != nil)
                for track in transport.tracks {
                    let stream = room.stream(
                        of: participant.id,
                        transport.name,
                        isScreen: track.source == .screen
                    )
                    let verdict = room.mayPublish(participant, track.kind, from: track.source)
                    let open =
                        verdict == .open && !track.withdrawn
                        && stream?.isOn(track.kind) == true
                    #expect(worker.gates[track.publication] == open)
                    #expect(worker.isConfigured(track.configuration))
                }
                for slot in transport.slots { check(slot, of: participant, room, worker) }
            }
            #expect(participant.streams.allSatisfy { room.streams[$0] != nil })
            #expect(participant.subscriptions.allSatisfy { room.subscriptions[$0] != nil })
        }
        for stream in room.streams.values {
            #expect(stream.audio != nil || stream.video != nil)
            #expect(stream.subscribers.allSatisfy { room.subscriptions[$0]?.stream == stream.id })
        }
    }

    private func check(
        _ slot: Room.Slot,
        of participant: Room.Participant,
        _ room: Room,
        _ worker: WalkWorker
    ) {
        guard let number = slot.subscription else {
            #expect(worker.bindings[slot.id] == nil)
            return
        }
        guard let subscription = room.subscriptions[number],
            let stream = room.streams[subscription.stream],
            let publisher = room.participants[stream.participant]
        else {
            Issue.record("a slot belongs to a subscription that is gone")
            return
        }
        #expect(subscription.participant == participant.id)
        #expect(subscription.slot(slot.kind)?.mid == slot.mid)
        let binding = worker.bindings[slot.id]
        let home = stream.publication(slot.kind).map {
            RelayTarget(worker: stream.worker, publication: $0)
        }
        #expect(binding.flatMap { worker.home(of: $0.publication) } == home)
        if let binding {
            let mayReceive = room.mayReceive(from: publisher, participant) == .open
            #expect(binding.open == (mayReceive && subscription.isOn(slot.kind)))
            #expect(binding.subscription == number)
        }
    }
}
