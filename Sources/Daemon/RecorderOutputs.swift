import CKernel
import Kernel
import RTP
import RTPForward
import WorkerInterface

// Streams that go out as plain RTP, in the tap's thread.
extension RecorderLoop {
    /// Sends reports, takes what receivers ask for, and ends what cannot go on.
    mutating func tendOutputs(at now: Instant, tellsCounts: Bool) {
        guard !outputs.isEmpty else { return }
        let unixNanoseconds = kernel_unix_nanoseconds()
        for tap in outputs.keys.sorted() {
            ask(for: outputs[tap]?.expire(at: now, unixNanoseconds: unixNanoseconds) ?? [])
            if tellsCounts { tellCounts(of: tap) }
            guard let failure = outputs[tap]?.failure else { continue }
            drop(output: tap)
            events.post([.tap(.ended(tap, reason: failure, []))])
        }
    }

    private mutating func tellCounts(of tap: TapID) {
        guard let counts = outputs[tap]?.takeCounts() else { return }
        events.post([.tap(.sent(tap, counts))])
    }

    /// Forgets an output, after its receivers have been told.
    mutating func drop(output tap: TapID) {
        guard var output = outputs.removeValue(forKey: tap) else { return }
        output.end()
        stopListening(tap)
    }
}
