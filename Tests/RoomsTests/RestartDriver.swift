import Contract
import ControlPlane
import JSON
import RTP
import Rooms
import TestSupport
import Testing
import WorkerInterface

/// A control plane that saves its rooms, and the process around it, which can die at any time.
struct RestartDriver {
    var plane: ControlPlane
    var saved: [String: [UInt8]] = [:]
    /// The part of it that other nodes may read.
    var journaled: [String: [UInt8]] = [:]
    /// Seconds by which the monotonic clock is behind that of other drivers.
    var clockLag = 0.0
    var workers = [ToldWorker](repeating: ToldWorker(), count: 2)
    /// Transports that were resumed, since the last restart.
    var resumed: Set<TransportID> = []
    var errors: [String] = []
    /// Events since the start, by room.
    var events: [String: [[UInt8]]] = [:]
    var replay: [[UInt8]] = []
    /// Whether workers pass their fences at once.
    var passesFences = true
    private var fences: [(worker: Int, epoch: UInt64)] = []
    private var reply: [UInt8] = []
    private var lastID: Int64 = 0
    private(set) var now = Instant(nanoseconds: 1_000_000_000)
    private let seed: UInt64
    private var life = 1

    init(seed: UInt64) {
        self.seed = seed
        plane = ControlPlane(Self.setup(seed: seed, life: 1))
        drain()
    }

    private static func setup(seed: UInt64, life: Int) -> ControlSetup {
        var limits = ControlLimits()
        limits.workerSpread = 0
        return ControlSetup(
            version: "1",
            bootID: "boot \(life)",
            startTime: 1_700_000_000,
            random: .seeded(seed &+ UInt64(life) << 32),
            fingerprint: Fingerprint(algorithm: .sha256, digest: Array(0..<32)),
            candidates: [[Address(ipv4: 1, port: 1)], [Address(ipv4: 1, port: 2)]],
            udp: ["", ""],
            limits: limits,
            node: "n"
        )
    }

    private var unixTime: Double { 1_700_000_000 + clockLag + Double(now.nanoseconds) / 1e9 }

    /// A room as its journal has it.
    func journaled(_ room: String) -> JournaledRoom {
        JournaledRoom(
            name: room,
            of: "lost",
            "boot",
            records: journaled.filter { $0.key.split(separator: "/")[1] == room },
            instant: now,
            unixTime: unixTime
        )
    }

    /// Takes over a room of another node.
    mutating func adopt(_ room: JournaledRoom) -> Bool {
        defer { drain() }
        plane.adopt(room, at: now, unixTime: unixTime)
        return plane.takeAdopted().contains { $0.room == room.name && $0.last != nil }
    }

    mutating func abandon(_ room: String) {
        plane.abandon(room, at: now)
        drain()
    }

    /// Ends the process, and starts another with what was saved.
    mutating func restart(with records: [String: [UInt8]]? = nil) {
        let records = records ?? saved
        life += 1
        (saved, workers, resumed) = ([:], [ToldWorker(), ToldWorker()], [])
        (errors, fences) = ([], [])
        plane = ControlPlane(
            Self.setup(seed: seed, life: life),
            restoring: records,
            at: now,
            unixTime: unixTime
        )
        drain()
    }

    /// Makes a call; returns the result or the error as text.
    @discardableResult
    mutating func call(_ method: String, _ params: JSON = [:]) -> String {
        now = now.advanced(milliseconds: 20)
        lastID += 1
        let request = IPCRequest(id: .integer(lastID), method: method, params: params)
        reply = []
        plane.receive(
            request.encoded(),
            from: ConnectionID(rawValue: 1),
            at: now,
            unixTime: unixTime
        )
        drain()
        let text = String(decoding: reply, as: UTF8.self)
        return text.replacing("\"id\":\(lastID),", with: "")
    }

    /// Lets time pass, and what is due happen.
    mutating func pass(milliseconds: Int64) {
        now = now.advanced(milliseconds: milliseconds)
        plane.expire(at: now)
        drain()
    }

    mutating func tell(_ event: WorkerEvent, from worker: Int) {
        plane.receive(event, from: worker, at: now)
        drain()
    }

    private mutating func drain() {
        while true {
            let batch = plane.takeOutput()
            guard !batch.isEmpty else { return }
            for (index, output) in batch.enumerated() {
                if case .save = output { #expect(index == 0) }
                take(output)
            }
            guard passesFences else { return }
            for fence in fences {
                let passed = WorkerEvent.fenced(epoch: fence.epoch, at: now, packets: 0)
                plane.receive(passed, from: fence.worker, at: now)
            }
            fences = []
        }
    }

    private mutating func take(_ output: ControlOutput) {
        switch output {
        case .save(let changes):
            for change in changes {
                saved[change.key] = change.value
                guard let shared = change.journaled else { continue }
                journaled[shared.key] = shared.value
            }
        case .reply(_, let line): reply = line
        case .event(let line, let room, _): events[room, default: []].append(line.line)
        case .subscribe(_, _, let missed): replay = missed.map(\.event.line)
        case .commands(let worker, let commands):
            // The thread of the links is none of them.
            for command in commands where workers.indices.contains(worker) {
                workers[worker].apply(command)
                switch command {
                case .fence(let epoch): fences.append((worker, epoch))
                case .resume(let id, wasConnected: true): resumed.insert(id)
                default: break
                }
            }
        case .log(.error, let message, let fields): errors.append("\(message) \(fields)")
        case .log, .close, .exit, .serverEvent, .statistics, .upgrade, .place, .handOver: break
        }
    }
}
