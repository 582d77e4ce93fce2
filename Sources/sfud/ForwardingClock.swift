import SFU
import Sockets

/// Measures how long media is in the daemon: from the kernel's stamp at its arrival to the return
/// of the calls that sent the first and the last copy of its batch.
///
/// It costs two readings of the clock a batch. What waits in a send queue is not measured; the
/// queue's own figures tell of it. Nor is what another worker hands on.
struct ForwardingClock {
    /// Of the media of the batch under way, by the wall clock.
    private var arrivals: [Int64] = []
    /// Of what overtakes it.
    private var overtaking: [Int64] = []
    private(set) var first = ForwardingTimes()
    private(set) var last = ForwardingTimes()
    /// The least of all batches since it was last asked for: how long the first of each waited.
    private var leastLag: Int64?

    init() {
        arrivals.reserveCapacity(Core.batchCapacity)
        overtaking.reserveCapacity(Core.batchCapacity)
    }

    /// Notes a media packet, which the next `settle` counts; 0 is no stamp.
    mutating func noteArrival(_ unixNanoseconds: Int64) {
        guard unixNanoseconds != 0, arrivals.count < Core.batchCapacity else { return }
        arrivals.append(unixNanoseconds)
    }

    /// Begins to let the batch out: what waited for that stood in a queue.
    mutating func begin() {
        guard let first = arrivals.first else { return }
        let lag = max(0, wallClock() &- first)
        leastLag = min(leastLag ?? lag, lag)
    }

    /// Ends the batch; nobody was sent anything of it where `stamp` knows of no media.
    mutating func settle(_ stamp: SendStamp) {
        guard !arrivals.isEmpty else { return }
        if stamp.hasMedia {
            let end = wallClock()
            for arrival in arrivals {
                first.note(nanoseconds: stamp.first &- arrival)
                last.note(nanoseconds: end &- arrival)
            }
        }
        arrivals.removeAll(keepingCapacity: true)
    }

    /// As `noteArrival`, of what `settleOvertaking` counts.
    mutating func noteOvertaking(_ unixNanoseconds: Int64) {
        guard unixNanoseconds != 0, overtaking.count < Core.batchCapacity else { return }
        overtaking.append(unixNanoseconds)
    }

    /// Ends what has overtaken a batch; it tells nothing of how long others wait.
    mutating func settleOvertaking(_ stamp: SendStamp) {
        if stamp.hasMedia {
            let end = wallClock()
            for arrival in overtaking {
                first.note(nanoseconds: stamp.first &- arrival)
                last.note(nanoseconds: end &- arrival)
            }
        }
        overtaking.removeAll(keepingCapacity: true)
    }

    /// How long every batch since the last call has waited at least, in milliseconds; `nil`: there
    /// was none with media.
    mutating func takeLeastLag() -> Double? {
        defer { leastLag = nil }
        return leastLag.map { Double($0) / 1_000_000 }
    }
}
