import WorkerInterface

/// Map from a path to its transport: an open-addressed table with linear probing.
///
/// It contains validated paths only, so its size follows the transports, not the senders. The seed
/// keeps an attacker from choosing colliding addresses.
@safe
struct PathTable: ~Copyable {
    private struct Entry: BitwiseCopyable {
        var path: Path
        /// Transport; none marks an empty place.
        var transport: OptionalIndex<HandleKind.Transport>
    }

    private var entries: UnsafeMutablePointer<Entry>
    private var mask: Int
    private let seed: UInt64
    private(set) var count = 0

    private static let empty = Entry(
        path: Path(remote: Address(high: 0, low: 0, port: 0), local: 0),
        transport: .none
    )

    init(seed: UInt64) {
        self.seed = seed
        mask = 63
        unsafe entries = .allocate(capacity: 64)
        unsafe entries.initialize(repeating: Self.empty, count: 64)
    }

    deinit { unsafe entries.deallocate() }

    /// Transport of `path`, if a transport holds it.
    subscript(path: Path) -> TransportIndex? {
        var index = hash(path) & mask
        while let transport = unsafe entries[index].transport.value {
            if unsafe entries[index].path.isSame(as: path) { return transport }
            index = (index + 1) & mask
        }
        return nil
    }

    /// Assigns `path` to a transport.
    mutating func insert(_ path: Path, transport: TransportIndex) {
        if (count + 1) * 2 > mask { grow() }
        place(Entry(path: path, transport: OptionalIndex(transport)))
    }

    /// Removes `path`, if it belongs to that transport.
    mutating func remove(_ path: Path, transport: TransportIndex) {
        var index = hash(path) & mask
        while unsafe entries[index].path != path || entries[index].transport == .none {
            guard unsafe entries[index].transport != .none else { return }
            index = (index + 1) & mask
        }
        guard unsafe entries[index].transport.value == transport else { return }
        count -= 1
        closeGap(at: index)
    }

    /// Moves later entries back, so that no probe ends too early.
    private mutating func closeGap(at gap: Int) {
        var gap = gap
        var index = (gap + 1) & mask
        while unsafe entries[index].transport != .none {
            let home = hash(unsafe entries[index].path) & mask
            if (index - home) & mask >= (index - gap) & mask {
                unsafe entries[gap] = entries[index]
                gap = index
            }
            index = (index + 1) & mask
        }
        unsafe entries[gap] = Self.empty
    }

    private mutating func place(_ entry: Entry) {
        var index = hash(entry.path) & mask
        while unsafe entries[index].transport != .none {
            if unsafe entries[index].path == entry.path {
                unsafe entries[index] = entry
                return
            }
            index = (index + 1) & mask
        }
        unsafe entries[index] = entry
        count += 1
    }

    private mutating func grow() {
        let old = unsafe entries
        let oldCount = mask + 1
        mask = oldCount * 2 - 1
        unsafe entries = .allocate(capacity: oldCount * 2)
        unsafe entries.initialize(repeating: Self.empty, count: oldCount * 2)
        count = 0
        for index in 0..<oldCount where unsafe old[index].transport != .none {
            place(unsafe old[index])
        }
        unsafe old.deallocate()
    }

    private func hash(_ path: Path) -> Int {
        var value = path.remote.high ^ seed
        value = (value ^ value >> 32) &* 0x9e37_79b9_7f4a_7c15
        value ^= path.remote.low
        value = (value ^ value >> 29) &* 0xbf58_476d_1ce4_e5b9
        value ^= UInt64(path.remote.port) << 16 | UInt64(path.local)
        value = (value ^ value >> 32) &* 0x94d0_49bb_1331_11eb
        return Int(truncatingIfNeeded: value >> 20)
    }
}
