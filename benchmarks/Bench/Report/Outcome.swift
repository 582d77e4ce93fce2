import Foundation

/// Measured quantities, by their names in JSON.
enum Figure: String, Sendable, CaseIterable {
    /// Packets a second that viewers received.
    case packetsPerSecond
    /// CPU of the SFU in microseconds for each packet that a viewer received.
    case cpuMicroseconds
    /// CPU of the SFU and of the bench's media thread, as shares of one core.
    case cpuShare, clientShare
    /// Average bytes of a datagram.
    case meanBytes
    /// Shares of packets that were not received.
    case loss, audioLoss, videoLoss
    /// End-to-end latency, in milliseconds.
    case latency50, latency99, latency999, latencyMax
    /// Latency until the client's socket, by the kernel's timestamps.
    case arrival99
    /// Delay inside the SFU, in milliseconds.
    case delay50, delay99, delay999
    /// Most packets to one receiver within a millisecond.
    case burst
    /// Frames of one viewer that libvpx decoded, and frames that it could not decode.
    case framesDecoded, framesFailed
    /// Joins for each second of time, and for each second of the SFU's CPU.
    case joinsPerSecond, joinsPerCPUSecond
    /// Longest time in which some viewer received nothing, over one end of the process, in
    /// milliseconds; what was lost, and how many keyframes were asked for, each time.
    case pause50, pause99, pauseMax, lostPerLife, keyframesPerLife
    /// Bytes of resident memory.
    case residentBytes, bytesPerViewer, bytesPerSubscription
    /// CPU of the SFU's busiest and second-busiest thread, in microseconds a packet.
    case busiestMicroseconds, secondMicroseconds
    /// Ratio of the load that two workers carry to that of one.
    case speedup
    /// Viewers at the knee.
    case knee
    /// Exponent of the fit of CPU to packets.
    case exponent
    /// Calls answered a second, and their latency in milliseconds.
    case callsPerSecond, callLatency50, callLatency99
    /// Events a second, and the bytes of the longest: of a message to all, and of a join.
    case eventsPerSecond, messageBytes, joinBytes
    /// CPU of the SFU's threads without media, as a share of one core.
    case controlShare
    /// Failed joins, and bytes sent to addresses that were never validated.
    case joinsFailed, strangerBytes
    case floodPerSecond
    /// Datagrams dropped at the SFU's full sockets.
    case kernelDrops
    /// Resident memory left by a closed room, with the bounds of its 95 % interval.
    case bytesPerRoom, bytesPerRoomLow, bytesPerRoomHigh
    /// Allocated memory left by a closed room, with the same bounds.
    case heapPerRoom, heapPerRoomLow, heapPerRoomHigh
    case descriptorsLeft
    /// Share of the knee's packets that was delivered, and seconds until full recovery.
    case delivered, recovery
}

/// Figures of one trial.
struct Outcome: Sendable {
    /// `P1` and so on.
    var scenario: String
    /// Measured system, such as `sfud` or `floor-1`.
    var system: String
    var profile = BenchProfile.gcm
    var workers = 1
    /// Number of viewers, listeners or members.
    var size: Int
    /// Distinguishes this trial from others of its scenario.
    var note = ""
    /// Number of its scenario's round, from 1 on.
    var round = 1
    var figures: [Figure: Double] = [:]
    /// Failed checks, one line each.
    var faults: [String] = []
    /// Reasons to doubt the figures, one line each.
    var warnings: [String] = []

    subscript(figure: Figure) -> Double? {
        get { figures[figure] }
        set { figures[figure] = newValue }
    }

    init(_ scenario: String, _ system: String, size: Int) {
        self.scenario = scenario
        self.system = system
        self.size = size
    }

    /// One line of JSON, in a fixed order of keys.
    var json: String {
        let numbers = figures.sorted { $0.key.rawValue < $1.key.rawValue }.map { figure, value in
            "\"\(figure.rawValue)\":\(value.isFinite ? String(format: "%.6g", value) : "null")"
        }
        let texts = [
            ("scenario", scenario), ("system", system), ("profile", profile.rawValue),
            ("note", note),
        ]
        let fields =
            texts.map { "\"\($0)\":\(Self.quoted($1))" }
            + ["\"workers\":\(workers)", "\"size\":\(size)", "\"round\":\(round)"] + numbers
            + [("faults", faults), ("warnings", warnings)].map { name, lines in
                "\"\(name)\":[\(lines.map(Self.quoted).joined(separator: ","))]"
            }
        return "{\(fields.joined(separator: ","))}"
    }

    private static func quoted(_ text: String) -> String {
        let escaped = text.flatMap { character -> [Character] in
            switch character {
            case "\"", "\\": ["\\", character]
            case "\n": ["\\", "n"]
            default: [character]
            }
        }
        return "\"\(String(escaped))\""
    }

