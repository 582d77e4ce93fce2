internal import CKernel
package import RTP

extension Instant {
    /// Returns the present time of the monotonic clock.
    package static func monotonic() -> Self {
        Self(nanoseconds: kernel_monotonic_nanoseconds())
    }
}

/// Returns Unix time in nanoseconds, by the clock that stamps arrivals.
package func wallClock() -> Int64 { kernel_unix_nanoseconds() }

/// Returns Unix time minus monotonic time, in nanoseconds.
package func wallClockOffset() -> Int64 {
    kernel_unix_nanoseconds() &- kernel_monotonic_nanoseconds()
}
