import RTP

/// When a handshake's flights are sent again, and when it is given up.
///
/// Media cannot wait for the second that RFC 6347 §4.2.4.1 starts with; WebRTC stacks start
/// well below.
struct DTLSSchedule {
    private var interval: Int64
    private var next: Instant?
    private let end: Instant

    static let firstMilliseconds: UInt32 = 100
    static let lastMilliseconds: UInt32 = 3_200
    /// How long all of a handshake may take.
    static let limitMilliseconds: Int64 = 30_000

    init(at now: Instant) {
        interval = Int64(Self.firstMilliseconds)
        end = now.advanced(milliseconds: Self.limitMilliseconds)
    }

    var deadline: Instant { next.map { min($0, end) } ?? end }

    func hasEnded(at now: Instant) -> Bool { end <= now }

    /// A new flight has left.
    mutating func restart(at now: Instant) {
        interval = Int64(Self.firstMilliseconds)
        next = now.advanced(milliseconds: interval)
    }

    /// Whether the last flight is due again; if so, the wait for the next time is twice as long.
    mutating func takeDue(at now: Instant) -> Bool {
        guard let due = next, due <= now else { return false }
        interval = min(2 * interval, Int64(Self.lastMilliseconds))
        next = now.advanced(milliseconds: interval)
        return true
    }
}
