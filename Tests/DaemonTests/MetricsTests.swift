import CKernel
import RTP
import Recording
import Testing

@testable import ControlPlane
@testable import Daemon
@testable import WorkerInterface

struct MetricsTests {
    static func metrics(_ workers: [WorkerStatistics]) -> Metrics {
        let process = ProcessStatistics(
            cpuNanoseconds: 1_500_000_000,
            residentBytes: 4_096,
            heapBytes: 2_048,
            startTime: 7,
            openDescriptors: 30,
            descriptorLimit: 1_024
        )
        return Metrics(
            version: "1.2.3",
            workers: workers,
            rooms: 3,
            participants: 5,
            connections: 2,
            process: process
        )
    }

    /// All that a daemon exposes.
    static var full: Metrics {
        var metrics = metrics([WorkerStatistics()])
        metrics.nodes = MetricsNodes()
        metrics.outputs.recordings = [("starting", 0), ("recording", 2)]
        metrics.outputs.streamings = [("streaming", 1)]
        metrics.outputs.disk.freeBytes = 1 << 30
        return metrics
    }

    @Test
    func `counters are summed over workers and drops are told by cause`() {
        var first = WorkerStatistics()
        first.rtpIn = 10
        first.drops[0] = 4
        first.load = 0.25
        var second = WorkerStatistics()
        second.rtpIn = 32
        second.drops[0] = 1
        let lines = Self.metrics([first, second]).text.split(separator: "\n")
        #expect(lines.contains("sfud_rtp_received_total 42"))
        let cause = DropReason.allCases[0].rawValue
        #expect(lines.contains("sfud_drops_total{cause=\"\(cause)\"} 5"))
        #expect(lines.contains("sfud_worker_load{worker=\"0\"} 0.25"))
        #expect(lines.contains("sfud_rooms 3"))
        #expect(lines.contains("process_cpu_seconds_total 1.5"))
        #expect(lines.contains("sfud_heap_bytes 2048"))
        #expect(lines.contains("sfud_build_info{version=\"1.2.3\"} 1"))
    }

    @Test
    func `freezes are told by hop`() {
        var worker = WorkerStatistics()
        let began = Instant(nanoseconds: 0)
        worker.freezes.add(Freeze(began: began, nanoseconds: 1_500_000_000, reason: .stalled))
        let lines = Self.metrics([worker, worker]).text.split(separator: "\n")
        #expect(lines.contains("sfud_freezes_total{hop=\"sfu\"} 2"))
        #expect(lines.contains("sfud_freeze_seconds_total{hop=\"sfu\"} 3"))
        #expect(lines.contains("sfud_freezes_total{hop=\"viewer-decoder\"} 0"))
    }

    @Test
    func `paths are told for publishers and viewers, summed over the workers`() {
        var first = WorkerStatistics()
        first.paths.publishers.add(fractionLost: 64, jitter: 900, clockRate: 90_000)
        first.paths.viewers.roundTrip.add(0.06)
        var second = WorkerStatistics()
        second.paths.publishers.add(fractionLost: 0, jitter: 0, clockRate: 90_000)
        let lines = Self.metrics([first, second]).text.split(separator: "\n")
        let loss = "sfud_packet_loss_ratio"
        #expect(lines.contains("\(loss)_bucket{peer=\"publisher\",le=\"0.0\"} 1"))
        #expect(lines.contains("\(loss)_bucket{peer=\"publisher\",le=\"0.2\"} 1"))
        #expect(lines.contains("\(loss)_bucket{peer=\"publisher\",le=\"0.3\"} 2"))
        #expect(lines.contains("\(loss)_bucket{peer=\"publisher\",le=\"+Inf\"} 2"))
        #expect(lines.contains("\(loss)_sum{peer=\"publisher\"} 0.25"))
        #expect(lines.contains("\(loss)_count{peer=\"viewer\"} 0"))
        #expect(lines.contains("sfud_jitter_seconds_sum{peer=\"publisher\"} 0.01"))
        #expect(lines.contains("sfud_round_trip_seconds_count{peer=\"viewer\"} 1"))
        #expect(lines.contains("sfud_round_trip_seconds_count{peer=\"publisher\"} 0"))
    }

    @Test
    func `connections are told by outcome, summed over the workers`() {
        var worker = WorkerStatistics()
        worker.connections.seconds.add(0.3)
        worker.connections.note(.iceTimeout)
        worker.connections.timedOut = 2
        worker.connections.closedByPeer = 3
        let lines = Self.metrics([worker, worker]).text.split(separator: "\n")
        #expect(lines.contains("sfud_connect_seconds_bucket{le=\"0.2\"} 0"))
        #expect(lines.contains("sfud_connect_seconds_bucket{le=\"0.3\"} 2"))
        #expect(lines.contains("sfud_connect_seconds_sum 0.6"))
        #expect(lines.contains("sfud_connect_seconds_count 2"))
        let failures = "sfud_connect_failures_total"
        #expect(lines.contains("\(failures){cause=\"ice-timeout\"} 2"))
        #expect(lines.contains("\(failures){cause=\"fingerprint-mismatch\"} 0"))
        #expect(lines.contains("sfud_transports_ended_total{cause=\"timeout\"} 4"))
        #expect(lines.contains("sfud_transports_ended_total{cause=\"closed\"} 6"))
    }

