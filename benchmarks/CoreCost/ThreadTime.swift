#if canImport(Glibc)
    import Glibc
#endif

/// Returns the CPU time of this thread in nanoseconds; other processes do not affect it.
func threadNanoseconds() -> Int64 {
    var time = timespec()
    _ = unsafe clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
}
