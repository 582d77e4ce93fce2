import Foundation

/// The amount of a test's noise.
enum Noise {
    /// Returns `full` in a run with `SFUD_NOISE=full`, a twentieth of it in an ordinary one.
    static func count(_ full: Int) -> Int {
        ProcessInfo.processInfo.environment["SFUD_NOISE"] == "full" ? full : full / 20
    }
}
