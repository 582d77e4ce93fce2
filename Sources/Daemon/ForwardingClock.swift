import Kernel
import SFU
import Sockets
import WorkerInterface

/// Measures how long media is in the daemon: from the kernel's stamp at its arrival to the return
/// of the calls that sent the first and the last copy of its batch.
///
/// It costs three readings of the clock a batch. What waits in a send queue is not measured; the
/// queue's own figures tell of it. Nor is what another worker hands on.
struct ForwardingClock {
    /// When the media of one batch came, by the wall clock.
    private struct Arrivals {
        private var stamps: [Int64] = []

        var first: Int64? { stamps.first }

        init() { stamps.reserveCapacity(Core.batchCapacity) }

        /// Notes a media packet; 0 is no stamp.
        mutating func note(_ unixNanoseconds: Int64) {
            guard unixNanoseconds != 0, stamps.count < Core.batchCapacity else { return }
            stamps.append(unixNanoseconds)
        }

        /// Ends the batch; nobody was sent anything of it where `stamp` knows of no media.
        mutating func settle(
            _ stamp: SendStamp,
            _ first: inout ForwardingTimes,
            _ last: inout ForwardingTimes
        ) {
            guard !stamps.isEmpty else { return }
            if stamp.hasMedia {
                let end = wallClock()
                for arrival in stamps {
                    first.note(nanoseconds: stamp.first &- arrival)
                    last.note(nanoseconds: end &- arrival)
                }
            }
            stamps.removeAll(keepingCapacity: true)
        }
    }

    private var arrivals = Arrivals()
    /// Of what overtakes the batch under way; it tells nothing of how long others wait.
    private var overtaking = Arrivals()
    private(set) var first = ForwardingTimes()
    private(set) var last = ForwardingTimes()
    /// The least of all batches since it was last asked for: how long the first of each waited.
    private var leastLag: Int64?

    mutating func noteArrival(_ unixNanoseconds: Int64) { arrivals.note(unixNanoseconds) }
    mutating func noteOvertaking(_ unixNanoseconds: Int64) { overtaking.note(unixNanoseconds) }

    /// Begins to let the batch out: what waited for that stood in a queue.
    mutating func begin() {
        guard let first = arrivals.first else { return }
        let lag = max(0, wallClock() &- first)
        leastLag = min(leastLag ?? lag, lag)
    }

    mutating func settle(_ stamp: SendStamp) { arrivals.settle(stamp, &first, &last) }
    mutating func settleOvertaking(_ stamp: SendStamp) { overtaking.settle(stamp, &first, &last) }

    /// How long every batch since the last call has waited at least, in milliseconds; `nil`: there
    /// was none with media.
    mutating func takeLeastLag() -> Double? {
        defer { leastLag = nil }
        return leastLag.map { Double($0) / 1_000_000 }
    }
}
