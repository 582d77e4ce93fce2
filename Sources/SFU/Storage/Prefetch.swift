#if canImport(CIPSecMB)
    internal import CIPSecMB
#endif

/// Hints to the processor; without the C of intel-ipsec-mb's module they do nothing.
enum Prefetch {
    /// Asks for `byteCount` bytes to be fetched into the cache, to be read or written soon.
    static func read(_ start: UnsafeRawPointer, byteCount: Int) {
        #if canImport(CIPSecMB)
            unsafe mb_prefetch(start, UInt64(byteCount))
        #endif
    }
}
