import RTP

/// Bandwidth estimate for publishers without transport-wide feedback, sent as REMB
/// (draft-alvestrand-rmcat-remb-03).
///
/// It follows the received rate: up to half as much again with little loss, less on heavy loss.
struct ReceiverRate: BitwiseCopyable {
    static let start = 1_000_000
    static let minimum = 100_000
    static let maximum = 8_000_000
    static let intervalMilliseconds: Int64 = 1_000

    private(set) var bitrate = start
    private var bytes: UInt64 = 0
    private var packets = 0
    private var lost = 0
    private var since: Instant?

    mutating func receive(bytes count: Int) {
        bytes &+= UInt64(count)
        packets &+= 1
    }

    mutating func lose(_ count: Int) { lost &+= count }

    /// Updates the estimate from the interval that ends now.
    mutating func update(at now: Instant) {
        defer {
            since = now
            bytes = 0
            packets = 0
            lost = 0
        }
        guard let since, packets > 0 else { return }
        let elapsed = max(1, now.milliseconds(since: since))
        let arrived = Int(clamping: min(bytes &* 8_000 / UInt64(elapsed), 1 << 40))
        if lost &* 10 > packets {
            bitrate = max(Self.minimum, min(bitrate, arrived) &* 85 / 100)
        } else if lost &* 50 < packets {
            let most = max(arrived &* 3 / 2 &+ 100_000, bitrate)
            bitrate = min(Self.maximum, min(bitrate &* 13 / 10, most))
        }
    }
}
