#if canImport(Glibc)
    import Glibc
#endif

/// Nanoseconds of CPU time that this thread has had: what other processes take does not count.
func threadNanoseconds() -> Int64 {
    var time = timespec()
    _ = unsafe clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
}
