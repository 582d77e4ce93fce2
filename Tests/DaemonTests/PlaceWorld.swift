import RTP
import TestSupport
import Testing

@testable import Contract
@testable import ControlPlane
@testable import JSON
@testable import Rooms
@testable import WorkerInterface

/// Control planes of several nodes with one worker each, whose messages reach one another at once.
struct PlaceWorld {
    struct Node {
        var plane: ControlPlane
        var worker = WalkWorker(index: 0)
        /// The recorder's thread, which has mirrors alone.
        var recorder = WalkWorker(index: PlaceWorld.recorder)
        /// Commands to the worker.
        var commands: [WorkerCommand] = []
        /// Commands to the link thread.
        var orders: [WorkerCommand] = []
        var fences: [(worker: Int, epoch: UInt64)] = []
        /// Whether it stands still: what comes waits.
        var isStopped = false
        var waiting: [(from: String, isFromHome: Bool, bytes: [UInt8])] = []
        /// Records that its control plane has saved for another process.
        var saved: [String: [UInt8]] = [:]
        /// The part of them that other nodes may read.
        var journaled: [String: [UInt8]] = [:]
        let setup: ControlSetup

        init(_ setup: ControlSetup) {
            self.setup = setup
            plane = ControlPlane(setup)
        }
    }

    var nodes: [String: Node] = [:]
    var now = Instant(nanoseconds: 1_000_000_000_000)
    var replies: [Int64: Result<JSON, IPCError>] = [:]
    var events: [IPCEvent] = []
    var warnings: [String] = []
    /// Rooms that are to go to other homes, and the nodes that have let them go.
    var handed: [(room: String, node: String, isForced: Bool)] = []
    var serverEvents: [String] = []
    /// Messages from homes to the nodes of participants, by node, and their bytes.
    var told: [String: (messages: Int, bytes: Int)] = [:]
    private var lastID: Int64 = 0
    /// Homes that have yet to hear of another process of a node, each with the node.
    private var disowned: Set<[String]> = []

    /// Number of the recorder's thread.
    static let recorder = 1
    /// Number of the link thread.
    static let link = 2

    init(_ names: String...) { self.init(names) }

    init(_ names: [String], limits: ControlLimits = ControlLimits()) {
        for (index, name) in names.enumerated() {
            let address = Address(ipv4: 0x7f00_0001 + UInt32(index), port: 5004)
            let setup = ControlSetup(
                version: "1.2.3",
                bootID: "boot-\(name)",
                startTime: 1_700_000_000,
                random: .seeded(UInt64(index + 1)),
                fingerprint: Fingerprint(
                    algorithm: .sha256,
                    digest: [UInt8](repeating: UInt8(index + 1), count: 32)
                ),
                candidates: [[address]],
                udp: [],
                limits: limits,
                recordings: "/recordings",
                node: name
            )
            nodes[name] = Node(setup)
        }
        for name in names { for other in names where other != name { meet(name, other) } }
    }

    /// Adds a node, which meets all others.
    mutating func add(_ name: String) {
        guard var setup = nodes.values.first?.setup else { return }
        setup.bootID = "boot-\(name)"
        setup.node = name
        nodes[name] = Node(setup)
        for other in nodes.keys.sorted() where other != name {
            meet(name, other)
            meet(other, name)
        }
        settle()
    }

    /// Lets a node know another one, as when their link is up.
    mutating func meet(_ name: String, _ other: String) {
        guard let facts = nodes[other]?.plane.placeFacts else { return }
        nodes[name]?.plane.takePlaceFacts(facts, of: other, at: now)
        let alive = WorkerEvent.link(.media(other, isAlive: true))
        nodes[name]?.plane.receive(alive, from: Self.link, at: now)
    }

    /// Makes a call at a home by way of a node; it may be answered later.
    @discardableResult
    mutating func send(
        _ method: String,
        _ params: JSON,
        to home: String = "a",
        by node: String? = nil
    ) -> Int64 {
        lastID += 1
        let request = IPCRequest(id: .integer(lastID), method: method, params: params)
        nodes[home]?.plane.receive(
            request,
            from: ConnectionID(rawValue: 1),
            by: node,
            at: now,
            unixTime: 1_700_000_000 + Double(now.nanoseconds) / 1e9
        )
        settle()
        return lastID
    }

    mutating func done(
        _ method: String,
        _ params: JSON,
        to home: String = "a",
        by node: String? = nil
    ) throws -> JSON {
        let id = send(method, params, to: home, by: node)
        return try #require(replies[id], "\(method) is not answered").get()
    }

