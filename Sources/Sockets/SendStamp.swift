import Kernel
import WorkerInterface

/// Time at which media was first sent, by the wall clock, which also stamps arrivals.
package struct SendStamp: Equatable {
    /// Return time of the first send call, as Unix time in nanoseconds; 0 if there was none.
    package private(set) var first: Int64 = 0
    /// Whether any media was sent.
    package var hasMedia: Bool { first != 0 }

    package init() {}

    /// Keeps the earlier of two stamps.
    package mutating func join(_ other: Self) {
        guard other.hasMedia else { return }
        first = hasMedia ? min(first, other.first) : other.first
    }

    /// Records a send call that has just returned.
    mutating func note(_ content: DatagramContent) {
        guard first == 0, content != .other else { return }
        first = wallClock()
    }
}
