import RTP
import TestSupport
import Testing

@testable import Contract
@testable import ControlPlane
@testable import Daemon
@testable import JSON
@testable import Rooms
@testable import WorkerInterface

/// A control plane with callers, and workers that obey every command.
struct ControlDriver {
    var plane: ControlPlane
    private var setup: ControlSetup
    var now = Instant(nanoseconds: 1_000_000_000)
    /// Whether fences come back only when `fence()` is called.
    var holdsFences = false
    var replies: [Int64: Result<JSON, IPCError>] = [:]
    var events: [IPCEvent] = []
    /// All output in order, in short words.
    var trace: [String] = []
    var commands: [(worker: Int, command: WorkerCommand)] = []
    var fences: [(worker: Int, epoch: UInt64)] = []
    var subscribed: [(rooms: Set<String>?, replay: [IPCEvent])] = []
    var tokens: [(worker: Int, token: UInt64)] = []
    /// Transports whose statistics workers were asked for.
    private var reports: [(worker: Int, ids: [TransportID], token: UInt64)] = []
    /// Statistics that were sent, and to whom.
    private var statistics: [(connection: ConnectionID, event: IPCEvent)] = []
    /// Subscriptions that workers were asked to explain.
    var questions: [(worker: Int, token: UInt64)] = []
    /// Records that were saved for another process.
    var saved: [String: [UInt8]] = [:]
    var hasExited = false
    /// Bytes of the longest reply or event so far.
    var longestLine = 0
    private var lastID: Int64 = 0
    private var calls: [Int64: (method: String, params: JSON)] = [:]
    private var check = ContractCheck()

    static let startTime = 1_700_000_000.0
    let connection = ConnectionID(rawValue: 1)

    init(
        workers: Int = 1,
        limits: ControlLimits = ControlLimits(),
        recordings: String? = nil,
        outputBytes: Int? = nil,
        seed: UInt64 = 1
    ) {
        let candidates = (0..<workers).map { [Address(ipv4: 0x7f00_0001, port: 5004 + UInt16($0))] }
        var configured = Configuration.Limits()
        configured.control = limits
        if let outputBytes { configured.ipc.outputBytes = outputBytes }
        setup = ControlSetup(
            version: "1.2.3",
            bootID: "boot",
            startTime: Self.startTime,
            random: .seeded(seed),
            fingerprint: Fingerprint(algorithm: .sha256, digest: Array(0..<32)),
            candidates: candidates,
            udp: (0..<workers).map { "127.0.0.1:\(5004 + $0)" },
            limits: limits,
            configuredLimits: ConfigurationLimit.values(of: configured),
            recordings: recordings
        )
        plane = ControlPlane(setup)
    }

    /// Ends the process, and starts another with what it has saved.
    mutating func restart(with saved: [String: [UInt8]], seed: UInt64) {
        setup.random = .seeded(seed)
        let unixTime = Self.startTime + Double(now.nanoseconds) / 1e9
        plane = ControlPlane(setup, restoring: saved, at: now, unixTime: unixTime)
        fences = []
        self.saved = [:]
    }

    /// Sends a line and processes its effects, workers' answers not included.
    @discardableResult
    mutating func send(_ method: String, _ params: JSON = [:]) -> Int64 {
        lastID += 1
        calls[lastID] = (method, params)
        send(line: IPCRequest(id: .integer(lastID), method: method, params: params).encoded())
        return lastID
    }

    mutating func send(line: [UInt8]) {
        now = now.advanced(milliseconds: 1)
        let seconds = Double(now.nanoseconds) / 1e9
        plane.receive(
            line,
            from: connection,
            at: now,
            unixTime: Self.startTime - 1 + seconds
        )
        drain()
    }

    /// Sends a call, lets the workers do their part, and returns the reply.
    mutating func call(_ method: String, _ params: JSON = [:]) -> Result<JSON, IPCError> {
        let id = send(method, params)
        if !holdsFences { fence() }
        return replies[id] ?? .failure(.internalError("no reply to \(method)"))
    }

    /// Sends a call that is expected to succeed.
    @discardableResult
    mutating func done(_ method: String, _ params: JSON = [:]) throws -> JSON {
        try call(method, params).get()
    }

    /// Lets the workers pass all pending fences.
    mutating func fence(packets: UInt64 = 0) {
        while !fences.isEmpty {
            let (worker, epoch) = fences.removeFirst()
            tell(.fenced(epoch: epoch, at: now, packets: packets), from: worker)
        }
    }

