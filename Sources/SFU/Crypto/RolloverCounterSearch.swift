/// Search for the roll-over counter after more than 2^15 consecutive packets were lost.
///
/// After such a loss the sequence number alone yields a wrong counter (RFC 3711 §3.3.1), and every
/// later packet would be refused. So when many consecutive packets were refused, a few of them are
/// checked with later counters too. A tag still verifies only with the right counter, and earlier
/// counters are never tried.
enum RolloverCounterSearch {
    /// Number of consecutive refusals before the first attempt.
    private static let patience: UInt32 = 32
    /// Number of refusals per attempt, so that forged packets cost an eighth more.
    private static let pause: UInt32 = 8
    /// Number of counters that are tried in turn; 30 s at 10,000 packets a second make five.
    private static let rounds: UInt32 = 8

    /// Returns the offset to add to the estimated counter of a refused packet, or `nil` for no
    /// attempt.
    ///
    /// `refused` is the number of consecutive refusals before this one.
    static func round(after refused: UInt32) -> UInt32? {
        guard refused >= patience, refused % pause == 0 else { return nil }
        return 1 + (refused - patience) / pause % rounds
    }
}
