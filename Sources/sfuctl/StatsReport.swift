import Contract

extension Report {
    static func stats(_ stats: ServerStats.Result) -> String {
        var about = Table([("UPTIME", .left), (duration(stats.uptimeSeconds), .left)])
        about.add(["rooms", "\(stats.rooms)"])
        about.add(["participants", "\(stats.participants)"])
        about.add(["transports", "\(stats.transports)"])
        var parts = [about.text, workers(stats.workers), traffic(stats.counters)]
        if let forwarding = stats.forwarding { parts.append(times(forwarding)) }
        return (parts + [drops(stats.counters)]).joined(separator: "\n\n")
    }

    private static func times(_ forwarding: ForwardingInfo) -> String {
        var table = Table([
            ("FORWARDED AFTER", .left), ("p50", .right), ("p99", .right), ("p99.9", .right),
        ])
        for (name, time) in [("first copy", forwarding.first), ("last copy", forwarding.last)] {
            table.add([name] + [time.p50, time.p99, time.p999].map(milliseconds))
        }
        return table.text
    }

    /// Formats with two decimals, without Foundation's formatting.
    private static func milliseconds(_ time: Double) -> String {
        guard time.isFinite, time >= 0, time < 1e9 else { return "-" }
        let hundredths = Int((time * 100).rounded())
        let rest = hundredths % 100
        return "\(hundredths / 100).\(rest < 10 ? "0" : "")\(rest) ms"
    }

    private static func workers(_ workers: [WorkerInfo]) -> String {
        var table = Table([
            ("WORKER", .right), ("LOAD", .right), ("TRANSPORTS", .right), ("PACKETS IN", .right),
            ("PACKETS OUT", .right), ("DROPPED", .right),
        ])
        for worker in workers {
            table.add([
                "\(worker.worker)", percent(worker.load), "\(worker.transports)",
                "\(worker.counters.datagramsIn)", "\(worker.counters.datagramsOut)",
                "\(dropped(worker.counters))",
            ])
        }
        return table.text
    }

    private static func traffic(_ counters: PacketCounters) -> String {
        var table = Table([("", .left), ("IN", .right), ("OUT", .right)])
        table.add(["datagrams", "\(counters.datagramsIn)", "\(counters.datagramsOut)"])
        table.add(["bytes", "\(counters.bytesIn)", "\(counters.bytesOut)"])
        table.add(["RTP", "\(counters.rtpIn)", "\(counters.rtpOut)"])
        table.add(["RTP forwarded", "\(counters.rtpForwarded)", ""])
        table.add(["between workers", "\(counters.relayedIn)", "\(counters.relayedOut)"])
        table.add(["retransmissions", "", "\(counters.rtxOut)"])
        table.add(["padding of probes", "", "\(counters.paddingOut)"])
        table.add(["RTCP", "\(counters.rtcpIn)", "\(counters.rtcpOut)"])
        table.add(["STUN", "\(counters.stunIn)", ""])
        table.add(["DTLS", "\(counters.dtlsIn)", ""])
        return table.text
    }

    private static func drops(_ counters: PacketCounters) -> String {
        var table = Table([("DROPPED", .left), ("PACKETS", .right)])
        for (cause, count) in counters.drops.sorted(by: { ($1.value, $0.key) < ($0.value, $1.key) })
        where count > 0 {
            table.add([cause, "\(count)"])
        }
        table.add(["by the kernel", "\(counters.kernelDrops)"])
        return table.text
    }

    private static func dropped(_ counters: PacketCounters) -> UInt64 {
        counters.drops.values.reduce(0, &+)
    }

    private static func percent(_ share: Double) -> String {
        guard share.isFinite, share >= 0, share < 1_000 else { return "-" }
        return "\(Int((share * 100).rounded())) %"
    }

    static func duration(_ seconds: Double) -> String {
        guard seconds.isFinite, seconds >= 0, seconds < 1e12 else { return "-" }
        let whole = Int(seconds)
        let (days, hours) = (whole / 86_400, whole / 3_600 % 24)
        let (minutes, rest) = (whole / 60 % 60, whole % 60)
        if days > 0 { return "\(days) d \(hours) h" }
        if hours > 0 { return "\(hours) h \(minutes) min" }
        if minutes > 0 { return "\(minutes) min \(rest) s" }
        return "\(rest) s"
    }
}
