import CCounting
import LoadPeer
import RTP
import SFU

/// Video through the core to its viewers, with real SRTP on both ends.
struct CoreCost: CustomStringConvertible {
    var copies = 0
    /// With those of the warm-up.
    var allCopies = 0
    var nanoseconds: Int64 = 0
    var calls = counted_calls()
    var engine = SRTPEngine.best
    var profile = "?"
    var shape = Shape.livestream
    var viewers = 0
    var packets = 0

    /// Whether the core did nothing that it must not.
    ///
    /// Debian's libsrtp2 allocates and locks within itself; that says nothing of the core.
    var isClean: Bool {
        let counted = calls.retains + calls.releases + calls.exclusivity_checks
        guard engine == .ipsecMB else { return counted == 0 }
        return counted + calls.allocations + calls.frees + calls.locks == 0
    }

    var description: String {
        let each = copies > 0 ? nanoseconds / Int64(copies) : 0
        return """
            \(shape.rawValue): \(packets) packets of 1,200 bytes, \(viewers) viewers, \
            \(profile) by \(engine.rawValue)
            forwarded copies    \(copies)
            with the warm-up    \(allCopies)
            ns a copy           \(each)
            allocations         \(calls.allocations)
            frees               \(calls.frees)
            retains             \(calls.retains)
            releases            \(calls.releases)
            exclusivity checks  \(calls.exclusivity_checks)
            mutex locks         \(calls.locks)
            """
    }

    /// Connects all, warms up, and measures.
    static func measure(_ options: Options) throws -> Self {
        var bench = try Bench(options)
        var sent = Batch(capacity: 64)
        bench.forward(batches: max(1, min(512, options.packets) / bench.batchSize), through: &sent)
        let prepared = bench.preparation
        var result = Self()
        let before = bench.copies
        let start = ContinuousClock.now
        let batches = max(1, options.packets / bench.batchSize)
        counting_start()
        bench.forward(batches: batches, through: &sent)
        result.calls = counting_stop()
        let passed = start.duration(to: .now).components
        result.nanoseconds = passed.seconds * 1_000_000_000 + passed.attoseconds / 1_000_000_000
        result.nanoseconds -= bench.preparation - prepared
        result.copies = bench.copies - before
        result.allCopies = bench.copies
        result.engine = options.engine
        result.profile = bench.profile
        result.shape = options.shape
        result.viewers = options.viewers
        result.packets = batches * bench.batchSize
        return result
    }
}
