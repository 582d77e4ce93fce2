import RTP
import WorkerInterface

/// The forwarder of a worker: the slots of all subscribers, and the batch's way out through them.
struct Forwarder: ~Copyable {
    /// Counters of this part; the worker's statistics contain them.
    struct Counters {
        var datagramsOut: UInt64 = 0
        var bytesOut: UInt64 = 0
        var rtpOut: UInt64 = 0
        var fillersOut: UInt64 = 0
        var paddingOut: UInt64 = 0
        var freezes = FreezeTotals()
    }

    var slots: Slab<Slot, HandleKind.Slot>
    var slotRecords = Slab<SlotRecord, HandleKind.Slot>()
    /// Numbering of the slots' retransmissions.
    var repairs: Slab<SavedRepair, HandleKind.Slot>
    /// Flows of slots in an earlier process, to go on with once they are bound to them again.
    var earlierFlows: [SlotIndex: (flow: SavedFlow, span: RTPRewriter.SequenceSpan)] = [:]

    /// Publications with many subscribers, whose packets are sent after the others.
    var largeAudiences = UncountedArray<PublicationIndex>(capacity: Receiver.batchCapacity)
    /// Progress of `flush`.
    var cursor = FlushCursor()
    var egressOrder = EgressOrder()
    var aside = PreemptedBatch()

    /// Whether a gap has just broken the picture of the slot that is being served.
    var hasBroken = false

    /// Held audio to replay before the next batch, for newly selected speakers.
    var replays = UncountedArray<Replay>()
    var nextReplay = 0

    /// Packets queued by the pacers, and the first free place among them.
    var pacedPackets = UncountedArray<PacedPacket>(capacity: 16)
    var firstFreePaced: Int?
    /// Whether the packet being sent comes from a pacer's queue.
    var isReleasing = false

    /// Copies that were forwarded under rights that commands have revoked since the last fence.
    var packetsUnderRevokedRights: UInt64 = 0
    /// Outgoing SSRCs of the slots that have lost their right since `takeRevokedSSRCs` was last
    /// called.
    var revokedSSRCs: [SSRC] = []

    var counters = Counters()
    /// Events for the control plane, which the core takes.
    var events: [WorkerEvent] = []

    /// Makes a forwarder whose numbering lies in `memory`, if there is any.
    init(in memory: SavedMemory? = nil) {
        slots = Slab(in: memory, .slots)
        repairs = Slab(in: memory, .repairs)
    }

    /// Whether a batch is partly sent.
    var isFlushing: Bool { cursor.isUnderWay || !largeAudiences.isEmpty || aside.isActive }

    /// Returns the outgoing SSRCs, RTX included, that have lost their right since the last call.
    mutating func takeRevokedSSRCs() -> [SSRC] {
        guard !revokedSSRCs.isEmpty else { return [] }
        defer { revokedSSRCs.removeAll() }
        return revokedSSRCs
    }

    /// Returns how many copies went out under revoked rights since the last call.
    mutating func takePacketsUnderRevokedRights() -> UInt64 {
        defer { packetsUnderRevokedRights = 0 }
        return packetsUnderRevokedRights
    }
}
