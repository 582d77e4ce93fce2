import RTP

/// Bytes of one recording that wait for the disk, and since when they have been too many.
struct DiskBacklog {
    /// Time in milliseconds that the disk has for more than the limit.
    ///
    /// A burst, such as the flush of many tracks, is over the limit until the disk thread has had
    /// its turn. The bytes are bounded by the limit and what publishers may send in this time.
    static let patienceMilliseconds: Int64 = 500

    private(set) var bytes = 0
    private var overSince: Instant?

    init() {}

    mutating func add(_ count: Int, limit: Int, at now: Instant) {
        bytes += count
        if bytes > limit, overSince == nil { overSince = now }
    }

    mutating func remove(_ count: Int, limit: Int) {
        bytes -= count
        if bytes <= limit { overSince = nil }
    }

    /// Whether more than the limit has waited all the time that the disk has for it.
    func isOverdue(at now: Instant) -> Bool {
        guard let overSince else { return false }
        return now.milliseconds(since: overSince) >= Self.patienceMilliseconds
    }
}