    /// Lets one worker pass its pending fences.
    mutating func fence(worker: Int, packets: UInt64 = 0) {
        for fence in fences where fence.worker == worker {
            tell(.fenced(epoch: fence.epoch, at: now, packets: packets), from: worker)
        }
        fences.removeAll { $0.worker == worker }
    }

    mutating func tell(_ event: WorkerEvent, from worker: Int = 0) {
        plane.receive(event, from: worker, at: now)
        drain()
    }

    mutating func drain() {
        for output in plane.takeOutput() { take(output) }
    }

    private mutating func take(_ output: ControlOutput) {
        switch output {
        case .reply(_, let line):
            longestLine = max(longestLine, line.count)
            guard case .reply(let reply)? = try? IPCMessage(line: line) else {
                Issue.record("no reply: \(String(decoding: line, as: UTF8.self))")
                return
            }
            guard case .integer(let id) = reply.id else { return trace.append("reply without id") }
            #expect(replies[id] == nil, "call \(id) is answered twice")
            replies[id] = reply.outcome
            if case .failure(let error) = reply.outcome {
                let isListed = ContractErrors.contains(code: error.code, reason: error.reason)
                #expect(isListed, "x-errors lacks \(error)")
            }
            if let (method, params) = calls.removeValue(forKey: id),
                case .success(let result) = reply.outcome
            {
                check.call(method, params, result: result)
            }
            trace.append("reply \(id)")
        case .event(let line, let room, let seq):
            longestLine = max(longestLine, line.line.count)
            guard case .event(let event)? = try? IPCMessage(line: line.line) else {
                Issue.record("no event: \(String(decoding: line.line, as: UTF8.self))")
                return
            }
            #expect(event.room?.rawValue == room && event.seq == Int64(seq))
            events.append(event)
            check.event(line: line.line)
            trace.append(event.event)
        case .serverEvent(let line):
            guard case .event(let event)? = try? IPCMessage(line: line.line) else {
                Issue.record("no event: \(String(decoding: line.line, as: UTF8.self))")
                return
            }
            #expect(event.room == nil)
            events.append(event)
            check.event(line: line.line)
            trace.append(event.event)
        case .commands(let worker, let batch):
            for command in batch {
                switch command {
                case .fence(let epoch): fences.append((worker, epoch))
                case .explain(_, let token): questions.append((worker, token))
                case .report(let token): tokens.append((worker, token))
                case .reportTransports(let ids, let token):
                    tokens.append((worker, token))
                    reports.append((worker, ids, token))
                // Important for an overloaded worker, and for no story here.
                case .feature: break
                case .configure, .close, .gate, .bind, .limit, .mirror, .unmirror, .relay,
                    .hold, .tap, .resume, .endResumption, .postponeResumption, .link, .lease:
                    commands.append((worker, command))
                }
            }
            trace.append("commands")
        case .statistics(let connection, let line):
            guard case .event(let event)? = try? IPCMessage(line: line.line) else {
                Issue.record("no event: \(String(decoding: line.line, as: UTF8.self))")
                return
            }
            statistics.append((connection, event))
            trace.append(event.event)
        case .subscribe(_, let events, let replay):
            let missed = replay.compactMap { one -> IPCEvent? in
                guard case .event(let event)? = try? IPCMessage(line: one.event.line) else {
                    return nil
                }
                return event
            }
            subscribed.append((events.rooms, missed))
            trace.append("subscribe")
        case .exit:
            hasExited = true
            trace.append("exit")
        case .upgrade(let binary): trace.append("upgrade \(binary ?? "own")")
        case .save(let changes): for change in changes { saved[change.key] = change.value }
        case .log, .close, .place, .handOver: break
        }
    }
}

// Shorthands for the tests' stories.
extension ControlDriver {
    /// Makes a room of two workers with a moderator `m` and other people, none of them connected;
    /// what has happened so far is forgotten.
    static func moderated(
        _ settings: JSON = [:],
        people: [String] = ["a", "b"]
    ) throws -> ControlDriver {
        var driver = ControlDriver(workers: 2)
        try driver.room("r", settings)
        try driver.join("m", ["role": "moderator"])
        for id in people { try driver.join(id) }
        driver.events = []
        driver.commands = []
        return driver
    }

