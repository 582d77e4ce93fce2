import RTP
import WorkerInterface

/// The receiver of a worker: its publications and encodings, and the batch of received packets.
///
/// Packets come from transports, and in mirrors from other workers. The forwarder empties the
/// batch.
struct Receiver: ~Copyable {
    /// Counters of this part; the worker's statistics contain them.
    struct Counters {
        var rtpIn: UInt64 = 0
        var rtpForwarded: UInt64 = 0
        var relayedForwarded: UInt64 = 0
        var keyframeRequestCounts = KeyframeRequestCounts()
    }

    let limits: CoreLimits
    var publications = Slab<Publication, HandleKind.Publication>()
    var encodings = Slab<Encoding, HandleKind.Encoding>()
    var encodingIDs = HandleAllocator<HandleKind.Encoding>(capacity: .max)
    var lastEpoch: UInt32 = 0

    var pool: PacketPool
    /// Place in the pool that RTCP is decrypted into, and padding made in, so that both work with a
    /// full pool.
    let rtcpPlace: PacketPlace

    /// Publications with packets in the batch.
    var queued = UncountedArray<PublicationIndex>(capacity: batchCapacity)
    /// Packets in the batch.
    var arrivalCount = 0
    /// Stale media to discard from the datagram being received.
    var staleMedia = StaleMedia.nothing

    /// Audio whose packets carry no level extension, and the decoders that measure it.
    var pendingAudioDecodes = PendingAudioDecodes()
    var opusLevelMeter = OpusLevelMeter(limit: PendingAudioDecodes.decoders)

    /// Publications that are fed by another worker.
    var mirrors = UncountedArray<PublicationIndex>(capacity: 4)
    /// Next deadline of the mirrors.
    var mirrorsDue: Instant?

    /// Publications whose gate is open under a lease of their room's home.
    var leased = UncountedArray<PublicationIndex>()

    var drops = DropCounters()
    /// Drops of relayed packets in a mirror; the home has counted those packets as forwarded.
    var relayDrops = DropCounters()
    var counters = Counters()
    /// Events for the control plane, which the core takes.
    var events: [WorkerEvent] = []

    init(limits: CoreLimits) {
        self.limits = limits
        pool = PacketPool(capacity: limits.packetPool + 1)
        guard let place = pool.allocate() else { preconditionFailure("the pool has a place") }
        rtcpPlace = place
    }
}
