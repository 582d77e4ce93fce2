import Contract
import Foundation
import SFU

/// Final report of `sfu-bench load`.
struct LoadReport {
    var options: LoadOptions
    var result: TrialResult
    /// sfud's counters while idle, before and after the media.
    var before: PacketCounters
    var after: PacketCounters
    var workers: Int
    /// Times without sound of viewers who have moved, in milliseconds, the shortest first.
    var gaps: [Double]?

    var text: String {
        if let gaps { return (conditions + [""] + moved(gaps)).joined(separator: "\n") }
        let found = conditions + [""] + received + late + [""] + latencies
        // The rest would have the costs of the late ones without their packets.
        let rest = result.lateJoins == nil ? cost + [""] + server : []
        return (found + rest).joined(separator: "\n")
    }

    /// Expected copies that were not received; all viewers were present from the start.
    private var lost: UInt64 {
        let slots = result.final.slots
        return slots.expected - min(slots.expected, slots.received)
    }

    /// Faults, one line each; empty on success.
    var faults: [String] {
        let slots = result.final.slots
        var faults = result.faults
        if lost > 0 { faults.append("\(lost) packets lost") }
        if slots.received > slots.expected { faults.append("more packets than were sent") }
        if slots.resumptions > 0 { faults.append("\(slots.resumptions) pictures begun anew") }
        if slots.switches > 0 { faults.append("\(slots.switches) changes of layer") }
        let frames = result.final.frames
        let failed = (frames?.frames.count ?? 0) - (frames?.decode() ?? 0)
        if failed > 0 { faults.append("\(failed) frames do not decode") }
        return faults
    }

    private var conditions: [String] {
        let sent = result.final.publishers
        let mean = sent.videoPackets > 0 ? sent.videoBytes / sent.videoPackets : 0
        return [
            row("viewers (5-tuples)", "\(options.viewers) (\(options.viewers + 1))"),
            row("measured", "\(options.seconds) s"),
            row("sfud", "\(workers) worker(s)"),
            row("commit", Conditions.commit() ?? "unknown"),
            row("SRTP", options.profile.srtp.name),
            row("video", options.isScreen ? Library.screen.name : Library.camera.name),
            row("video packets", "\(mean) bytes on average, \(sent.largestPacket) at most"),
            row("looked into", options.checks ? "every packet" : "one packet in 64"),
        ]
    }

    private var received: [String] {
        let sent = result.final.publishers
        let slots = result.final.slots
        return [
            row("sent: audio packets", sent.audioPackets),
            row("sent: video packets", sent.videoPackets),
            row("sent: video frames", sent.videoFrames),
            row("sent: keyframes", sent.keyframes),
            row("sent: thrown away first", sent.withheld),
            row("sent: again by RTX", sent.retransmissions),
            row("copies expected", slots.expected),
            row("copies received", slots.received),
            row("lost", lost),
            row("undecryptable", slots.undecryptable + result.final.undecryptableReports),
            row("discontinuities", slots.discontinuities),
            row("pictures begun anew", slots.resumptions),
            row("duplicates", slots.duplicates),
            row("out of order", slots.late),
            row("padding", slots.padding),
            row("retransmitted", result.final.retransmissions),
            row("of unknown streams", result.final.unsignalledPackets),
            row("dropped at own sockets", result.final.queueDrops),
            row("not taken by the kernel", result.final.refusedSends),
            row("decrypted and compared", slots.decrypted),
            row("frames decoded", UInt64(result.final.frames?.decode() ?? 0)),
            row("PLI or FIR", sent.keyframeRequests),
            row("packets NACKed", sent.nackedPackets),
            row("transport feedback", sent.transportFeedback),
            row("sender reports", result.final.senderReports),
        ]
    }

    private var late: [String] {
        guard let joins = result.lateJoins else { return [] }
        return [
            row("late: viewers", UInt64(joins.count)),
            row("late: connected within", String(format: "%.2f s", joins.seconds)),
            row("late: PLI or FIR", joins.keyframeRequests),
        ]
    }

    private func moved(_ gaps: [Double]) -> [String] {
        let shares = [0.5, 0.99].map { share in
            gaps.isEmpty ? 0 : gaps[min(gaps.count - 1, Int(Double(gaps.count) * share))]
        }
        let shown = (shares + [gaps.last ?? 0]).map { String(format: "%.1f", $0) }
        return [
            row("moved: viewers", UInt64(gaps.count)),
            row("moved: without sound p50 p99 max", shown.joined(separator: " ") + " ms"),
        ]
    }

    private var latencies: [String] {
        [
            row("latency p50 p99 p99.9 max", times(result.after.latency)),
            row("the same of audio", times(result.after.audioLatency)),
            row("until at own sockets", times(result.after.arrivals)),
            row("copies a second", UInt64(result.packetsPerSecond)),
            row("CPU of sfu-bench", share(result.clientShare)),
        ]
    }

    private var cost: [String] {
        guard options.pid != nil else { return [row("CPU of sfud", "not measured: needs --pid")] }
        return [
            row("CPU of sfud", share(result.cpuShare)),
            row("CPU a copy", String(format: "%.2f µs", result.cpuMicroseconds)),
        ]
    }

    private var server: [String] {
        let counters: [(String, KeyPath<PacketCounters, UInt64>)] = [
            ("rtpIn", \.rtpIn), ("rtpForwarded", \.rtpForwarded), ("rtpOut", \.rtpOut),
            ("rtxOut", \.rtxOut), ("paddingOut", \.paddingOut), ("rtcpIn", \.rtcpIn),
            ("rtcpOut", \.rtcpOut),
            ("datagramsIn", \.datagramsIn), ("datagramsOut", \.datagramsOut),
            ("kernelDrops", \.kernelDrops),
        ]
        var rows = counters.map { name, path in
            row("server.stats \(name)", after[keyPath: path] &- before[keyPath: path])
        }
        for (cause, count) in after.drops.sorted(by: { $0.key < $1.key }) {
            let dropped = count &- before.drops[cause, default: 0]
            if dropped > 0 { rows.append(row("server.stats drops \(cause)", dropped)) }
        }
        return rows
    }

    private func row(_ name: String, _ value: UInt64) -> String { row(name, "\(value)") }

    private func row(_ name: String, _ value: String) -> String { name.padded(26) + "  " + value }

    private func times(_ latency: LatencyHistogram) -> String {
        let shares = [0.5, 0.99, 0.999].map(latency.milliseconds)
        let all = shares + [Double(latency.longest) / 1e6]
        return all.map { String(format: "%.3f", $0) }.joined(separator: " ") + " ms"
    }

    private func share(_ share: Double) -> String {
        String(format: "%.1f %% of a core", 100 * share)
    }
}