    @Test
    func `recordings and streams are told by state, and faults from the start`() {
        let lines = Self.full.text.split(separator: "\n")
        #expect(lines.contains("sfud_recordings{state=\"recording\"} 2"))
        #expect(lines.contains("sfud_live_streams{state=\"streaming\"} 1"))
        #expect(lines.contains("sfud_recording_disk_free_bytes 1073741824"))
        for reason in ["disk-full", "disk-error", "not-permitted", "too-slow"] {
            #expect(lines.contains("sfud_recordings_ended_total{reason=\"\(reason)\"} 0"))
        }
        #expect(lines.contains("sfud_join_refusals_total{cause=\"overload\"} 0"))
        #expect(lines.contains("process_open_fds 30") && lines.contains("process_max_fds 1024"))
    }

    @Test
    func `a reason from elsewhere cannot break a line`() {
        var page = MetricsPage()
        var counts = ReasonCounts(known: [])
        counts.note("a\"b\\c\nd")
        page.add("x_total", "Help.", counts)
        #expect(page.text.split(separator: "\n").last == #"x_total{reason="a\"b\\c\nd"} 1"#)
    }

    @Test
    func `every sample has its type and help before it`() {
        var declared: Set<Substring> = []
        for line in Self.metrics([WorkerStatistics()]).text.split(separator: "\n") {
            let words = line.split(separator: " ")
            if line.hasPrefix("# TYPE ") {
                #expect(declared.insert(words[2]).inserted)
                #expect(["counter", "gauge", "histogram"].contains(words[3]))
            } else if !line.hasPrefix("# HELP ") {
                let name = words[0].prefix { $0 != "{" }
                let parts = ["_bucket", "_sum", "_count"].map { name.replacing($0, with: "") }
                #expect(([name] + parts.map { $0[...] }).contains { declared.contains($0) })
                #expect(words.last.flatMap { Double($0) } != nil)
            }
        }
        #expect(declared.count > 20)
    }

    @Test
    func `what did not leave is told by cause and content, and how long the rest took`() {
        var first = WorkerStatistics()
        first.sendDrops[.full, .video] = 3
        first.sendDrops[.stale, .audio] = 1
        first.sendQueueLength = 7
        first.firstCopies.note(nanoseconds: 12_000)
        var second = WorkerStatistics()
        second.sendDrops[.full, .video] = 4
        second.firstCopies.note(nanoseconds: 2_000_000_000)
        let lines = Self.metrics([first, second]).text.split(separator: "\n")
        let drops = "sfud_send_queue_drops_total"
        #expect(lines.contains("\(drops){cause=\"full\",content=\"video\"} 7"))
        #expect(lines.contains("\(drops){cause=\"stale\",content=\"audio\"} 1"))
        #expect(lines.contains("\(drops){cause=\"withdrawn\",content=\"other\"} 0"))
        #expect(lines.contains("sfud_send_queue_datagrams 7"))
        let times = "sfud_forwarding_seconds"
        #expect(lines.contains("\(times)_bucket{copy=\"first\",le=\"1e-05\"} 0"))
        #expect(lines.contains("\(times)_bucket{copy=\"first\",le=\"1.6e-05\"} 1"))
        #expect(lines.contains("\(times)_bucket{copy=\"first\",le=\"1.0\"} 1"))
        #expect(lines.contains("\(times)_bucket{copy=\"first\",le=\"+Inf\"} 2"))
        #expect(lines.contains("\(times)_sum{copy=\"first\"} 2.000012"))
        #expect(lines.contains("\(times)_count{copy=\"last\"} 0"))
    }

    @Test
    func `a sample is whole, or as whole as half a second allows`() {
        var sampler = StatisticsSampler(workers: 2)
        var now = Instant(nanoseconds: 0)
        guard case .report(let token) = sampler.begin(at: now) else {
            Issue.record("no sample begins")
            return
        }
        #expect(StatisticsSampler.owns(token: token) && !StatisticsSampler.owns(token: 7))
        #expect(sampler.begin(at: now) == nil)
        var statistics = WorkerStatistics()
        statistics.rtpIn = 1
        sampler.receive(statistics, token: token, from: 0)
        sampler.receive(statistics, token: token &- 1, from: 1)
        #expect(sampler.take(at: now) == nil)
        now = now.advanced(milliseconds: 500)
        #expect(sampler.deadline == now)
        #expect(sampler.take(at: now)?.map(\.rtpIn) == [1, 0])
        #expect(sampler.deadline == nil && sampler.take(at: now) == nil)
    }
}
