package import RTP

/// Budget of the decoding thread's time for video.
///
/// All tracks of a live stream are decoded by one thread. Expensive pictures would delay those of
/// all other tracks, so when little time is left, the track that costs most pauses.
package struct DecodeBudget {
    /// Period over which costs are summed.
    package static let windowNanoseconds: Int64 = 250_000_000
    /// Decoding time within the period for pictures.
    ///
    /// It is less than the delay between capture and composition.
    package static let limitNanoseconds: Int64 = 200_000_000

    private struct Cost {
        var instant: Instant
        var track: UInt32
        var nanoseconds: Int64
    }

    private var costs: [Cost] = []

    package init() {}

    /// Adds the decoding time of one picture; returns the track that must pause, if any.
    package mutating func note(
        _ nanoseconds: Int64,
        of track: UInt32,
        at now: Instant
    ) -> UInt32? {
        let begin = now.advanced(nanoseconds: -Self.windowNanoseconds)
        costs.removeAll { $0.instant < begin }
        costs.append(Cost(instant: now, track: track, nanoseconds: nanoseconds))
        var sums: [UInt32: Int64] = [:]
        var total: Int64 = 0
        for cost in costs {
            sums[cost.track, default: 0] &+= cost.nanoseconds
            total &+= cost.nanoseconds
        }
        guard total > Self.limitNanoseconds,
            let most = sums.max(by: { ($0.value, $0.key) < ($1.value, $1.key) })?.key
        else { return nil }
        costs.removeAll { $0.track == most }
        return most
    }
}
