import CCounting
import LoadPeer
import RTP
import SFU

/// Cost of forwarding one publisher's videos through the core, with real SRTP at both ends.
struct CoreCost: CustomStringConvertible {
    /// Subscriptions created to measure the memory of one.
    private static let subscriptions = 1_000

    var copies = 0
    /// Copies including the warm-up.
    var allCopies = 0
    var runs = 0
    /// Heap bytes of one more subscription.
    var subscriptionBytes: Int64 = 0
    var nanoseconds: Int64 = 0
    /// Nanoseconds a copy in the fastest batch.
    var least: Int64 = 0
    var calls = counted_calls()
    var engine = SRTPEngine.best
    var profile = "?"
    var viewers = 0
    var publications = 0
    var relays = false
    var packets = 0

    /// Whether the core did no forbidden operation.
    ///
    /// Debian's libsrtp2 allocates and locks internally, which is not the core's doing.
    var isClean: Bool {
        let counted = calls.retains + calls.releases + calls.exclusivity_checks
        guard engine == .ipsecMB else { return counted == 0 }
        return counted + calls.allocations + calls.frees + calls.locks == 0
    }

    private var place: String { relays ? " on another worker" : "" }

    var description: String {
        let each = copies > 0 ? nanoseconds / Int64(copies) : 0
        let run = Double(copies * 10 / max(runs, 1)) / 10
        return """
            \(packets) packets of 1,200 bytes of \(publications) videos to \(viewers) viewers\(place), \
            \(profile) by \(engine.rawValue)
            forwarded copies    \(copies)
            with the warm-up    \(allCopies)
            ns a copy           \(each)
            at least            \(least)
            copies a GSO run    \(run)
            bytes a subscription \(subscriptionBytes)
            allocations         \(calls.allocations)
            frees               \(calls.frees)
            retains             \(calls.retains)
            releases            \(calls.releases)
            exclusivity checks  \(calls.exclusivity_checks)
            mutex locks         \(calls.locks)
            """
    }

    /// Connects everybody, warms up, and measures.
    static func measure(_ options: Options) throws -> Self {
        var bench = try Bench(options)
        var sent = Batch(capacity: Core.batchCapacity)
        bench.forward(packets: 512, through: &sent)
        var result = Self()
        let before = bench.copies
        let runsBefore = bench.runs
        let start = bench.nanoseconds
        counting_start()
        bench.forward(packets: options.packets, through: &sent)
        result.calls = counting_stop()
        counting_instructions_stop()
        result.nanoseconds = bench.nanoseconds - start
        result.least = bench.least
        result.copies = bench.copies - before
        result.allCopies = bench.copies
        result.runs = bench.runs - runsBefore
        result.engine = options.engine
        counting_start()
        bench.subscribe(Self.subscriptions, viewer: options.viewers)
        result.subscriptionBytes = counting_stop().bytes / Int64(Self.subscriptions)
        result.profile = bench.profile
        result.viewers = options.viewers
        result.publications = options.publications
        result.relays = options.relays
        result.packets = options.packets
        return result
    }
}
