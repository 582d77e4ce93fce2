import RTP
import Testing

@testable import SFU

/// Feedback of a viewer, written and parsed as on the wire.
enum ViewerFeedback {
    /// Gives to an estimator one message about the packets from `base` on.
    ///
    /// - Parameters:
    ///   - arrivals: Nanoseconds on the viewer's clock, negative for a packet that did not come.
    ///   - base: The first packet's number.
    ///   - estimator: Who hears of it.
    ///   - now: When.
    static func give(
        _ arrivals: [Int64],
        from base: UInt16,
        to estimator: inout BandwidthEstimator,
        at now: Instant
    ) {
        let bytes = [UInt8](capacity: 40_000) { output in
            _ = TransportFeedbackBuilder.encode(
                sender: SSRC(rawValue: 1),
                media: SSRC(rawValue: 2),
                feedbackCount: 0,
                base: SequenceNumber(rawValue: base),
                arrivals: arrivals.span,
                into: &output
            )
        }
        give(bytes, to: &estimator, at: now)
    }

    /// Gives bytes that may or may not be feedback.
    static func give(_ bytes: [UInt8], to estimator: inout BandwidthEstimator, at now: Instant) {
        guard bytes.count >= 4 else { return }
        var blocks = RTCPBlocks(bytes.span)
        while let block = blocks.next() {
            guard let feedback = try? TransportFeedback(block) else { continue }
            estimator.receive(feedback, at: now)
        }
    }
}

/// A sender of equal packets on a path without limits: what an estimator sees of it.
struct SteadySender {
    var now = Instant(nanoseconds: 1_000_000_000)
    var sequence: UInt16
    /// What the viewer's clock shows beyond ours.
    var clockOffset: Int64 = 5_000_000_000
    /// Whether feedback comes back at all.
    var isHeard = true
    /// Of a packet.
    var bytes = 1_200
    /// Milliseconds between two packets.
    var interval = 10
    /// Milliseconds for which they wait on the way, beyond the 20 that it takes.
    var wait: Int64 = 0
    private var waiting: [Int64] = []
    private var base: UInt16

    init(from sequence: UInt16 = 0) {
        self.sequence = sequence
        base = sequence
    }

    /// Sends 1,200 bytes each 10 ms (960 kbit/s), or what it is set to, for a while, heard of each
    /// 100 ms after 40 ms, or as soon as anything has come.
    mutating func run(
        milliseconds: Int,
        _ estimator: inout BandwidthEstimator,
        isLost: (UInt16) -> Bool = { _ in false }
    ) {
        for _ in 0..<milliseconds / interval {
            estimator.sent(sequence, bytes: bytes, at: now, probe: nil)
            let arrival = now.advanced(milliseconds: 20 + wait).nanoseconds + clockOffset
            waiting.append(isLost(sequence) ? -1 : arrival)
            sequence &+= 1
            if waiting.count * interval >= 100 { report(to: &estimator) }
            now = now.advanced(milliseconds: Int64(interval))
            estimator.expire(at: now)
        }
    }

    /// Leaves a number to who sends a packet of its own in between.
    mutating func skip() {
        sequence &+= 1
        base = sequence
    }

    /// Browsers report when something has come, and then on all that has not.
    private mutating func report(to estimator: inout BandwidthEstimator) {
        if isHeard {
            guard waiting.contains(where: { $0 >= 0 }) else { return }
            let heard = now.advanced(milliseconds: 40)
            ViewerFeedback.give(waiting, from: base, to: &estimator, at: heard)
        }
        base = sequence
        waiting.removeAll()
    }
}
