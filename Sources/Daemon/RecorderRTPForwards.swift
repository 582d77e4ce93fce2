import CKernel
import Kernel
import RTP
import RTPForward
import WorkerInterface

// RTP forwards in the tap thread.
extension RecorderLoop {
    /// Runs the RTP forwards' timers: sends reports, handles receivers' feedback and ends failed
    /// ones.
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

    private mutating func tellCounts(of tap: OutputID) {
        guard let counts = outputs[tap]?.takeCounts() else { return }
        events.post([.tap(.sent(tap, counts))])
    }

    /// Removes an RTP forward after telling its receivers with an RTCP BYE.
    mutating func drop(output tap: OutputID) {
        guard var output = outputs.removeValue(forKey: tap) else { return }
        output.end()
        stopListening(tap)
    }
}
