import RTP

/// All counts at one moment.
struct Snapshot: Sendable {
    var at: Instant
    var audio = SlotTally()
    var video = SlotTally()
    var publishers = PublisherTally()
    /// Latency since the previous snapshot.
    var audioLatency = LatencyHistogram()
    var videoLatency = LatencyHistogram()
    /// Latency without the wait in the bench's own sockets.
    var arrivals = LatencyHistogram()
    var connected = 0
    /// Longest time without a packet on some slot since the previous snapshot, in nanoseconds.
    var longestPause: Int64 = 0
    var retransmissions: UInt64 = 0
    var unsignalledPackets: UInt64 = 0
    var senderReports: UInt64 = 0
    var undecryptableReports: UInt64 = 0
    /// Datagrams that the kernel did not accept from the bench.
    var refusedSends: UInt64 = 0
    /// Datagrams that the kernel dropped at the bench's own sockets.
    var queueDrops: UInt64 = 0
    /// User and system time of the bench's media thread.
    var ownNanoseconds: Int64 = 0
    /// Frames of the viewer whose video is decoded.
    var frames: VP8FrameAssembler?

    var slots: SlotTally {
        var sum = audio
        sum += video
        return sum
    }

    var latency: LatencyHistogram {
        var sum = audioLatency
        sum += videoLatency
        return sum
    }
}
