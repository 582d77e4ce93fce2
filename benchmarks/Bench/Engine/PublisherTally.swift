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
