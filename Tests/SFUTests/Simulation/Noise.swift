import Foundation

/// The amount of a test's noise.
enum Noise {
    /// Returns `full` in a run with `SFUD_NOISE=full`; in an ordinary one `short`, or else a
    /// twentieth of it.
    static func count(_ full: Int, short: Int? = nil) -> Int {
        ProcessInfo.processInfo.environment["SFUD_NOISE"] == "full" ? full : short ?? full / 20
    }
}
