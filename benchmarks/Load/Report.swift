import Foundation
import RTP
import SFUClient

/// What is printed at the end.
struct Report {
    var options: Options
    var tally: Tally
    /// sfud's counters with nothing under way, before the media and after them.
    var before: PacketCounters
    var after: PacketCounters
    var workers: Int

    var text: String {
        (conditions + [""] + received + [""] + cost + [""] + server).joined(separator: "\n")
    }

    private var conditions: [String] {
        let sent = tally.publisher
        let mean = sent.videoPackets > 0 ? sent.videoBytes / sent.videoPackets : 0
        return [
            row("viewers (5-tuples)", "\(options.viewers) (\(options.viewers + 1))"),
            row("measured", "\(options.seconds) s"),
            row("sfud", "\(workers) worker(s)"),
            row("commit", Self.commit() ?? "unknown"),
            row("SRTP", tally.profile),
            row("video", "VP8, \(options.videoBitrate) bit/s, \(options.frameRate) frames/s"),
            row("video packets", "\(mean) bytes on average, \(sent.largestPacket) at most"),
            row("audio packets", "Opus, 50/s, \(Wire.audioPayload) bytes of payload"),
            row("looked into", options.checks ? "every packet" : "one packet in 64"),
        ]
    }

    private var received: [String] {
        let sent = tally.publisher
        let slots = tally.slots
        return [
            row("sent: audio packets", sent.audioPackets),
            row("sent: video packets", sent.videoPackets),
            row("sent: video frames", sent.videoFrames),
            row("sent: keyframes", sent.keyframes),
            row("sent: thrown away first", sent.thrownAway),
            row("sent: again by RTX", sent.retransmissions),
            row("copies expected", tally.expected(viewers: options.viewers)),
            row("copies received", slots.received),
            row("lost", tally.lost(viewers: options.viewers)),
            row("undecryptable", slots.undecryptable + tally.undecryptableReports),
            row("discontinuities", slots.discontinuities),
            row("duplicates", slots.duplicates),
            row("out of order", slots.late),
            row("padding", slots.padding),
            row("retransmitted", tally.retransmissions),
            row("of unknown streams", tally.strangers),
            row("dropped at own sockets", tally.queueDrops),
            row("not taken by the kernel", tally.refusedSends),
            row("decrypted and compared", slots.decrypted),
            row("PLI or FIR", sent.keyframeRequests),
            row("packets NACKed", sent.nackedPackets),
            row("transport feedback", sent.transportFeedback),
            row("sender reports", tally.senderReports),
        ]
    }

    private var cost: [String] {
        let latency = [0.5, 0.99, 0.999].map { share in
            tally.latency.microseconds(share).map { milliseconds(Double($0)) } ?? "?"
        }
        let longest = milliseconds(Double(tally.latency.longest) / 1_000)
        var rows = [
            row("latency p50 p99 p99.9 max", (latency + [longest]).joined(separator: " ") + " ms")
        ]
        guard let before = tally.before, let after = tally.after else { return rows }
        let copies = after.copies - before.copies
        let seconds = Double(after.at.nanoseconds(since: before.at)) / 1e9
        rows.append(row("copies a second", UInt64(Double(copies) / seconds)))
        let own = Double(after.ownNanoseconds - before.ownNanoseconds) / 1e9
        rows.append(row("CPU of sfu-load", share(own, of: seconds)))
        guard let start = before.daemonNanoseconds, let end = after.daemonNanoseconds else {
            return rows + [row("CPU of sfud", "not measured: needs --pid")]
        }
        let used = Double(end - start) / 1e9
        rows.append(row("CPU of sfud", share(used, of: seconds)))
        let each = copies > 0 ? used * 1e6 / Double(copies) : 0
        rows.append(row("CPU a copy", String(format: "%.2f µs", each)))
        return rows
    }

    private var server: [String] {
        let counters: [(String, KeyPath<PacketCounters, UInt64>)] = [
            ("rtpIn", \.rtpIn), ("rtpForwarded", \.rtpForwarded), ("rtpOut", \.rtpOut),
            ("rtxOut", \.rtxOut), ("rtcpIn", \.rtcpIn), ("rtcpOut", \.rtcpOut),
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

    private func row(_ name: String, _ value: String) -> String {
        name + String(repeating: " ", count: max(2, 28 - name.count)) + value
    }

    private func milliseconds(_ microseconds: Double) -> String {
        String(format: "%.3f", microseconds / 1_000)
    }

    private func share(_ used: Double, of seconds: Double) -> String {
        String(format: "%.2f s of %.2f s, %.1f %%", used, seconds, 100 * used / seconds)
    }

    /// Of the repository that this runs in, if it does.
    private static func commit() -> String? {
        let git = Process()
        let output = Pipe()
        git.executableURL = URL(filePath: "/usr/bin/env")
        git.arguments = ["git", "describe", "--always", "--dirty"]
        git.standardOutput = output
        git.standardError = FileHandle.nullDevice
        do { try git.run() } catch { return nil }
        let bytes = output.fileHandleForReading.readDataToEndOfFile()
        git.waitUntilExit()
        let text = String(decoding: bytes, as: UTF8.self).split(separator: "\n").first
        return text.map(String.init)
    }
}
