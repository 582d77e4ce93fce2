package import SFU

/// Memory of a simulated process's worker, which outlives the process.
@safe
package final class SavedRegion {
    package let bytes: UnsafeMutableRawBufferPointer
    /// Elements that the arrays in it have room for.
    private let transports: Int
    private let slots: Int

    /// Makes zeroed memory.
    package init(transports: Int, slots: Int) {
        (self.transports, self.slots) = (transports, slots)
        unsafe bytes = .allocate(
            byteCount: SavedMemory.byteCount(transports: transports, slots: slots),
            alignment: 64
        )
        _ = unsafe bytes.initializeMemory(as: UInt8.self, repeating: 0)
    }

    /// Copies memory as it is now, as a process leaves it when it is killed.
    package init(copying other: SavedRegion) {
        (transports, slots) = (other.transports, other.slots)
        unsafe bytes = .allocate(byteCount: other.bytes.count, alignment: 64)
        unsafe bytes.copyMemory(from: UnsafeRawBufferPointer(other.bytes))
    }

    deinit { unsafe bytes.deallocate() }

    package var start: UnsafeMutableRawPointer {
        guard let start = unsafe bytes.baseAddress else { preconditionFailure("no memory") }
        return unsafe start
    }

    /// Prepares the memory for a new worker.
    package func makeMemory() -> SavedMemory {
        unsafe SavedMemory(bytes, transports: transports, slots: slots)
    }

    /// State that the worker has left, for the next one.
    package var state: SavedState? {
        unsafe SavedState(UnsafeRawBufferPointer(bytes), owner: self)
    }
}
