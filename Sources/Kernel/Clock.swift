internal import CKernel
package import RTP

extension Instant {
    /// Now, on the clock that never jumps with the wall's.
    package static func monotonic() -> Self {
        Self(nanoseconds: kernel_monotonic_nanoseconds())
    }
}

/// Unix time in nanoseconds: the clock that stamps arrivals.
package func wallClock() -> Int64 { kernel_unix_nanoseconds() }

/// What to add to the monotonic clock to get Unix time, in nanoseconds.
package func wallClockOffset() -> Int64 {
    kernel_unix_nanoseconds() &- kernel_monotonic_nanoseconds()
}
