import ControlPlane
import WorkerInterface

/// Contents of `/metrics`, in Prometheus' text format (version 0.0.4).
struct Metrics {
    var version: String
    var workers: [WorkerStatistics]
    var rooms: Int
    var participants: Int
    var connections: Int
    var joinsRefused: UInt64 = 0
    /// Whether `server.drain` is in force.
    var isDraining = false
    /// Resident bytes from which joins are refused; 0: no limit.
    var memoryLimit = 0
    var control = ControlCounters()
    var outputs = MetricsOutputs()
    /// Absent without a cluster.
    var nodes: MetricsNodes?
    var process: ProcessStatistics

    /// The page's text.
    var text: String {
        var page = MetricsPage()
        page.add("sfud_build_info", .gauge, "The version that runs.") {
            [("version=\"\(version)\"", 1)]
        }
        page.add("sfud_rooms", .gauge, "Rooms that exist.", Double(rooms))
        page.add("sfud_participants", .gauge, "Participants in rooms.", Double(participants))
        page.add("sfud_draining", .gauge, "Whether no new rooms are taken.", isDraining ? 1 : 0)
        page.add("sfud_ipc_connections", .gauge, "IPC connections.", Double(connections))
        for (name, help, path) in Self.sums {
            page.add(name, .counter, help, Double(workers.reduce(0) { $0 + $1[keyPath: path] }))
        }
        page.add("sfud_drops_total", .counter, "Packets that went no further, by cause.") {
            DropReason.allCases.enumerated().map { index, reason in
                let count = workers.reduce(0) { $0 + $1.drops[index] }
                return ("cause=\"\(reason.rawValue)\"", Double(count))
            }
        }
        page.add("sfud_relay_drops_total", .counter, "Of those, not sent on, by cause.") {
            DropReason.allCases.enumerated().map { index, reason in
                let count = workers.reduce(0) { $0 + $1.relayDrops[index] }
                return ("cause=\"\(reason.rawValue)\"", Double(count))
            }
        }
        page.add("sfud_keyframe_wishes_total", .counter, "Viewers' wishes for keyframes.") {
            Self.outcomes.map { name, path in
                let count = workers.reduce(0) { $0 + $1.keyframeRequestCounts[keyPath: path] }
                return ("outcome=\"\(name)\"", Double(count))
            }
        }
        addFreezes(to: &page)
        addQuality(to: &page)
        addJoins(to: &page)
        outputs.add(control, to: &page)
        nodes?.add(to: &page)
        addRepairs(to: &page)
        addSending(to: &page)
        addStreams(to: &page)
        page.add("sfud_worker_load", .gauge, "Share of one core that a worker takes.") {
            perWorker { $0.load }
        }
        page.add("sfud_worker_cpu_seconds_total", .counter, "CPU time of a worker.") {
            perWorker { Double($0.cpuNanoseconds) / 1e9 }
        }
        page.add("sfud_worker_transports", .gauge, "Transports of a worker.") {
            perWorker { Double($0.transports.count) }
        }
        addPressure(to: &page)
        process.add(memoryLimit: memoryLimit, to: &page)
        return page.text
    }

    /// Adds the freezes of viewers' video that have ended.
    private func addFreezes(to page: inout MetricsPage) {
        let totals = workers.reduce(into: FreezeTotals()) { $0 += $1.freezes }
        page.add("sfud_freezes_total", .counter, "Freezes of viewers' video, by hop.") {
            FreezeHop.allCases.map { ("hop=\"\($0.name)\"", Double(totals[$0].count)) }
        }
        page.add("sfud_freeze_seconds_total", .counter, "Length of those.") {
            FreezeHop.allCases.map { ("hop=\"\($0.name)\"", totals[$0].seconds) }
        }
    }

    /// Adds the workers' load, and the joins refused because of it.
    private func addPressure(to page: inout MetricsPage) {
        page.add("sfud_worker_busy", .gauge, "Share of time at work, or waiting for a core.") {
            perWorker { Double($0.pressure.busyPercent) / 100 }
        }
        page.add("sfud_worker_lag_seconds", .gauge, "How long what comes waits at least.") {
            perWorker { Double($0.pressure.lagMilliseconds) / 1_000 }
        }
        page.add("sfud_worker_overload_step", .gauge, "0 none, 1 joins, 2 layers, 3 video.") {
            perWorker { Double($0.pressure.step.rawValue) }
        }
        page.add("sfud_worker_video_kept", .gauge, "Share kept of what all videos would take.") {
            perWorker { Double($0.pressure.keptPermille) / 1_000 }
        }
        page.add(
            "sfud_joins_refused_total",
            .counter,
            "Joins refused because the workers were too busy, or memory short.",
            Double(joinsRefused)
        )
    }