    /// Lets time pass in steps of 10 ms.
    mutating func run(milliseconds: Int64) {
        let end = now.advanced(milliseconds: milliseconds)
        while now < end {
            now = now.advanced(milliseconds: 10)
            for name in nodes.keys.sorted() where nodes[name]?.isStopped == false {
                nodes[name]?.plane.expire(at: now)
            }
            settle()
        }
    }

    mutating func tell(_ event: WorkerEvent, of node: String, worker: Int = 0) {
        nodes[node]?.plane.receive(event, from: worker, at: now)
        settle()
    }

    /// Lets a node's process begin again with what the last one has saved; its links break, and
    /// `reunite` makes them again.
    ///
    /// `isAwaited`: the other nodes keep its participants there for it. `isKnown`: homes still have
    /// their sessions with it, and hear over the next link that this process is another one.
    mutating func restart(_ name: String, isAwaited: Bool = true, isKnown: Bool = false) {
        guard let node = nodes[name] else { return }
        nodes[name]?.worker = WalkWorker(index: 0)
        nodes[name]?.recorder = WalkWorker(index: Self.recorder)
        nodes[name]?.fences = []
        nodes[name]?.waiting = []
        nodes[name]?.plane = ControlPlane(
            node.setup,
            restoring: node.saved,
            at: now,
            unixTime: 1_700_000_000 + Double(now.nanoseconds) / 1e9
        )
        for other in nodes.keys.sorted() where other != name {
            let boot = bootID(of: name)
            if isAwaited {
                nodes[other]?.plane.orphanGuests(of: name, boot, isBack: true, at: now)
            } else {
                nodes[other]?.plane.endGuests(of: name, at: now)
            }
            if isKnown {
                if nodes[other]?.plane.roomCount ?? 0 > 0 { disowned.insert([other, name]) }
            } else {
                nodes[other]?.plane.losePlaces(at: name, at: now)
            }
        }
        settle()
    }

    /// Whether somebody is in the room at `a`.
    func has(_ participant: String) -> Bool {
        nodes["a"]?.plane.rooms["r"]?.room.participants[participant] != nil
    }

    /// Lets no home hear that a node's process is another one: their own are others, too.
    mutating func forgetSessions() { disowned = [] }

    /// Makes a node's links again.
    mutating func reunite(_ name: String) {
        for other in nodes.keys.sorted() where other != name {
            meet(name, other)
            meet(other, name)
            if disowned.remove([other, name]) != nil {
                nodes[other]?.plane.disownPlaces(at: name, at: now)
            }
        }
        settle()
    }

    /// Ends a node's process: the others count it as lost.
    mutating func kill(_ name: String) {
        nodes[name]?.isStopped = true
        for other in nodes.keys.sorted() where other != name {
            nodes[other]?.waiting.removeAll { $0.from == name }
            let boot = bootID(of: name)
            nodes[other]?.plane.orphanGuests(of: name, boot, at: now)
            nodes[other]?.plane.losePlaces(at: name, at: now)
        }
        settle()
    }

    private func bootID(of name: String) -> String { nodes[name]?.plane.bootID ?? "" }

    /// Lets another life of a killed node begin, which knows nothing.
    mutating func begin(_ name: String) {
        guard var setup = nodes[name]?.setup else { return }
        setup.bootID += "-next"
        nodes[name] = Node(setup)
        for other in nodes.keys where other != name {
            meet(name, other)
            meet(other, name)
        }
        settle()
    }

    /// Lets a node go on with the room of a killed one, by its journal.
    mutating func adopt(
        from name: String,
        by heir: String,
        _ records: [String: [UInt8]]? = nil,
        boot: String? = nil
    ) {
        let unixTime = 1_700_000_000 + Double(now.nanoseconds) / 1e9
        let room = JournaledRoom(
            name: "r",
            of: name,
            boot ?? bootID(of: name),
            records: (records ?? nodes[name]?.journaled ?? [:])
                .filter { $0.key.split(separator: "/")[1] == "r" },
            instant: now,
            unixTime: unixTime
        )
        nodes[heir]?.plane.adopt(room, at: now, unixTime: unixTime)
        settle()
    }

    mutating func resume(_ name: String) {
        nodes[name]?.isStopped = false
        settle()
    }

