import CKernel
package import SFU

/// Datagrams of a batch that can leave in one call: UDP generic segmentation offload.
///
/// They go to one destination and have one length, only the last may be shorter.
package struct SendRun: Equatable {
    package var start: Int
    package var count: Int
    /// Bytes of each datagram but the last.
    package var length: Int
    package var lastLength: Int

    package var end: Int { start + count }

    /// The kernel takes 64 segments, and 65,507 bytes less what its headers want.
    package static let maximumCount = Int(KERNEL_SEGMENTS)
    package static let maximumBytes = 65_000
}

extension Batch {
    /// The longest run from `start` on, of at most `limit` datagrams.
    package func run(from start: Int, limit: Int = SendRun.maximumCount) -> SendRun {
        let length = length(at: start)
        let path = path(at: start)
        var run = SendRun(start: start, count: 1, length: length, lastLength: length)
        var bytes = length
        while run.end < count, run.count < limit, run.lastLength == length {
            let next = self.length(at: run.end)
            bytes += next
            guard next <= length, bytes <= SendRun.maximumBytes, self.path(at: run.end) == path
            else { break }
            run.lastLength = next
            run.count += 1
        }
        return run
    }
}
