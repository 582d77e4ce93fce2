import Contract
import ControlPlane
import Daemon
import RTP
import Rooms
import SFU
import TestSupport
import WorkerInterface

/// A control plane with one room, fed with lines of the IPC.
///
/// A one-byte line is no call: `.` lets the workers pass their fences, `+` and `-` connect and end
/// all transports, and `:` advances the clock by three seconds.
struct CallTrial {
    private var plane: ControlPlane
    private var now = Instant(nanoseconds: 1_000_000_000)
    private var fences: [(worker: Int, epoch: UInt64)] = []
    private var questions: [(worker: Int, event: WorkerEvent)] = []
    private var transports: Set<Place> = []
    private var replies = 0
    /// Number of calls that succeeded.
    private var results = 0
    private var sum = 0

    fileprivate struct Place: Hashable {
        var worker: Int
        var id: TransportID
    }

    static func run(_ bytes: [UInt8]) throws(Violation) -> Int {
        var trial = Self()
        for line in prelude { try trial.call(Array(line.utf8)) }
        try trial.pass()
        guard trial.results == prelude.count else { throw Violation("the room is not made") }
        let calls = trial.replies
        var count = 0
        var reader = LineReader(limit: 4_096)
        for chunk in stride(from: 0, to: bytes.count, by: 61) {
            let result = reader.receive(bytes[chunk..<min(chunk + 61, bytes.count)])
            for line in result.lines {
                guard line.count > 1 else {
                    try trial.control(line[0])
                    continue
                }
                count += 1
                try trial.call(line)
            }
            guard !result.isTooLong else { break }
        }
        try trial.pass()
        guard trial.replies == calls + count else {
            throw Violation("\(trial.replies - calls) replies to \(count) lines")
        }
        return trial.sum
    }

    private init() {
        plane = ControlPlane(
            ControlSetup(
                version: "1",
                bootID: "boot",
                startTime: Self.startTime,
                random: .seeded(1),
                fingerprint: Fingerprint(algorithm: .sha256, digest: Array(0..<32)),
                candidates: [
                    [Address(ipv4: 0x7f00_0001, port: 5004)],
                    [Address(ipv4: 0x7f00_0001, port: 5005)],
                ],
                udp: ["127.0.0.1:5004", "127.0.0.1:5005"],
                limits: Self.limits,
                recordings: nil
            )
        )
    }

    private mutating func call(_ line: [UInt8]) throws(Violation) {
        now = now.advanced(milliseconds: 1)
        let seconds = Double(now.nanoseconds) / 1e9
        let connection = ConnectionID(rawValue: 1)
        plane.receive(line, from: connection, at: now, unixTime: Self.startTime + seconds)
        try drain()
    }

    private mutating func control(_ byte: UInt8) throws(Violation) {
        switch byte {
        case UInt8(ascii: "."): try pass()
        case UInt8(ascii: "+"): try tell(.connected)
        case UInt8(ascii: "-"): try tell(.disconnected(.timeout))
        case UInt8(ascii: ":"):
            now = now.advanced(milliseconds: 3_000)
            plane.expire(at: now)
            try drain()
        default: break
        }
    }

    private mutating func tell(_ change: TransportChange) throws(Violation) {
        for place in transports.sorted(by: { $0.order < $1.order }) {
            plane.receive(.transport(place.id, change), from: place.worker, at: now)
            try drain()
        }
    }

    /// Lets the workers pass all pending fences and answer all pending questions.
    private mutating func pass() throws(Violation) {
        while !fences.isEmpty || !questions.isEmpty {
            while !questions.isEmpty {
                let (worker, event) = questions.removeFirst()
                plane.receive(event, from: worker, at: now)
            }
            while !fences.isEmpty {
                let (worker, epoch) = fences.removeFirst()
                plane.receive(.fenced(epoch: epoch, at: now, packets: 1), from: worker, at: now)
            }
            try drain()
        }
    }

