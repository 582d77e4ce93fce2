import RTP
import WorkerInterface

/// The transports of a worker: ICE, DTLS, consent and liveness of every peer.
///
/// It decides which peer a datagram comes from, and where media may be sent. Changes that concern
/// other parts of the core are findings, which the core takes and routes.
struct Transports: ~Copyable {
    /// A change that other parts of the core have to act on.
    enum Finding {
        /// The connection state, as the control plane is told.
        case changed(TransportID, TransportChange)
        /// Another path: what was learnt about the old one does not hold.
        case pathChanged(TransportIndex)
    }

    /// Counters of this part; the worker's statistics contain them.
    struct Counters {
        var stunIn: UInt64 = 0
        var dtlsIn: UInt64 = 0
        var datagramsOut: UInt64 = 0
        var consentsEnded: UInt64 = 0
        var connections = ConnectionOutcomes()
        /// Round-trip times of consent checks, in seconds.
        var publisherRoundTrips = Histogram(.roundTrip)
    }

    let limits: CoreLimits
    let identity: DTLSIdentity
    let srtpContext: SRTPContext
    /// Generator for values that peers see.
    var random: SplitMix
    /// Generator for values that peers must not guess.
    var secrets: SecretNumbers

    var transports = Slab<Transport, HandleKind.Transport>()
    /// Send state of the transports; with the slots, all that forwarding a packet touches per
    /// subscriber.
    var destinations: Slab<Destination, HandleKind.Transport>
    /// Records of connected transports for the next process.
    var saved: Slab<SavedTransport, HandleKind.Transport>
    /// Whether there is memory that outlives the process.
    let savesState: Bool
    /// Lookup from validated addresses to transports.
    var paths: PathTable
    /// Lookup from a keyed hash of the local ICE username fragment to the transport.
    var fragments: [UInt64: TransportID] = [:]
    let fragmentSeed: UInt64
    /// Rate limiter for STUN checks from unvalidated addresses.
    var unvalidatedSources: SourceRateLimiter
    var timers = TimerQueue()
    /// Time of the last call of `excludeStall`.
    var lastExpiry: Instant?
    /// Last time in which the worker did nothing for longer than `shortestStall` nanoseconds.
    var lastStall: (from: Instant, to: Instant)?
    static let shortestStall: Int64 = 100_000_000
    /// Unix time minus the monotonic clock, in nanoseconds, for sender reports.
    var wallClockOffset: Int64 = 0
    var counters = Counters()
    var findings: [Finding] = []

    static let reportMilliseconds: Int64 = 1_000

    init(
        limits: CoreLimits,
        identity: DTLSIdentity,
        srtpContext: SRTPContext,
        random: SplitMix,
        secrets: consuming SecretNumbers,
        memory: SavedMemory? = nil
    ) {
        destinations = Slab(in: memory, .destinations)
        saved = Slab(in: memory, .transports)
        savesState = memory != nil
        self.limits = limits
        self.identity = identity
        self.srtpContext = srtpContext
        self.random = random
        paths = PathTable(seed: secrets.next())
        fragmentSeed = secrets.next()
        unvalidatedSources = SourceRateLimiter(seed: secrets.next())
        self.secrets = secrets
    }

    subscript(index: TransportIndex) -> Transport {
        @inline(__always) unsafeAddress { unsafe UnsafePointer(transports.address(of: index)) }
        @inline(__always) unsafeMutableAddress { unsafe transports.address(of: index) }
    }

    var count: Int { transports.count }
    var capacity: Int { transports.capacity }

    func contains(_ id: TransportID) -> Bool { transports.contains(id) }
    func index(at offset: Int) -> TransportIndex? { transports.index(at: offset) }

    mutating func remove(at index: TransportIndex) {
        _ = transports.remove(at: index)
        _ = destinations.remove(at: index)
    }

    /// Takes the transport of a timer that is due; `nil` for an outdated timer.
    mutating func claim(_ entry: TimerQueue.Entry) -> TransportIndex? {
        guard transports.contains(entry.transport) else { return nil }
        let index = entry.transport.place
        guard transports[index].scheduled == entry.deadline else { return nil }
        transports[index].scheduled = nil
        return index
    }

    func ntp(at now: Instant) -> NTPTime {
        NTPTime(unixNanoseconds: now.nanoseconds &+ wallClockOffset)
    }

    /// Notes a change of the connection state.
    mutating func note(_ change: TransportChange, of transport: TransportIndex) {
        findings.append(.changed(transports[transport].id, change))
    }

    mutating func takeFindings() -> [Finding] {
        var taken: [Finding] = []
        swap(&taken, &findings)
        return taken
    }
}