    /// One line of text for the terminal.
    var line: String {
        let columns: [(Figure, String, Double)] = [
            (.packetsPerSecond, "%.0f packets/s", 1), (.cpuMicroseconds, "%.2f µs/packet", 1),
            (.cpuShare, "%.0f %% CPU", 100), (.clientShare, "client %.0f %%", 100),
            (.loss, "lost %.3f %%", 100), (.audioLoss, "sound %.3f %%", 100),
            (.latency50, "p50 %.2f", 1),
            (.latency99, "p99 %.2f", 1), (.latency999, "p99.9 %.2f ms", 1),
            (.arrival99, "at the socket p99 %.2f ms", 1),
            (.burst, "burst %.0f", 1), (.joinsPerSecond, "%.0f joins/s", 1),
            (.pause50, "nothing for p50 %.0f", 1), (.pause99, "p99 %.0f", 1),
            (.pauseMax, "at most %.0f ms", 1), (.lostPerLife, "%.1f lost each time", 1),
            (.keyframesPerLife, "%.1f keyframes asked for", 1),
            (.joinsPerCPUSecond, "%.0f joins/CPU s", 1), (.bytesPerViewer, "%.0f B/viewer", 1),
            (.bytesPerSubscription, "%.0f B/subscription", 1), (.speedup, "%.2f times", 1),
            (.knee, "knee %.0f", 1), (.exponent, "exponent %.2f", 1),
            (.callsPerSecond, "%.0f calls/s", 1), (.callLatency99, "answered p99 %.2f ms", 1),
            (.eventsPerSecond, "%.0f events/s", 1), (.messageBytes, "message %.0f B", 1),
            (.joinBytes, "join %.0f B", 1),
            (.floodPerSecond, "flood %.0f/s", 1), (.joinsFailed, "%.0f joins failed", 1),
            (.strangerBytes, "%.0f B to strangers", 1), (.kernelDrops, "%.0f kernel drops", 1),
            (.bytesPerRoom, "%.1f B/room", 1), (.bytesPerRoomLow, "from %.1f", 1),
            (.bytesPerRoomHigh, "to %.1f", 1), (.heapPerRoom, "allocated %.2f B/room", 1),
            (.heapPerRoomLow, "from %.2f", 1), (.heapPerRoomHigh, "to %.2f", 1),
            (.descriptorsLeft, "%.0f descriptors left", 1),
            (.delivered, "delivered %.1f %% of the knee", 100),
            (.recovery, "normal after %.1f s", 1),
            (.controlShare, "control %.1f %%", 100), (.delay50, "inside p50 %.3f", 1),
            (.delay99, "p99 %.3f", 1), (.delay999, "p99.9 %.3f ms", 1),
        ]
        let values = columns.compactMap { figure, format, factor in
            self[figure].map { String(format: format, $0 * factor) }
        }
        let head = "\(scenario) \(system) \(size)" + (note.isEmpty ? "" : " (\(note))")
        let setting = "\(profile.rawValue)" + (workers > 1 ? ", \(workers) workers" : "")
        return "\(head), \(setting): \(values.joined(separator: ", "))"
            + (faults + warnings).map { "\n    \($0)" }.joined()
    }
}

extension Outcome {
    /// Collects the figures of a trial.
    init(_ scenario: String, _ result: TrialResult, _ trial: Trial, size: Int) {
        self.init(scenario, result.name, size: size)
        profile = trial.profile
        workers = trial.workers
        self[.packetsPerSecond] = result.packetsPerSecond
        self[.cpuMicroseconds] = result.cpuMicroseconds
        self[.cpuShare] = result.cpuShare
        self[.clientShare] = result.clientShare
        self[.meanBytes] = result.meanBytes
        self[.loss] = result.loss(\.slots)
        self[.audioLoss] = result.loss(\.audio)
        self[.videoLoss] = result.loss(\.video)
        let latency = result.after.latency
        self[.latency50] = latency.milliseconds(0.5)
        self[.latency99] = latency.milliseconds(0.99)
        self[.latency999] = latency.milliseconds(0.999)
        self[.latencyMax] = Double(latency.longest) / 1e6
        self[.arrival99] = result.after.arrivals.milliseconds(0.99)
        self[.burst] = Double(result.final.video.burst)
        self[.residentBytes] = Double(result.usageAfter.resident)
        if let delay = result.delay, delay.counts.contains(where: { $0 > 0 }) {
            self[.delay50] = delay.milliseconds(0.5)
            self[.delay99] = delay.milliseconds(0.99)
            self[.delay999] = delay.milliseconds(0.999)
        }
        let packets = Double(max(1, result.received.received))
        let threads = result.usageAfter.threadsSince(result.usageBefore)
        for (figure, thread) in zip([Figure.busiestMicroseconds, .secondMicroseconds], threads) {
            self[figure] = Double(thread.nanoseconds) / 1_000 / packets
        }
        faults = result.faults
        let resumptions = result.final.slots.resumptions
        if resumptions > 0 { warnings.append("\(resumptions) pictures begun anew") }
        if result.final.queueDrops > 0 {
            warnings.append("\(result.final.queueDrops) dropped at the bench's own sockets")
        }
        let skipped = result.final.publishers.skipped
        if skipped > 0 { warnings.append("the bench was too late for \(skipped) frames") }
        if let frames = result.final.frames, !frames.frames.isEmpty {
            let decoded = frames.decode()
            self[.framesDecoded] = Double(decoded)
            self[.framesFailed] = Double(frames.frames.count - decoded)
            if decoded < frames.frames.count {
                faults.append("\(frames.frames.count - decoded) frames do not decode")
            }
        }
    }
}
