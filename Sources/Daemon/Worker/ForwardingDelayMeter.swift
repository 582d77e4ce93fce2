import SFU
import Sockets
import WorkerInterface

/// Meter of the forwarding delay of media: from the kernel's receive timestamp to the return of the
/// calls that sent the first and the last copy of its batch.
///
/// It costs three clock reads a batch. Time in a send queue is not measured, as the queue has its
/// own metrics. Packets relayed from another worker are not measured either.
struct ForwardingDelayMeter {
    /// Arrival times of one batch's media packets, as wall-clock time.
    private struct Arrivals {
        private var stamps: [Int64] = []

        var first: Int64? { stamps.first }

        init() { stamps.reserveCapacity(Core.batchCapacity) }

        /// Adds a media packet's arrival; 0 means that it has no timestamp.
        mutating func note(_ unixNanoseconds: Int64) {
            guard unixNanoseconds != 0, stamps.count < Core.batchCapacity else { return }
            stamps.append(unixNanoseconds)
        }

        /// Ends the batch and records its delays, unless `stamp` shows that no media was sent.
        mutating func settle(
            _ stamp: SendStamp,
            _ first: inout ForwardingTimes,
            _ last: inout ForwardingTimes,
            wall: () -> Int64
        ) {
            guard !stamps.isEmpty else { return }
            if stamp.hasMedia {
                let end = wall()
                for arrival in stamps {
                    first.note(nanoseconds: stamp.first &- arrival)
                    last.note(nanoseconds: end &- arrival)
                }
            }
            stamps.removeAll(keepingCapacity: true)
        }
    }

    private var arrivals = Arrivals()
    /// Arrivals of packets that preempt the current batch; they do not count towards the lag.
    private var preempting = Arrivals()
    private(set) var first = ForwardingTimes()
    private(set) var last = ForwardingTimes()
    /// Smallest queuing delay of any batch's first packet since the last read, in nanoseconds.
    private var leastLag: Int64?

    mutating func noteArrival(_ unixNanoseconds: Int64) { arrivals.note(unixNanoseconds) }
    mutating func notePreempting(_ unixNanoseconds: Int64) { preempting.note(unixNanoseconds) }

    /// Notes that sending of the batch begins; its oldest packet has been queued until now.
    mutating func begin(wall: () -> Int64) {
        guard let first = arrivals.first else { return }
        let lag = max(0, wall() &- first)
        leastLag = min(leastLag ?? lag, lag)
    }

    mutating func settle(_ stamp: SendStamp, wall: () -> Int64) {
        arrivals.settle(stamp, &first, &last, wall: wall)
    }

    mutating func settlePreempting(_ stamp: SendStamp, wall: () -> Int64) {
        preempting.settle(stamp, &first, &last, wall: wall)
    }

    /// Returns the smallest queuing delay of all batches since the last call, in milliseconds;
    /// `nil` if there was no batch with media.
    mutating func takeLeastLag() -> Double? {
        defer { leastLag = nil }
        return leastLag.map { Double($0) / 1_000_000 }
    }
}
