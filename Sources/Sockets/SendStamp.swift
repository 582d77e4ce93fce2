import Kernel
import WorkerInterface

/// When send calls with media have returned, by the wall clock, which stamps arrivals too.
package struct SendStamp: Equatable {
    /// Of the first call; Unix time in nanoseconds, 0 where there was none.
    package private(set) var first: Int64 = 0
    /// Whether there was any.
    package var hasMedia: Bool { first != 0 }

    package init() {}

    /// Takes the earlier one.
    package mutating func join(_ other: Self) {
        guard other.hasMedia else { return }
        first = hasMedia ? min(first, other.first) : other.first
    }

    /// Notes a call that has just returned.
    mutating func note(_ content: DatagramContent) {
        guard first == 0, content != .other else { return }
        first = wallClock()
    }
}
