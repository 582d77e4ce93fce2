import HostilePeer
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

/// A daemon in virtual time: the real control plane, real cores with real rings between them, and
/// clients with real DTLS and SRTP.
///
/// Only threads, sockets and the network are simulated. The seed decides when each thread has its
/// turn, after a quarter of a millisecond or after many: so commands, events, packets in rings and
/// replies are interleaved in ever different orders.
final class SimulatedDaemon: SimulatedNetwork {
    /// A packet's key: its unencrypted header fields.
    private struct Wire: Hashable {
        var path: Path
        var ssrc: UInt32
        var sequence: UInt16
    }

    private(set) var plane: ControlPlane
    private(set) var workers: [SimulatedWorker] = []
    private(set) var clients: [Path: SimulatedClient] = [:]
    private(set) var now = Instant(nanoseconds: 1_000_000_000)
    private(set) var replies: [Int64: Result<JSON, IPCError>] = [:]
    private(set) var flows: [Flow: Count] = [:]
    /// Whether it records the flows' counts at each reply.
    var keepsFlows = true
    /// The flows' counts when each reply was sent.
    private(set) var flowsAtReply: [Int64: [Flow: Count]] = [:]
    /// Number of packets that were received in another room.
    private(set) var strays = 0
    /// Number of received media packets; below, of retransmissions among them.
    private(set) var received = 0
    private(set) var retransmissions = 0
    /// Clients that send a packet each interval, one track after the other.
    var senders: [SimulatedClient] = []
    /// Milliseconds from one packet of a sender to its next.
    var interval: Int64 = 1
    /// Longest time until a thread's next turn, in quarters of a millisecond.
    var mostQuarters = 12
    var random: SeededRandom

    private let identity: DTLSIdentity
    private let context = SRTPContext(engine: .best)
    private let connection = ConnectionID(rawValue: 1)
    private var lines: [[UInt8]] = []
    private var nextControl = Instant(nanoseconds: 0)
    private var underWay: [Wire: MediaMark] = [:]
    /// Packets written right behind the end of their receiver's handshake, which it has yet to get.
    private var early: Set<Wire> = []
    private var lastID: Int64 = 0
    private var lastClient = 0
    private var quarter: Int64 = 0

    init(seed: UInt64, identity: DTLSIdentity, workers count: Int = 2) {
        self.identity = identity
        random = SeededRandom(seed: seed)
        var limits = ControlLimits()
        limits.workerSpread = 0
        let candidates = (0..<count).map { [Address(ipv4: 0x7f00_0001, port: 5004 + UInt16($0))] }
        plane = ControlPlane(
            ControlSetup(
                version: "1",
                bootID: "boot",
                startTime: 1_700_000_000,
                random: .seeded(~seed),
                fingerprint: identity.fingerprint,
                candidates: candidates,
                udp: (0..<count).map { "127.0.0.1:\(5004 + $0)" },
                limits: limits
            )
        )
        workers = SimulatedWorker.mesh(
            of: count,
            packetPool: 8_192,
            identity: identity,
            at: now,
            random: &random
        )
    }
}

