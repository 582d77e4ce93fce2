package import SFU

/// Datagrams of a batch that leave in one call, by UDP generic segmentation offload (GSO).
///
/// They have one destination and one length; only the last may be shorter.
package struct SendRun: Equatable {
    package var start: Int
    package var count: Int
    /// Bytes of each datagram but the last.
    package var length: Int
    package var lastLength: Int

    package var end: Int { start + count }

    /// Keeps the first `count` datagrams.
    mutating func truncate(to count: Int, of batch: borrowing Batch) {
        precondition(count > 0 && count <= self.count)
        self.count = count
        lastLength = batch.length(at: end - 1)
    }

    /// Maximum number of datagrams of a run; the kernel would take 64.
    ///
    /// A run leaves a real interface at line rate, to one receiver, and with more than about ten
    /// packets some are lost on the way. Ten achieve most of the gain: frames of everyday bitrates
    /// have five to nine packets.
    package static let maximumCount = 10
    /// Maximum number of bytes of a run: the kernel takes 65,507 less the headers.
    package static let maximumBytes = 65_000
}

extension Batch {
    /// Returns the longest run from `start` on, of at most `limit` datagrams.
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
