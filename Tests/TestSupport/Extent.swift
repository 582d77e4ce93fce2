import Foundation

/// Extent of the tests that repeat themselves: `make unit-full` asks for all of it.
package enum Extent {
    /// Whether all seeds and whole lengths are wanted: `SFUD_SEEDS=full`.
    package static let isFull = ProcessInfo.processInfo.environment["SFUD_SEEDS"] == "full"

    /// Returns `full` where all is wanted, else `short`.
    package static func count<Number>(_ full: Number, short: Number) -> Number {
        isFull ? full : short
    }

    /// Returns the seeds from 1 up to `full` where all are wanted, else up to `short`.
    package static func seeds(_ full: UInt64, short: UInt64) -> ClosedRange<UInt64> {
        1...count(full, short: short)
    }
}
