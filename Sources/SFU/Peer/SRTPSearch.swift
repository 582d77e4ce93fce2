/// Finds a stream again of which more than 2^15 packets in a row were lost.
///
/// A sequence number alone then tells a wrong roll-over counter (RFC 3711 §3.3.1), and would for
/// ever: no packet would be good any more, and nobody see the stream. So where many in a row were
/// refused, a few of them are held against later counters too. A tag is still good with its own
/// counter alone, and before what has come already nothing is looked for.
enum SRTPSearch {
    /// So many in a row are refused before one is tried.
    private static let patience: UInt32 = 32
    /// One in so many is tried, so that forged packets cost an eighth more.
    private static let pause: UInt32 = 8
    /// Counters that are tried, one after the other: 30 s at 10,000 packets a second are five.
    private static let rounds: UInt32 = 8

    /// How far ahead of what its number tells a refused packet is looked for, after so many more
    /// in a row; `nil` for not at all.
    static func round(after refused: UInt32) -> UInt32? {
        guard refused >= patience, refused % pause == 0 else { return nil }
        return 1 + (refused - patience) / pause % rounds
    }
}