    /// Makes a server with taps, and a room of a moderator `m` and publishers.
    static func tapped(_ publishers: String...) throws -> ControlDriver {
        var driver = ControlDriver(recordings: "/recordings")
        try driver.room("r")
        try driver.join("m", ["role": "moderator"])
        for name in publishers {
            try driver.join(name)
            try driver.offer(name, "0:audio:sendonly", "1:video:sendonly")
        }
        return driver
    }

    mutating func room(_ name: String = "r", _ settings: JSON = [:]) throws {
        try done("room.create", ["room": .string(name), "settings": settings])
    }

    mutating func join(_ participant: String, _ more: [String: JSON] = [:]) throws {
        let params: [String: JSON] = ["room": "r", "participant": .string(participant)]
        try done("participant.join", .object(params.merging(more) { $1 }))
    }

    /// Offers m-lines, each as `a:audio:sendonly`, and returns the answer's `mids`.
    @discardableResult
    mutating func offer(
        _ participant: String,
        _ lines: String...,
        sources: JSON = [:],
        more: [String: JSON] = [:]
    ) throws -> [MidInfo] {
        let params: [String: JSON] = [
            "room": "r", "participant": .string(participant), "sources": sources,
            "sdp": .string(TestOffer(lines).text),
        ]
        let result = try done("transport.offer", .object(params.merging(more) { $1 }))
        return try result.decode(TransportOffer.Result.self).mids
    }

    @discardableResult
    mutating func watch(
        _ participant: String,
        _ stream: StreamID,
        _ more: [String: JSON] = [:]
    ) throws -> SubscriptionAdd.Result {
        let params: [String: JSON] = [
            "room": "r", "participant": .string(participant), "stream": .string(stream.rawValue),
        ]
        return try done("subscription.add", .object(params.merging(more) { $1 }))
            .decode(SubscriptionAdd.Result.self)
    }

    /// Returns the room as `room.get` shows it.
    mutating func shown(_ room: String = "r") throws -> ShownRoom {
        ShownRoom(try done("room.get", ["room": .string(room)]).decode(RoomInfo.self))
    }

    /// Takes the events since the last call, each with its audience.
    mutating func takeEventSummaries() -> [String] {
        defer { events = [] }
        return events.map { event in
            switch event.audience {
            case .all: "\(event.event) all"
            case .except(let ids):
                "\(event.event) all but \(ids.map(\.rawValue).joined(separator: ","))"
            case .participants(let ids):
                "\(event.event) \(ids.map(\.rawValue).joined(separator: ","))"
            }
        }
    }

    /// Takes the gate states sent to the workers since the last call, in order.
    mutating func takeGates() -> [Bool] {
        takeCommands().compactMap { command in
            guard case .gate(_, let open) = command else { return nil }
            return open
        }
    }

    /// Takes the commands, and returns for each slot that was bound whether it is open.
    mutating func takeOpenings() -> [Bool] {
        takeCommands().compactMap { command in
            guard case .bind(_, let binding?) = command else { return nil }
            return binding.open
        }
    }

    /// Takes the workers' pending questions for statistics.
    mutating func takeReports() -> [(worker: Int, ids: [TransportID], token: UInt64)] {
        defer { reports = [] }
        return reports
    }

    /// Takes the statistics sent since the last call.
    mutating func takeStatistics() -> [(connection: ConnectionID, event: IPCEvent)] {
        defer { statistics = [] }
        return statistics
    }

    mutating func takeEvents() -> [String] {
        defer { events = [] }
        return events.map(\.event)
    }

    mutating func takeCommands() -> [WorkerCommand] {
        defer { commands = [] }
        return commands.map(\.command)
    }

    /// Returns the handle of a participant's transport.
    func transport(_ participant: String, room: String = "r") throws -> TransportID {
        let participant = try #require(plane.rooms[room]?.room.participants[participant])
        return try #require(participant.transports.first).place.id
    }
}

/// A room with the first pages of its lists.
@dynamicMemberLookup struct ShownRoom: Equatable {
    var info: RoomInfo
    var participants: [ParticipantInfo] { info.participants ?? [] }
    var awaited: [ParticipantInfo] { info.awaited ?? [] }
    var streams: [StreamInfo] { info.streams ?? [] }

    init(_ info: RoomInfo) { self.info = info }

    subscript<Value>(dynamicMember path: KeyPath<RoomInfo, Value>) -> Value { info[keyPath: path] }
}
