import RTP

/// All that was counted in one run.
struct Tally: Sendable {
    enum End: Equatable, Sendable {
        case done, interrupted
        case failed(String)
    }

    /// The state of things at one end of the measured interval.
    struct Mark: Sendable {
        var at: Instant
        /// Received by all viewers.
        var copies: UInt64
        /// sfud's user and system time, where its process is known.
        var daemonNanoseconds: Int64?
        /// The load client's own.
        var ownNanoseconds: Int64
    }

    var end = End.done
    var profile = "?"
    var publisher = PublisherTally()
    /// Of all viewers' slots together.
    var audio = SlotTally()
    var video = SlotTally()
    var retransmissions: UInt64 = 0
    var strangers: UInt64 = 0
    var senderReports: UInt64 = 0
    var undecryptableReports: UInt64 = 0
    /// Datagrams that the kernel did not take from the load client.
    var refusedSends: UInt64 = 0
    /// Datagrams that the kernel dropped at the load client's own sockets.
    var queueDrops: UInt64 = 0
    var latency = LatencyHistogram()
    var before: Mark?
    var after: Mark?

    var slots: SlotTally {
        var sum = audio
        sum += video
        return sum
    }

    /// Copies that the viewers should have got, all of them having been there from the start.
    func expected(viewers: Int) -> UInt64 {
        (publisher.audioPackets + publisher.videoPackets) * UInt64(viewers)
    }

    func lost(viewers: Int) -> UInt64 {
        let expected = expected(viewers: viewers)
        return expected - min(expected, slots.received)
    }

    /// What is wrong, one line each; nothing where all is well.
    func faults(viewers: Int) -> [String] {
        let slots = slots
        let expected = expected(viewers: viewers)
        let counts: [(String, UInt64)] = [
            ("packets lost", lost(viewers: viewers)),
            ("packets undecryptable", slots.undecryptable + undecryptableReports),
            ("discontinuities", slots.discontinuities),
            ("duplicates", slots.duplicates),
            ("packets of unknown streams", strangers),
            ("packets more than were sent", slots.received - min(slots.received, expected)),
        ]
        return counts.filter { $0.1 > 0 }.map { "\($0.1) \($0.0)" }
    }
}
