/// Numbering of a slot's retransmissions, which outlives the process.
struct SavedRepair: BitwiseCopyable {
    /// Last packet index of the RTX stream.
    private(set) var rtxIndex: Int64

    init(random: UInt64) { rtxIndex = Int64(random & 0x3fff) }

    /// Continues after the last index that an earlier process may have used.
    init(after rtxIndex: Int64) { self.rtxIndex = rtxIndex }

    /// Returns the next index, which is stored as used before the caller encrypts with it.
    mutating func next() -> Int64 {
        rtxIndex += 1
        return rtxIndex
    }
}
