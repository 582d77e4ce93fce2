import RTP
import WorkerInterface

/// The layer allocator of a worker: it distributes each subscriber's bandwidth among its slots.
struct LayerAllocator: ~Copyable {
    /// Result of the last allocation, by slot; audio has none.
    var shares = Slab<LazyBox<SlotShare>, HandleKind.Slot>()

    /// Working memory of the allocation in progress: demands, their slots and the layers on offer.
    var allocation = Allocation()
    var ladder = Ladder()
    var claimants = UncountedArray<Claimant>(capacity: 16)
    var offers = UncountedArray<LayerOption>(capacity: 32)

    /// Events for the control plane, which the core takes.
    var events: [WorkerEvent] = []

    /// Makes room for the share of a slot.
    mutating func addShare(_ id: SlotID, of kind: MediaKind) {
        var share = LazyBox<SlotShare>()
        if kind.isVideo { share.make(SlotShare()) }
        shares.insert(share, at: id)
    }

    mutating func removeShare(of slot: SlotIndex) { _ = shares.remove(at: slot) }
}

/// Slot that takes part in the current allocation.
struct Claimant: BitwiseCopyable {
    var slot: SlotIndex
    var publication: PublicationIndex
    /// Limit that keeps its ladder from reaching the highest layer.
    var limit: LayerLimit
}