    /// Lets nodes and workers do their part until nothing is left.
    mutating func settle() {
        var isBusy = true
        while isBusy {
            isBusy = false
            for name in nodes.keys.sorted() where nodes[name]?.isStopped == false {
                let messages = nodes[name]?.waiting ?? []
                nodes[name]?.waiting = []
                for message in messages {
                    isBusy = true
                    let boot = bootID(of: message.from)
                    if message.isFromHome {
                        nodes[name]?.plane
                            .receivePlaceCommands(message.bytes, from: message.from, boot, at: now)
                    } else {
                        nodes[name]?.plane
                            .receivePlaceEvents(message.bytes, from: message.from, at: now)
                    }
                    takeOutput(of: name)
                }
                if takeOutput(of: name) { isBusy = true }
                for (worker, epoch) in nodes[name]?.fences ?? [] {
                    isBusy = true
                    let passed = WorkerEvent.fenced(epoch: epoch, at: now, packets: 1)
                    nodes[name]?.plane.receive(passed, from: worker, at: now)
                }
                nodes[name]?.fences = []
            }
        }
    }

    /// Carries out what a node has to do; returns whether that was anything.
    @discardableResult
    private mutating func takeOutput(of name: String) -> Bool {
        let output = nodes[name]?.plane.takeOutput() ?? []
        for item in output { take(item, of: name) }
        return !output.isEmpty
    }

    private mutating func take(_ output: ControlOutput, of name: String) {
        switch output {
        case .reply(_, let line):
            guard case .reply(let reply)? = try? IPCMessage(line: line),
                case .integer(let id) = reply.id
            else { return }
            #expect(replies[id] == nil, "call \(id) is answered twice")
            replies[id] = reply.outcome
        case .event(let line, _, _):
            guard case .event(let event)? = try? IPCMessage(line: line.line) else { return }
            events.append(event)
        case .commands(let worker, let batch):
            for command in batch {
                if case .fence(let epoch) = command {
                    nodes[name]?.fences.append((worker, epoch))
                } else if worker == Self.link {
                    nodes[name]?.orders.append(command)
                } else if worker == Self.recorder {
                    nodes[name]?.recorder.apply(command)
                } else {
                    nodes[name]?.worker.apply(command)
                    nodes[name]?.commands.append(command)
                }
            }
        case .place(let node, let asHome, let bytes):
            // It belongs to a session that the node's process does not know.
            if asHome, disowned.contains([name, node]) { break }
            nodes[node]?.waiting.append((name, asHome, bytes))
            guard asHome else { return }
            let before = told[node] ?? (0, 0)
            told[node] = (before.messages + 1, before.bytes + bytes.count)
        case .save(let changes):
            for change in changes {
                nodes[name]?.saved[change.key] = change.value
                guard let shared = change.journaled else { continue }
                nodes[name]?.journaled[shared.key] = shared.value
            }
        case .log(let level, let message, let fields):
            if level >= .warning { warnings.append("\(name): \(message) \(fields.map(\.1))") }
        case .handOver(let room, let isForced): handed.append((room, name, isForced))
        case .serverEvent(let line): serverEvents.append("\(name): \(line.name)")
        case .statistics, .subscribe, .close, .upgrade, .exit: break
        }
    }

    /// Joins a participant by way of a node and offers m-lines; returns the answer and its stream.
    @discardableResult
    mutating func join(
        _ participant: String,
        by node: String?,
        at home: String = "a",
        _ lines: String...
    ) throws -> (answer: String, stream: String?) {
        let who: [String: JSON] = ["room": "r", "participant": .string(participant)]
        _ = try done("participant.join", .object(who), to: home, by: node)
        let sdp = JSON.string(TestOffer(lines).text)
        let result = try done(
            "transport.offer",
            .object(who.merging(["sdp": sdp]) { $1 }),
            to: home,
            by: node
        )
        .decode(TransportOffer.Result.self)
        return (result.sdp, result.mids.first?.stream?.rawValue)
    }

    mutating func watch(
        _ participant: String,
        _ stream: String?,
        at home: String = "a"
    ) throws {
        _ = try done(
            "subscription.add",
            [
                "room": "r", "participant": .string(participant),
                "stream": .string(try #require(stream)),
            ],
            to: home
        )
    }
}

/// Course of a test in a world of places.
protocol PlaceStory {
    var world: PlaceWorld { get set }
}

extension PlaceStory {
    func worker(_ name: String) throws -> WalkWorker { try #require(world.nodes[name]).worker }

    mutating func connections() throws -> [ConnectionState?] {
        try world.done("participant.list", ["room": "r"])
            .decode(ParticipantList.Result.self).participants.map(\.connection)
    }

    mutating func mute(_ who: String = "p") -> Int64 {
        let params: JSON = ["room": "r", "participant": .string(who), "media": ["video"]]
        return world.send("participant.hardMute", params)
    }

    /// Participants of the events of a kind, in order.
    func told(_ event: String) -> [JSON?] {
        world.events.filter { $0.event == event }.map { $0.data["participant"] }
    }
}