    /// Adds the retransmissions that viewers requested and were not sent.
    private func addRepairs(to page: inout MetricsPage) {
        page.add("sfud_rtx_left_out_total", .counter, "Retransmissions not sent, by cause.") {
            [
                ("cause=\"in-flight\"", Double(workers.reduce(0) { $0 + $1.rtxInFlight })),
                ("cause=\"budget\"", Double(workers.reduce(0) { $0 + $1.rtxOverBudget })),
            ]
        }
    }

    /// Adds the send queues, the datagrams dropped in them, and the forwarding delays.
    private func addSending(to page: inout MetricsPage) {
        let waiting = workers.reduce(0) { $0 + $1.sendQueueLength }
        page.add(
            "sfud_send_queue_datagrams",
            .gauge,
            "Datagrams that wait for a socket.",
            Double(waiting)
        )
        let drops = workers.reduce(into: SendDrops()) { $0 += $1.sendDrops }
        page.add("sfud_send_queue_drops_total", .counter, "Datagrams that did not leave.") {
            SendDrops.Cause.allCases.flatMap { cause in
                DatagramContent.allCases.map { content in
                    let labels = "cause=\"\(cause.rawValue)\",content=\"\(content.name)\""
                    return (labels, Double(drops[cause, content]))
                }
            }
        }
        let first = workers.reduce(into: ForwardingTimes()) { $0 += $1.firstCopies }
        let last = workers.reduce(into: ForwardingTimes()) { $0 += $1.lastCopies }
        page.addHistogram(
            "sfud_forwarding_seconds",
            "From a media packet's arrival to when a copy of its batch had been sent.",
            [("copy=\"first\"", first), ("copy=\"last\"", last)]
        )
    }

    private func addStreams(to page: inout MetricsPage) {
        let streams = workers.reduce(into: TCPConnectionStatistics()) { $0 += $1.streams }
        page.add("sfud_tcp_connections", .gauge, "TCP connections, validated or not yet.") {
            let checked = Double(streams.open - streams.unchecked)
            return [
                ("state=\"validated\"", checked), ("state=\"new\"", Double(streams.unchecked)),
            ]
        }
        page.add(
            "sfud_tcp_accepted_total",
            .counter,
            "TCP connections taken.",
            Double(streams.accepted)
        )
        page.add("sfud_tcp_ended_total", .counter, "TCP connections ended or not taken.") {
            TCPConnectionStatistics.Cause.allCases.map {
                ("cause=\"\($0.rawValue)\"", Double(streams[$0]))
            }
        }
    }

    private func perWorker(_ value: (WorkerStatistics) -> Double) -> [(String, Double)] {
        workers.enumerated().map { ("worker=\"\($0.offset)\"", value($0.element)) }
    }

    private static let outcomes: [(String, any KeyPath<KeyframeRequestCounts, UInt64> & Sendable)] =
        [
            ("asked", \.asked), ("shared", \.shared), ("held", \.held), ("bounded", \.bounded),
        ]

    private static let sums: [(String, String, any KeyPath<WorkerStatistics, UInt64> & Sendable)] =
        [
            ("sfud_datagrams_received_total", "Datagrams taken from sockets.", \.datagramsIn),
            ("sfud_received_bytes_total", "Bytes of those.", \.bytesIn),
            ("sfud_stun_received_total", "STUN datagrams in.", \.stunIn),
            ("sfud_dtls_received_total", "DTLS datagrams in.", \.dtlsIn),
            ("sfud_rtcp_received_total", "RTCP datagrams in.", \.rtcpIn),
            (
                "sfud_feedback_left_out_total", "Feedback beyond a transport's RTCP budget.",
                \.feedbackOverBudget
            ),
            ("sfud_consents_ended_total", "Paths whose peer answers no more.", \.consentsEnded),
            ("sfud_rtp_received_total", "RTP packets in.", \.rtpIn),
            ("sfud_rtp_forwarded_total", "Of those, sent on to somebody.", \.rtpForwarded),
            ("sfud_relayed_out_total", "Packets handed to other workers.", \.relayedOut),
            ("sfud_relayed_in_total", "Packets that other workers handed over.", \.relayedIn),
            ("sfud_relayed_forwarded_total", "Of those, sent on.", \.relayedForwarded),
            ("sfud_datagrams_sent_total", "Datagrams given to sockets.", \.datagramsOut),
            ("sfud_sent_bytes_total", "Bytes of those.", \.bytesOut),
            ("sfud_rtp_sent_total", "Forwarded copies, without retransmissions.", \.rtpOut),
            ("sfud_rtx_sent_total", "Retransmissions out.", \.rtxOut),
            ("sfud_padding_sent_total", "Packets of padding that probed paths.", \.paddingOut),
            ("sfud_rtp_fillers_total", "Empty packets in place of some left out.", \.fillersOut),
            ("sfud_rtcp_sent_total", "RTCP datagrams out.", \.rtcpOut),
            ("sfud_kernel_drops_total", "Datagrams lost in full socket queues.", \.kernelDrops),
            ("sfud_send_errors_total", "Datagrams the kernel refused to send.", \.sendErrors),
        ]
}
