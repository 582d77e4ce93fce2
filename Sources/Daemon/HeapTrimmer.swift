import RTP

/// Says when the heap should be trimmed: a while after many have come or gone.
///
/// A handshake frees most of what it took, and who leaves frees the rest; but the C library keeps
/// what lies between pieces that are in use. Threads that allocate may have to wait while it is
/// trimmed, so that is left until things are quiet.
struct HeapTrimmer {
    private var seen = 0
    /// When the first of the changes came that no trimming has followed.
    private var first: Instant?
    private(set) var deadline: Instant?

    /// Takes how many transports have come or gone since the start; says whether to trim now.
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
