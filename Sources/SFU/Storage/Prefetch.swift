#if canImport(CIPSecMB)
    internal import CIPSecMB
#endif

/// Prefetch hints to the processor; they do nothing without the C module of intel-ipsec-mb.
enum Prefetch {
    /// Prefetches `byteCount` bytes into the cache, to be read or written soon.
    static func read(_ start: UnsafeRawPointer, byteCount: Int) {
        #if canImport(CIPSecMB)
            unsafe mb_prefetch(start, UInt64(byteCount))
        #endif
    }
}
