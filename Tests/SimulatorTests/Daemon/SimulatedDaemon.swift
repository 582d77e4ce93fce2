import LoadPeer
import RTP
import TestSupport
import Testing

@testable import Contract
@testable import ControlPlane
@testable import JSON
@testable import Rooms
@testable import SFU
@testable import Simulator
@testable import WorkerInterface

/// A daemon in virtual time, or several nodes: the real control planes, real cores with real rings
/// between them, real link threads, and clients with real DTLS and SRTP.
///
/// Only threads, sockets and the network are simulated; the registry is not there, and one node is
/// the home of all rooms, at first the first. The seed decides when each thread has its turn, after
/// a quarter of a millisecond or after many: so commands, events, packets in rings and replies are
/// interleaved in ever different orders.
final class SimulatedDaemon: SimulatedNetwork {
    /// A packet's key: its unencrypted header fields.
    struct Wire: Hashable {
        var path: Path
        var ssrc: UInt32
        var sequence: UInt16
    }

    /// A thread that has turns.
    private enum Turn {
        case worker(Int)
        case control(SimulatedNode)
        case link(SimulatedNode)
    }

    let nodes: [SimulatedNode]
    /// The node that has the rooms.
    var home: SimulatedNode
    var paths = SimulatedPaths()
    var clients: [Path: SimulatedClient] = [:]
    private(set) var now = Instant(nanoseconds: 1_000_000_000)
    var replies: [Int64: Result<JSON, IPCError>] = [:]
    var flows: [Flow: Count] = [:]
    /// Whether it records the flows' counts at each reply.
    var keepsFlows = true
    /// The flows' counts when each reply was sent.
    var flowsAtReply: [Int64: [Flow: Count]] = [:]
    /// Work for the moment at which a call is answered.
    var whenAnswered: [Int64: () -> Void] = [:]
    /// Flows to which nobody has a right: a packet that leaves is a violation.
    var forbidden: Set<Flow> = []
    /// Numbers of the packets of sound that each flow has carried without a pause, and the time of
    /// the last one, if repetitions are violations.
    var heard: [Flow: (numbers: Set<UInt32>, last: Instant)]?
    /// Violations of these, with times.
    var violations: [String] = []
    /// Number of packets that were received in another room.
    var strays = 0
    /// Number of received media packets; below, of retransmissions among them.
    var received = 0
    var retransmissions = 0
    /// Clients that send a packet each interval, one track after the other.
    var senders: [SimulatedClient] = []
    /// Milliseconds from one packet of a sender to its next.
    var interval: Int64 = 1
    /// Longest time until a thread's next turn, in quarters of a millisecond.
    var mostQuarters = 12
    var random: SeededRandom
    /// Nodes where participants connect; the others do at the home.
    var places: [String: String] = [:]

    let identity: DTLSIdentity
    let context = SRTPContext(engine: .best)
    private let connection = ConnectionID(rawValue: 1)
    private var turns: [Turn] = []
    var underWay: [Wire: MediaMark] = [:]
    /// Packets written right behind the end of their receiver's handshake, which it has yet to get.
    var early: Set<Wire> = []
    private var lastID: Int64 = 0
    var lastClient = 0
    private var quarter: Int64 = 0

    /// Makes a daemon, or nodes of these names.
    init(
        seed: UInt64,
        identity: DTLSIdentity,
        workers count: Int = 2,
        nodes names: [String] = []
    ) throws {
        self.identity = identity
        var random = SeededRandom(seed: seed)
        var nodes: [SimulatedNode] = []
        for index in 0..<max(1, names.count) {
            let setup = Self.setup(
                index,
                named: names.isEmpty ? nil : names[index],
                workers: count,
                identity,
                .seeded(~seed &+ UInt64(index))
            )
            nodes.append(
                try SimulatedNode(index, setup, identity: identity, at: now, random: &random)
            )
        }
        self.random = random
        self.nodes = nodes
        home = nodes[0]
        for node in nodes {
            turns += node.workers.indices.map { .worker(node.index * count + $0) }
            turns.append(.control(node))
            if node.link != nil { turns.append(.link(node)) }
        }
        for node in nodes {
            for other in nodes where other.index > node.index { meet(node, other) }
        }
        // Nobody connects at a node that is not heard yet.
        if nodes.count > 1 { run(milliseconds: 500) }
    }

    private static func setup(
        _ index: Int,
        named name: String?,
        workers count: Int,
        _ identity: DTLSIdentity,
        _ random: RandomSource
    ) -> ControlSetup {
        var limits = ControlLimits()
        limits.workerSpread = 0
        let address = UInt32(0x7f00_0001 + index)
        return ControlSetup(
            version: "1",
            bootID: "boot\(index)",
            startTime: 1_700_000_000,
            random: random,
            fingerprint: identity.fingerprint,
            candidates: (0..<count).map { [Address(ipv4: address, port: 5004 + UInt16($0))] },
            udp: (0..<count).map { "127.0.0.1:\(5004 + $0)" },
            limits: limits,
            node: name
        )
    }

    /// Control plane of the home.
    var plane: ControlPlane { home.plane }
    /// Workers of all nodes.
    var workers: [SimulatedWorker] { nodes.flatMap(\.workers) }

    /// Returns one of them, by its number among all.
    func worker(_ number: Int) -> SimulatedWorker {
        let count = nodes[0].workers.count
        return nodes[number / count].workers[number % count]
    }

    func node(of client: SimulatedClient) -> SimulatedNode {
        nodes[client.worker / nodes[0].workers.count]
    }