    private mutating func drain() throws(Violation) {
        for item in plane.takeOutput() {
            switch item {
            case .reply(_, let line):
                guard case .reply(let reply)? = try? IPCMessage(line: line) else {
                    throw Violation("no reply: \(String(decoding: line, as: UTF8.self))")
                }
                replies += 1
                if case .success = reply.outcome { results += 1 }
                sum += line.count
            case .event(let event, _, _), .serverEvent(let event), .statistics(_, let event):
                guard case .event? = try? IPCMessage(line: event.line) else {
                    throw Violation("no event: \(String(decoding: event.line, as: UTF8.self))")
                }
                sum += event.line.count
            case .commands(let worker, let commands):
                for command in commands { take(command, worker: worker) }
            case .subscribe(_, _, let replay): sum += replay.count
            case .log, .close, .save, .place, .handOver: break
            case .upgrade: plane.concludeUpgrade(refusal: "there is no other program")
            case .exit: throw Violation("a call ends the daemon")
            }
        }
    }

    private mutating func take(_ command: WorkerCommand, worker: Int) {
        sum += 1
        switch command {
        case .fence(let epoch): fences.append((worker, epoch))
        case .report(let token), .reportTransports(_, let token):
            questions.append((worker, .statistics(token: token, WorkerStatistics())))
        case .explain(_, let token):
            questions.append((worker, .explained(token: token, nil)))
        case .configure(let id, _): transports.insert(Place(worker: worker, id: id))
        case .close(let id): transports.remove(Place(worker: worker, id: id))
        default: break
        }
    }

    private static let startTime = 1_700_000_000.0

    private static let limits: ControlLimits = {
        var limits = ControlLimits()
        limits.rooms = 4
        limits.participantsPerRoom = 8
        limits.transportsPerWorker = 8
        limits.eventsPerRoom = 16
        limits.messageTopics = 4
        limits.messagesPerTopic = 4
        limits.workerSpread = 0
        return limits
    }()

    /// Calls that make a room `r` of two: `a` moderates and is on air, `b` watches.
    private static let prelude = [
        call("events.subscribe", "{}"),
        call("room.create", #"{"room":"r"}"#),
        call("participant.join", #"{"room":"r","participant":"a","role":"moderator"}"#),
        call("participant.join", #"{"room":"r","participant":"b"}"#),
        call("transport.offer", offer(of: "a", direction: "sendonly")),
        call("transport.offer", offer(of: "b", direction: "sendrecv")),
        call(
            "talkers.subscribe",
            #"{"room":"r","participant":"b","audioMids":["0"],"videoMids":["1"]}"#
        ),
    ]

    private static func call(_ method: String, _ params: String) -> String {
        #"{"jsonrpc":"2.0","id":0,"method":"\#(method)","params":\#(params)}"#
    }

    private static func offer(of participant: String, direction: String) -> String {
        let digest = Array(repeating: "AB", count: 32).joined(separator: ":")
        let lines = [
            "v=0", "o=- 1 1 IN IP4 127.0.0.1", "s=-", "t=0 0", "a=group:BUNDLE 0 1",
            "a=ice-ufrag:abcd", "a=ice-pwd:abcdefghijklmnopqrstuvwx",
            "a=fingerprint:sha-256 \(digest)", "a=setup:actpass",
            "m=audio 9 UDP/TLS/RTP/SAVPF 111", "c=IN IP4 0.0.0.0", "a=mid:0", "a=\(direction)",
            "a=rtcp-mux", "a=rtpmap:111 opus/48000/2",
            "m=video 9 UDP/TLS/RTP/SAVPF 96", "c=IN IP4 0.0.0.0", "a=mid:1", "a=\(direction)",
            "a=rtcp-mux", "a=rtpmap:96 VP8/90000",
        ]
        let sdp = lines.map { $0 + #"\r\n"# }.joined()
        return #"{"room":"r","participant":"\#(participant)","sdp":"\#(sdp)"}"#
    }
}

extension CallTrial.Place {
    fileprivate var order: Int { worker << 32 | Int(id.index) }
}
