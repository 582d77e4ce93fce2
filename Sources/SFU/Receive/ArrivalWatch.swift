import RTP

/// Watch over the arrivals of one encoding: its silences, and packets that are missing.
///
/// At the home and in mirrors alike it sees every packet once, so it costs nothing per subscriber.
struct ArrivalWatch: BitwiseCopyable {
    /// A stretch without packets, and its cause as the packet after it shows.
    struct Silence: BitwiseCopyable {
        enum Cause: BitwiseCopyable {
            /// Packets of it are missing.
            case lost
            /// Its packets came after it, in a burst.
            case late
            /// Nothing was sent: no number is missing, and the media clock ran on.
            case paused
        }

        var from: Instant
        var to: Instant
        var cause: Cause
    }

    /// Shortest silence that is recorded.
    private static let shortest: Int64 = 100_000_000
    /// Largest number of packets that count as missing; a larger jump is another numbering.
    private static let most: Int64 = 5_000

    private var highest: Int64?
    /// Arrival of the newest packet, discarded ones included.
    private(set) var lastArrival = Instant(nanoseconds: 0)
    private var lastTimestamp: UInt32 = 0
    /// Last silence that has ended.
    private(set) var silence: Silence?
    /// Time since which packets are missing that neither came late nor precede a keyframe.
    private(set) var missingSince: Instant?
    /// Number of those packets.
    private(set) var missing: Int32 = 0

    /// Notes a packet by its sequence number with wraps counted; `clockRate` is in hertz.
    mutating func receive(number: Int64, timestamp: UInt32, clockRate: Int, at now: Instant) {
        defer { lastArrival = max(lastArrival, now) }
        guard let last = highest else {
            highest = number
            lastTimestamp = timestamp
            return
        }
        guard number > last else { return fill() }
        let elapsed = now.nanoseconds(since: lastArrival)
        let gap = number &- last &- 1
        if elapsed > Self.shortest {
            end(elapsed, gap: gap, at: now, ticks: timestamp &- lastTimestamp, clockRate)
        }
        if gap > 0 {
            missing = Int32(clamping: min(Int64(clamping: missing) &+ gap, Self.most))
            missingSince = missingSince ?? now
        }
        highest = number
        lastTimestamp = timestamp
    }

    private mutating func end(
        _ elapsed: Int64,
        gap: Int64,
        at now: Instant,
        ticks: UInt32,
        _ clockRate: Int
    ) {
        // The media clock ran on by less than half of the time.
        let isLate =
            Int64(clamping: ticks) &* 2_000_000_000 < elapsed &* Int64(clamping: clockRate)
        let cause: Silence.Cause = gap > 0 ? .lost : isLate ? .late : .paused
        silence = Silence(from: lastArrival, to: now, cause: cause)
    }

    private mutating func fill() {
        missing = max(0, missing &- 1)
        if missing == 0 { missingSince = nil }
    }

    /// Notes the start of a keyframe, with which no missing packet matters any more.
    mutating func noteKeyframe() {
        missing = 0
        missingSince = nil
    }

    /// Forgets the numbering, for a sender that restarts.
    mutating func restart() {
        highest = nil
        noteKeyframe()
    }
}
