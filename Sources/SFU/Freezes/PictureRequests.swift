import RTP
import WorkerInterface

/// Keyframes that the viewer asks for, by PLI or FIR, and the end of each such episode.
///
/// One request without a loss proves nothing: recorders ask for keyframes now and then. A request
/// that follows soon after a keyframe has arrived shows that the viewer cannot decode.
struct PictureRequests: BitwiseCopyable {
    /// Nanoseconds after an arrived keyframe within which another request belongs to the same
    /// episode.
    private static let probation: Int64 = 700_000_000

    private(set) var first: Instant?
    private var last = Instant(nanoseconds: 0)
    /// Time at which the keyframe after the last request was known to have arrived.
    private(set) var arrivedAt: Instant?
    private(set) var count: Int32 = 0
    /// Reason of a loss that made the viewer ask, if one did.
    private(set) var loss: FreezeReason?
    private(set) var isUndecoded = false

    /// Notes a request; `loss` is the reason of the present loss, if there is one.
    mutating func note(at now: Instant, loss reason: FreezeReason?) {
        if arrivedAt != nil, reason == nil {
            isUndecoded = true
            loss = nil
        }
        if first == nil {
            first = now
            loss = reason
        }
        arrivedAt = nil
        last = now
        count = Int32(clamping: Int64(count) &+ 1)
    }

    /// Follows the keyframes: one that left at `keyframeAt` has arrived if `acknowledged` is later.
    mutating func advance(to now: Instant, keyframeAt: Instant?, acknowledged: Instant?) {
        guard first != nil else { return }
        if arrivedAt == nil, let keyframeAt, keyframeAt > last, let acknowledged,
            acknowledged >= keyframeAt
        {
            arrivedAt = now
        }
        guard let arrivedAt else { return }
        let isOver = loss != nil && !isUndecoded
        if isOver || now.nanoseconds(since: arrivedAt) > Self.probation { self = Self() }
    }

    /// Whether no keyframe has come from the publisher since the last request.
    func awaitsPublisher(_ keyframeAt: Instant?) -> Bool {
        keyframeAt.map { $0 <= last } ?? true
    }
}

/// Packets that the viewer asks for again although they were sent long ago.
///
/// A viewer repeats its NACK every round trip, so a packet that it no longer names has arrived, or
/// was given up.
struct RepairWatch: BitwiseCopyable {
    private var since: Instant?
    private var until = Instant(nanoseconds: .min)

    /// Notes a NACK of a packet that was received at `arrival`; it counts if that was longer ago
    /// than `patience` and a round trip, in nanoseconds.
    ///
    /// A sooner repair delays no frame by more than the patience.
    mutating func note(_ arrival: Instant, at now: Instant, roundTrip: Int64, patience: Int64) {
        guard now.nanoseconds(since: arrival) > patience &+ roundTrip else { return }
        if now > until { since = nil }
        since = min(since ?? arrival, arrival)
        until = now.advanced(nanoseconds: roundTrip &+ roundTrip / 2 &+ 60_000_000)
    }

    /// Returns the arrival of the oldest packet that the viewer still lacks.
    func stuckSince(at now: Instant) -> Instant? { now <= until ? since : nil }
}
