import RTP

/// Schedule for returning free heap memory to the system after transports come or go.
///
/// A handshake frees most of the memory that it took, and a staleMedia participant frees the rest, but
/// the C library keeps free chunks between used ones. Other threads may have to wait for an
/// allocation during a trim, so trimming is delayed until there is little change.
struct HeapTrimmer {
    private var seen = 0
    /// Time of the first change since the last trim.
    private var first: Instant?
    private(set) var deadline: Instant?

    /// Takes the number of transports that have come or gone since the start; returns whether to
    /// trim now.
    mutating func isDue(changes: Int, at now: Instant) -> Bool {
        if changes != seen {
            seen = changes
            let start = first ?? now
            first = start
            deadline = min(
                now.advanced(milliseconds: Self.quietMilliseconds),
                start.advanced(milliseconds: Self.longestMilliseconds)
            )
        }
        guard let deadline, deadline <= now else { return false }
        self.deadline = nil
        first = nil
        return true
    }

    static let quietMilliseconds: Int64 = 2_000
    static let longestMilliseconds: Int64 = 60_000
}
