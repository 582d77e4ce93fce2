/// Egress order of the batch under way: its slots, chained by transport.
///
/// Datagrams to one address become adjacent. A slot carries one publication, so it is in one chain
/// at most. The links lie apart from the slots: chaining a batch touches four bytes where a slot
/// has two cache lines.
struct EgressOrder: ~Copyable {
    /// First and last slot of a transport; -1 if it has none.
    struct Chain: BitwiseCopyable {
        var first: Int32 = -1
        var last: Int32 = -1
    }

    /// By slot: its transport, and the next slot in its chain.
    private var transports = UncountedArray<Int32>()
    private var followers = UncountedArray<Int32>()
    private var chains = UncountedArray<Chain>()
    /// Transports with a chain, in the order in which they got one.
    private var order = UncountedArray<Int32>()

    /// Makes room for a slot; called on the control path, so that no packet allocates memory.
    mutating func insert(_ slot: Int, transport: Int) {
        while transports.count <= slot {
            transports.append(-1)
            followers.append(-1)
        }
        transports[slot] = Int32(transport)
        while chains.count <= transport { chains.append(Chain()) }
        order.reserve(chains.count)
    }

    /// Number of transports with a chain.
    var count: Int { order.count }

    /// Returns the first slot of the transport at `position`, or -1 past the last.
    func first(at position: Int) -> Int32 {
        position < order.count ? chains[Int(order[position])].first : -1
    }

    /// Returns the next slot of the same transport, or -1.
    func next(after slot: Int32) -> Int32 { followers[Int(slot)] }

    /// Returns a slot's transport without touching the slot.
    func transport(of slot: Int32) -> Int { Int(transports[Int(slot)]) }

    /// Adds a slot to its transport's chain.
    mutating func append(_ slot: Int32) {
        let transport = transports[Int(slot)]
        var chain = chains[Int(transport)]
        if chain.first < 0 {
            chain.first = slot
            order.append(transport)
        } else {
            followers[Int(chain.last)] = slot
        }
        chain.last = slot
        followers[Int(slot)] = -1
        chains[Int(transport)] = chain
    }

    mutating func removeAll() {
        for position in 0..<order.count { chains[Int(order[position])] = Chain() }
        order.removeAll()
    }
}