// Calls.
extension SimulatedDaemon {
    /// Writes a call to the daemon's socket; the control thread reads it at its next turn.
    func send(_ method: String, _ params: [String: JSON]) -> Int64 {
        lastID += 1
        let request = IPCRequest(id: .integer(lastID), method: method, params: .object(params))
        lines.append(request.encoded())
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

// Clients.
extension SimulatedDaemon {
    /// Offers a transport for a participant, and begins to connect it.
    func connect(
        _ participant: String,
        in room: String,
        number: UInt32,
        tracks kinds: [MediaKind] = [],
        slots: Int = 0
    ) throws -> (client: SimulatedClient, mids: [MidInfo]) {
        let index = takeIndex()
        let tracks = kinds.enumerated().map { position, kind in
            SimulatedTrack(kind: kind, ssrc: UInt32(index * 8 + 2 * position + 1))
        }
        let offer = offer(index: index, tracks: tracks, slots: slots)
        let params: [String: JSON] = [
            "room": .string(room), "participant": .string(participant), "sdp": .string(offer.text),
        ]
        let result = try done("transport.offer", params).decode(TransportOffer.Result.self)
        let client = try adopt(
            result.sdp,
            index: index,
            number: number,
            participant: participant,
            tracks: tracks
        )
        return (client, result.mids)
    }

    func takeIndex() -> Int {
        lastClient += 1
        return lastClient
    }

    func offer(index: Int, tracks: [SimulatedTrack], slots: Int) -> SimulatedOffer {
        SimulatedOffer(
            fragment: LoadPeer.fragment(seed: UInt64(index)),
            password: LoadPeer.password(seed: UInt64(index)),
            fingerprint: identity.fingerprint,
            tracks: tracks,
            slots: slots
        )
    }

    /// Makes the client for an answer, and starts its checks.
    func adopt(
        _ answer: String,
        index: Int,
        number: UInt32,
        participant: String,
        tracks: [SimulatedTrack]
    ) throws -> SimulatedClient {
        let session = try SessionDescription(answer)
        let media = try #require(session.media.first)
        let fragment = try #require(media.transport.fragment ?? session.transport.fragment)
        let password = try #require(media.transport.password ?? session.transport.password)
        let worker = answer.contains(" 5004 typ") ? 0 : 1
        let client = SimulatedClient(
            index: index,
            room: number,
            participant: participant,
            worker: worker,
            fragment: fragment,
            password: password,
            peer: LoadPeer(
                identity: identity,
                context: context,
                path: SimulatedClient.path(of: index),
                seed: UInt64(index)
            ),
            tracks: tracks
        )
        clients[client.path] = client
        var sent = Batch(capacity: 16)
        client.peer.connect(
            fragment: fragment,
            password: password,
            fingerprint: identity.fingerprint,
            at: now,
            into: &sent
        )
        deliver(&sent, from: client)
        return client
    }

    /// Advances the clock until these have connected.
    func awaitConnected(_ waited: [SimulatedClient]) throws {
        for _ in 0..<8_000 where !waited.allSatisfy(\.isConnected) { step() }
        for client in waited {
            try #require(client.isConnected, "\(client.participant) does not connect")
        }
    }

    /// Forgets clients that have left, with all that is known of them.
    func forget(_ gone: [SimulatedClient]) {
        let indices = Set(gone.map(\.index))
        senders.removeAll { indices.contains($0.index) }
        for client in gone { clients[client.path] = nil }
        flows = flows.filter {
            !indices.contains($0.key.publisher) && !indices.contains($0.key.viewer)
        }
        flowsAtReply = [:]
        replies = [:]
        underWay = underWay.filter { clients[$0.key.path] != nil }
    }

    /// Lets a viewer request recent packets again.
    func askAgain(_ client: SimulatedClient) {
        var sent = Batch(capacity: 16)
        for (ssrc, numbers) in client.recent.sorted(by: { $0.key < $1.key }) {
            let choice = (0..<6).compactMap { _ in numbers.randomElement(using: &random) }
            guard let newest = numbers.last else { continue }
            let ordered = Set(choice).sorted { newest &- $0 > newest &- $1 }
            client.sendNACK(ordered, of: ssrc, into: &sent)
        }
        deliver(&sent, from: client)
    }

    private func deliver(_ sent: inout Batch, from client: SimulatedClient) {
        for position in 0..<sent.count {
            workers[client.worker].arrived
                .append(.init(path: client.path, bytes: sent.bytes(at: position), at: now))
        }
        sent.removeAll()
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
        let turns = Bool.random(using: &random) ? [0, 1, 2] : [2, 1, 0]
        for turn in turns {
            if turn == workers.count {
                if nextControl <= now {
                    nextControl = nextTurn()
                    control()
                }
            } else if workers[turn].nextRound <= now {
                workers[turn].nextRound = nextTurn()
                workers[turn].round(at: now, through: self)
            }
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

    /// Runs the control thread once.
    private func control() {
        for worker in workers {
            let events = worker.events
            worker.events = []
            for event in events { plane.receive(event, from: worker.index, at: now) }
        }
        takeOutput()
        let calls = lines
        lines = []
        let unixTime = 1_700_000_000 + Double(now.nanoseconds) / 1e9
        for line in calls {
            plane.receive(line, from: connection, at: now, unixTime: unixTime)
        }
        takeOutput()
    }

    private func takeOutput() {
        for output in plane.takeOutput() {
            switch output {
            case .reply(_, let line):
                guard case .reply(let reply)? = try? IPCMessage(line: line),
                    case .integer(let id) = reply.id
                else {
                    Issue.record("no reply: \(String(decoding: line, as: UTF8.self))")
                    continue
                }
                replies[id] = reply.outcome
                if keepsFlows { flowsAtReply[id] = flows }
            case .commands(let worker, let commands): workers[worker].mailbox += commands
            case .event, .serverEvent, .statistics, .subscribe, .log, .close, .exit, .upgrade,
                .save, .place, .handOver:
                break
            }
        }
    }
}

// Output.
extension SimulatedDaemon {
    /// Reads a media packet as its receiver will, the moment the core has written it.
    func written(_ bytes: [UInt8], to path: Path, by worker: Int) {
        guard case .rtp = Datagram(bytes.span), let client = clients[path] else { return }
        guard client.peer.isConnected else {
            let sequence = bytes.span.u16(at: 2)
            early.insert(Wire(path: path, ssrc: bytes.span.u32(at: 8), sequence: sequence))
            return
        }
        var unused = Batch(capacity: 1)
        guard case .rtp(let length) = client.peer.receive(bytes.span, at: now, into: &unused)
        else {
            Issue.record("a packet that its receiver cannot decrypt")
            return
        }
        let clear = client.peer.clear(length: length)
        guard let packet = try? Packet(clear.span) else {
            Issue.record("a packet that is none")
            return
        }
        let isRepeated = packet.payloadType.rawValue == SimulatedTrack.rtxPayloadType
        guard let mark = MediaMark(packet.payload) else {
            Issue.record("a packet without a mark")
            return
        }
        let sequence = packet.sequenceNumber.rawValue
        let ssrc = packet.ssrc.rawValue
        underWay[Wire(path: path, ssrc: ssrc, sequence: sequence)] = mark
        if !isRepeated {
            client.note(sequence, of: ssrc)
            flows[flow(of: mark, to: client), default: Count()].written += 1
        } else {
            retransmissions += 1
        }
    }

    private func flow(of mark: MediaMark, to client: SimulatedClient) -> Flow {
        Flow(publisher: Int(mark.publisher), viewer: client.index, kind: mark.kind)
    }

    /// Takes a datagram that has left a worker's socket.
    func leave(_ bytes: [UInt8], to path: Path, from worker: Int) {
        guard let client = clients[path] else { return }
        if case .rtp = Datagram(bytes.span) {
            let ssrc = bytes.span.u32(at: 8)
            let wire = Wire(path: path, ssrc: ssrc, sequence: bytes.span.u16(at: 2))
            if early.remove(wire) != nil { written(bytes, to: path, by: worker) }
            guard let mark = underWay.removeValue(forKey: wire) else {
                Issue.record("a packet left that nobody wrote")
                return
            }
            received += 1
            if mark.room != client.room { strays += 1 }
            flows[flow(of: mark, to: client), default: Count()].left += 1
            return
        }
        var answers = Batch(capacity: 16)
        let found = client.peer.receive(bytes.span, at: now, into: &answers)
        if case .rtcp(let length) = found { client.take(report: client.peer.clear(length: length)) }
        deliver(&answers, from: client)
    }
}
