/// What publishers have sent and were asked for.
struct PublisherTally: Sendable {
    var audioPackets: UInt64 = 0
    var videoPackets: UInt64 = 0
    var videoFrames: UInt64 = 0
    var keyframes: UInt64 = 0
    /// Bytes of whole SRTP packets of video, retransmissions left out.
    var videoBytes: UInt64 = 0
    var largestPacket = 0
    /// Video packets that were not sent when they should have been.
    var thrownAway: UInt64 = 0
    /// Frames and audio packets that the bench was too late for.
    var skipped: UInt64 = 0
    var retransmissions: UInt64 = 0
    /// Requests for a keyframe, PLI or FIR.
    var keyframeRequests: UInt64 = 0
    /// Packets that NACKs named.
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
        sum.thrownAway += other.thrownAway
        sum.skipped += other.skipped
        sum.retransmissions += other.retransmissions
        sum.keyframeRequests += other.keyframeRequests
        sum.nackedPackets += other.nackedPackets
        sum.transportFeedback += other.transportFeedback
        sum.receiverReports += other.receiverReports
    }
}
