import ControlPlane
import Recording

/// Recordings, live streams and plain RTP as they are now.
struct MetricsOutputs {
    var recordings: [(state: String, count: Int)] = []
    var streamings: [(state: String, count: Int)] = []
    var rtpForwards = 0
    var disk = DiskWriter.Use()

    init() {}

    init(_ control: ControlPlane, _ disk: DiskWriter.Use) {
        recordings = control.recordingStates
        streamings = control.streamingStates
        rtpForwards = control.rtpForwardCount
        self.disk = disk
    }

    /// Adds their metrics; `counters` are those of what has happened to them.
    func add(_ counters: ControlCounters, to page: inout MetricsPage) {
        page.add("sfud_recordings", .gauge, "Recordings, by state.") { Self.rows(recordings) }
        page.add(
            "sfud_recordings_started_total",
            .counter,
            "Recordings that have begun.",
            Double(counters.recordingsStarted)
        )
        page.add(
            "sfud_recordings_ended_total",
            "Recordings that have ended.",
            counters.recordingsEnded
        )
        page.add(
            "sfud_recordings_failed_total",
            "Recordings that could not begin.",
            counters.recordingsFailed
        )
        page.add(
            "sfud_recording_written_bytes_total",
            .counter,
            "Media written to disk.",
            Double(disk.writtenBytes)
        )
        if let free = disk.freeBytes {
            page.add(
                "sfud_recording_disk_free_bytes",
                .gauge,
                "Free bytes where recordings are written.",
                Double(free)
            )
        }
        addStreams(counters, to: &page)
        page.add(
            "sfud_rtp_forwards",
            .gauge,
            "Streams forwarded as plain RTP.",
            Double(rtpForwards)
        )
    }

    private func addStreams(_ counters: ControlCounters, to page: inout MetricsPage) {
        page.add("sfud_live_streams", .gauge, "Live streams, by state.") { Self.rows(streamings) }
        page.add(
            "sfud_live_streams_started_total",
            .counter,
            "Live streams that a server has accepted.",
            Double(counters.streamingsStarted)
        )
        page.add(
            "sfud_live_streams_ended_total",
            "Live streams that have ended.",
            counters.streamingsEnded
        )
        page.add(
            "sfud_live_streams_failed_total",
            "Live streams that could not begin.",
            counters.streamingsFailed
        )
        page.add(
            "sfud_live_stream_interruptions_total",
            .counter,
            "Lost connections to their servers.",
            Double(counters.streamingInterruptions)
        )
    }

    private static func rows(_ states: [(state: String, count: Int)]) -> [(String, Double)] {
        states.map { ("state=\"\($0.state)\"", Double($0.count)) }
    }
}
