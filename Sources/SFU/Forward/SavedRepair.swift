import RTP
import WorkerInterface

/// Numbering of a slot's retransmissions, and what it carries: both outlive the process.
struct SavedRepair: BitwiseCopyable {
    /// Last packet index of the RTX stream.
    private(set) var rtxIndex: Int64
    var flow = SavedFlow()

    init(random: UInt64) { rtxIndex = Int64(random & 0x3fff) }

    /// Continues after the last index that an earlier process may have used.
    init(after rtxIndex: Int64) { self.rtxIndex = rtxIndex }

    /// Returns the next index, which is stored as used before the caller encrypts with it.
    mutating func next() -> Int64 {
        rtxIndex += 1
        return rtxIndex
    }
}

/// Encoding that a slot carries, by names that mean the same in the next process.
struct SavedFlow: BitwiseCopyable {
    /// Handle of the publication, and the encoding's position in it.
    var publication: UInt32 = 0
    var generation: UInt32 = 0
    /// Encoding and epoch in this process: the slot's span is of the same, or is another one.
    var encoding = OptionalIndex<HandleKind.Encoding>()
    var epoch: UInt32 = 0
    /// Epoch at the publication's home, if that is another worker.
    var homeEpoch: UInt32 = 0
    var position: UInt8 = 0
}
