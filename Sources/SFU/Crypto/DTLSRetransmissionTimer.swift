import RTP

/// Retransmission timer and time limit of one DTLS handshake.
///
/// Media cannot wait for the initial timeout of one second of RFC 6347 §4.2.4.1. WebRTC stacks
/// start well below that, and so does this timer.
struct DTLSRetransmissionTimer {
    private var interval: Int64
    private var next: Instant?
    private let end: Instant

    static let firstMilliseconds: UInt32 = 100
    static let lastMilliseconds: UInt32 = 3_200
    /// Time limit of the whole handshake.
    static let limitMilliseconds: Int64 = 30_000

    init(at now: Instant) {
        interval = Int64(Self.firstMilliseconds)
        end = now.advanced(milliseconds: Self.limitMilliseconds)
    }

    var deadline: Instant { next.map { min($0, end) } ?? end }

    func hasEnded(at now: Instant) -> Bool { end <= now }

    /// Starts the timer at its initial interval, after a new flight was sent.
    mutating func restart(at now: Instant) {
        interval = Int64(Self.firstMilliseconds)
        next = now.advanced(milliseconds: interval)
    }

    /// Returns whether the last flight is due for retransmission; if so, doubles the interval.
    mutating func takeDue(at now: Instant) -> Bool {
        guard let due = next, due <= now else { return false }
        interval = min(2 * interval, Int64(Self.lastMilliseconds))
        next = now.advanced(milliseconds: interval)
        return true
    }
}
