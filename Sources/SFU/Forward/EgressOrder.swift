import WorkerInterface

/// Egress order of the batch under way: its slots, chained by transport.
///
/// Datagrams to one address become adjacent. A slot carries one publication, so it is in one chain
/// at most. The links lie apart from the slots: chaining a batch touches four bytes where a slot
/// has two cache lines.
struct EgressOrder: ~Copyable {
    /// First and last slot of a transport, if it has any.
    struct Chain: BitwiseCopyable {
        var first = OptionalIndex<HandleKind.Slot>()
        var last = OptionalIndex<HandleKind.Slot>()
    }

    /// By slot: its transport, and the next slot in its chain.
    private var transports = UncountedArray<TransportIndex>()
    private var followers = UncountedArray<OptionalIndex<HandleKind.Slot>>()
    private var chains = UncountedArray<Chain>()
    /// Transports with a chain, in the order in which they got one.
    private var order = UncountedArray<TransportIndex>()

    /// Makes room for a slot; called on the control path, so that no packet allocates memory.
    mutating func insert(_ slot: SlotIndex, transport: TransportIndex) {
        while transports.count <= slot.offset {
            transports.append(transport)
            followers.append(.none)
        }
        transports[slot.offset] = transport
        while chains.count <= transport.offset { chains.append(Chain()) }
        order.reserve(chains.count)
    }

    /// Number of transports with a chain.
    var count: Int { order.count }

    /// Returns the first slot of the transport at `position`, or `nil` past the last.
    func first(at position: Int) -> SlotIndex? {
        position < order.count ? chains[order[position].offset].first.value : nil
    }

    /// Returns the next slot of the same transport, if there is one.
    func next(after slot: SlotIndex) -> SlotIndex? { followers[slot.offset].value }

    /// Returns a slot's transport without touching the slot.
    func transport(of slot: SlotIndex) -> TransportIndex { transports[slot.offset] }

    /// Adds a slot to its transport's chain.
    mutating func append(_ slot: SlotIndex) {
        let transport = transports[slot.offset]
        var chain = chains[transport.offset]
        if let last = chain.last.value {
            followers[last.offset] = OptionalIndex(slot)
        } else {
            chain.first = OptionalIndex(slot)
            order.append(transport)
        }
        chain.last = OptionalIndex(slot)
        followers[slot.offset] = .none
        chains[transport.offset] = chain
    }

    mutating func removeAll() {
        for position in 0..<order.count { chains[order[position].offset] = Chain() }
        order.removeAll()
    }
}
