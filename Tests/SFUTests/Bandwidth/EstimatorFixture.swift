import RTP
import Testing

@testable import SFU

/// Feedback of a viewer, encoded and parsed as on the wire.
enum ViewerFeedback {
    /// Gives an estimator one message about the packets from `base` on.
    ///
    /// - Parameters:
    ///   - arrivals: Nanoseconds on the viewer's clock, negative for a lost packet.
    ///   - base: The first packet's number.
    ///   - estimator: The estimator that takes the feedback.
    ///   - now: The time of its arrival.
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

    /// Gives an estimator bytes that may or may not be valid feedback.
    static func give(_ bytes: [UInt8], to estimator: inout BandwidthEstimator, at now: Instant) {
        guard bytes.count >= 4 else { return }
        var blocks = RTCPBlocks(bytes.span)
        while let block = blocks.next() {
            guard let feedback = try? TransportFeedback(block) else { continue }
            estimator.receive(feedback, at: now)
        }
    }
}

/// A sender of equal packets on a path without limits, with the feedback on them.
struct SteadySender {
    var now = Instant(nanoseconds: 1_000_000_000)
    var sequence: UInt16
    /// Offset of the viewer's clock from ours, in nanoseconds.
    var clockOffset: Int64 = 5_000_000_000
    /// Whether feedback arrives at all.
    var isHeard = true
    /// Size of a packet, in bytes.
    var bytes = 1_200
    /// Interval between two packets, in milliseconds.
    var interval = 10
    /// Queuing delay in milliseconds, in addition to the one-way delay of 20.
    var wait: Int64 = 0
    private var waiting: [Int64] = []
    private var base: UInt16

    init(from sequence: UInt16 = 0) {
        self.sequence = sequence
        base = sequence
    }

    /// Sends packets for a while.
    ///
    /// By default 1,200 bytes each 10 ms (960 kbit/s). Feedback is sent each 100 ms, or as soon as
    /// any packet has arrived, and takes 40 ms.
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

    /// Leaves a sequence number for a packet that the caller sends itself.
    mutating func skip() {
        sequence &+= 1
        base = sequence
    }

    /// Sends feedback as browsers do: only after an arrival, and then on all packets missing before
    /// it.
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
