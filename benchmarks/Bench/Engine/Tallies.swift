/// Counters of sent media and received feedback.
struct PublisherTally: Sendable {
    var audioPackets: UInt64 = 0
    var videoPackets: UInt64 = 0
    var videoFrames: UInt64 = 0
    var keyframes: UInt64 = 0
    /// Bytes of video SRTP packets without retransmissions.
    var videoBytes: UInt64 = 0
    var largestPacket = 0
    /// Video packets that were withheld on purpose.
    var withheld: UInt64 = 0
    /// Frames and audio packets skipped because the bench was late.
    var skipped: UInt64 = 0
    var retransmissions: UInt64 = 0
    /// Keyframe requests, PLI or FIR.
    var keyframeRequests: UInt64 = 0
    /// Packets named in NACKs.
    var nackedPackets: UInt64 = 0
    var transportFeedback: UInt64 = 0
    var receiverReports: UInt64 = 0
}

extension PublisherTally {
    static func += (sum: inout Self, other: Self) {
        sum.audioPackets += other.audioPackets
        sum.videoPackets += other.videoPackets
        sum.videoFrames += other.videoFrames
        sum.keyframes += other.keyframes
        sum.videoBytes += other.videoBytes
        sum.largestPacket = max(sum.largestPacket, other.largestPacket)
        sum.withheld += other.withheld
        sum.skipped += other.skipped
        sum.retransmissions += other.retransmissions
        sum.keyframeRequests += other.keyframeRequests
        sum.nackedPackets += other.nackedPackets
        sum.transportFeedback += other.transportFeedback
        sum.receiverReports += other.receiverReports
    }
}

/// Counters of media received on slots, and of its faults.
struct SlotTally: Sendable {
    /// Packets, each counted once, and their datagram bytes.
    var received: UInt64 = 0
    var bytes: UInt64 = 0
    /// Packets that the publishers sent on the carried tracks.
    var expected: UInt64 = 0
    /// Skipped numbers that have not been received.
    var gaps: UInt64 = 0
    /// Packets sent after the last received one.
    var tail: UInt64 = 0
    var duplicates: UInt64 = 0
    /// Packets that arrived after a later one.
    var late: UInt64 = 0
    var undecryptable: UInt64 = 0
    var decrypted: UInt64 = 0
    /// Packets whose numbers or contents do not continue the stream.
    var discontinuities: UInt64 = 0
    /// Resumptions of a picture with a keyframe; `skipped` counts the packets skipped before them.
    var resumptions: UInt64 = 0
    var skipped: UInt64 = 0
    /// Switches to another simulcast layer of the publisher.
    var switches: UInt64 = 0
    /// Padding packets without a payload.
    var padding: UInt64 = 0
    /// Slots that never received anything.
    var silent: UInt64 = 0
    /// Most packets that one slot received within a millisecond.
    var burst: UInt64 = 0

    /// Packets that were not received, including those still in flight.
    var missing: UInt64 { gaps + tail + skipped }

    static func += (sum: inout Self, other: Self) {
        sum.received += other.received
        sum.bytes += other.bytes
        sum.expected += other.expected
        sum.gaps += other.gaps
        sum.tail += other.tail
        sum.duplicates += other.duplicates
        sum.late += other.late
        sum.undecryptable += other.undecryptable
        sum.decrypted += other.decrypted
        sum.discontinuities += other.discontinuities
        sum.resumptions += other.resumptions
        sum.skipped += other.skipped
        sum.switches += other.switches
        sum.padding += other.padding
        sum.silent += other.silent
        sum.burst = max(sum.burst, other.burst)
    }

    /// Returns the counts since `earlier`; gaps may have been filled meanwhile.
    func since(_ earlier: Self) -> Self {
        var rest = self
        rest.received -= min(rest.received, earlier.received)
        rest.bytes -= min(rest.bytes, earlier.bytes)
        rest.expected -= min(rest.expected, earlier.expected)
        rest.gaps -= min(rest.gaps, earlier.gaps)
        rest.tail -= min(rest.tail, earlier.tail)
        rest.duplicates -= min(rest.duplicates, earlier.duplicates)
        rest.late -= min(rest.late, earlier.late)
        rest.undecryptable -= min(rest.undecryptable, earlier.undecryptable)
        rest.decrypted -= min(rest.decrypted, earlier.decrypted)
        rest.discontinuities -= min(rest.discontinuities, earlier.discontinuities)
        rest.resumptions -= min(rest.resumptions, earlier.resumptions)
        rest.skipped -= min(rest.skipped, earlier.skipped)
        rest.switches -= min(rest.switches, earlier.switches)
        rest.padding -= min(rest.padding, earlier.padding)
        rest.silent -= min(rest.silent, earlier.silent)
        return rest
    }
}