    /// Lets two nodes know each other, as when their link is up.
    func meet(_ one: SimulatedNode, _ other: SimulatedNode) {
        one.plane.takePlaceFacts(other.plane.placeFacts, of: other.name, at: now)
        other.plane.takePlaceFacts(one.plane.placeFacts, of: one.name, at: now)
        paths.connect(one, other)
    }
}

// Calls.
extension SimulatedDaemon {
    /// Writes a call to the daemon's socket; the control thread reads it at its next turn.
    ///
    /// In a cluster it comes by way of the node of the participant that it names.
    func send(_ method: String, _ params: [String: JSON]) -> Int64 {
        lastID += 1
        let request = IPCRequest(id: .integer(lastID), method: method, params: .object(params))
        let node = params["participant"]?.text.flatMap { places[$0] }
        home.lines.append((request.encoded(), node))
        return lastID
    }

    /// Advances the clock until a call is answered.
    func reply(to id: Int64) throws -> JSON {
        for _ in 0..<20_000 where replies[id] == nil { step() }
        return try #require(replies[id], "no reply").get()
    }

    /// Makes a call and advances the clock until it is answered.
    @discardableResult
    func done(_ method: String, _ params: [String: JSON]) throws -> JSON {
        try reply(to: send(method, params))
    }
}

// Time.
extension SimulatedDaemon {
    func run(milliseconds: Int) {
        for _ in 0..<4 * milliseconds { step() }
    }

    /// Advances by a quarter of a millisecond.
    func step() {
        now = Instant(nanoseconds: now.nanoseconds + 250_000)
        quarter += 1
        if quarter % 4 == 0 { sendMedia() }
        if quarter % 40 == 0 { serveTimers() }
        paths.land(at: nodes, now)
        if Bool.random(using: &random) {
            for turn in turns { take(turn) }
        } else {
            for turn in turns.reversed() { take(turn) }
        }
    }

    /// Gives a thread its turn, if that has come.
    private func take(_ turn: Turn) {
        switch turn {
        case .worker(let number):
            let worker = worker(number)
            let node = nodes[number / nodes[0].workers.count]
            guard worker.nextRound <= now, node.mayRun(at: now) else { return }
            worker.nextRound = nextTurn()
            worker.round(at: now, through: self)
        case .control(let node):
            guard node.nextControl <= now, node.mayRun(at: now) else { return }
            node.nextControl = nextTurn()
            control(node)
        case .link(let node):
            guard let link = node.link, link.nextTurn <= now, node.mayRun(at: now) else { return }
            link.nextTurn = nextTurn()
            paths.launch(node.runLink(at: now), from: node.name, at: now, &random)
        }
    }

    private func nextTurn() -> Instant {
        let quarters = Int.random(in: 1...mostQuarters, using: &random)
        return Instant(nanoseconds: now.nanoseconds + Int64(quarters) * 250_000)
    }

    private func sendMedia() {
        let millisecond = quarter / 4
        guard millisecond % interval == 0 else { return }
        var sent = Batch(capacity: 4)
        for client in senders where !client.tracks.isEmpty {
            let track = Int(millisecond / interval) % client.tracks.count
            let size = Int.random(in: 10...120, using: &random)
            client.sendMedia(track, size: size, at: now, into: &sent)
            deliver(&sent, from: client)
        }
    }

    private func serveTimers() {
        for client in clients.values.sorted(by: { $0.index < $1.index }) {
            guard let due = client.peer.deadline, due <= now else { continue }
            var sent = Batch(capacity: 16)
            client.peer.expire(at: now, into: &sent)
            deliver(&sent, from: client)
        }
    }

    /// Runs a control thread once.
    private func control(_ node: SimulatedNode) {
        node.takeEvents(at: now)
        node.takeMail(at: now) { name in
            nodes.first { $0.name == name }?.setup.bootID ?? ""
        }
        takeOutput(of: node)
        node.endResumptionIfDue()
        let calls = node.lines
        node.lines = []
        let unixTime = 1_700_000_000 + Double(now.nanoseconds) / 1e9
        for (line, by) in calls {
            guard by != nil, let request = try? IPCRequest(line: line) else {
                node.plane.receive(line, from: connection, at: now, unixTime: unixTime)
                continue
            }
            node.plane.receive(request, from: connection, by: by, at: now, unixTime: unixTime)
        }
        if let due = node.plane.deadline, due <= now { node.plane.expire(at: now) }
        takeOutput(of: node)
    }

    func takeOutput(of node: SimulatedNode) {
        for output in node.plane.takeOutput() {
            switch output {
            case .reply(_, let line):
                guard case .reply(let reply)? = try? IPCMessage(line: line),
                    case .integer(let id) = reply.id
                else {
                    Issue.record("no reply: \(String(decoding: line, as: UTF8.self))")
                    continue
                }
                replies[id] = reply.outcome
                whenAnswered.removeValue(forKey: id)?()
                if keepsFlows { flowsAtReply[id] = flows }
            case .commands(let worker, let commands): node.post(commands, to: worker)
            case .place(let name, let asHome, let bytes):
                guard let other = nodes.first(where: { $0.name == name }), !isApart(node, other)
                else { continue }
                let due = paths.mailDue(node.name, name, at: now, &random)
                other.mail.append(
                    .init(due: due, from: node.name, isFromHome: asHome, bytes: bytes)
                )
            case .save(let changes): node.save(changes)
            case .event, .serverEvent, .statistics, .subscribe, .log, .close, .exit, .upgrade,
                .handOver:
                break
            }
        }
    }
}
