import CKernel
import Kernel
import LiveStream
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

// Live streams on the recorder thread: reports of their processes.
extension RecorderLoop {
    /// Reads the processes' reports, and writes queued frames to them.
    mutating func serveStreamers(at now: Instant) {
        for tap in streamers.keys.sorted() {
            let news = streamers[tap]?.takeStateChanges(at: now) ?? []
            for one in news { report(one, of: tap) }
            sayDropped(tap)
        }
        children.removeAll(where: kernel_child_ended)
    }

    private mutating func report(_ news: RoomStreamer.StateChange, of tap: OutputID) {
        switch news {
        case .started: events.post([.tap(.started(tap))])
        case .interrupted(let cause): events.post([.tap(.interrupted(tap, cause: cause))])
        case .resumed: events.post([.tap(.resumed(tap))])
        case .unconfined(let parts): sayUnconfined(tap, parts)
        case .ended(let reason):
            drop(streamer: tap)
            events.post([.tap(.ended(tap, reason: reason, []))])
            settled(tap)
        }
    }

    /// Removes a live stream and ends its processes.
    mutating func drop(streamer tap: OutputID) {
        guard var streamer = streamers.removeValue(forKey: tap) else { return }
        children += streamer.takeChildren()
        stopListening(tap)
    }

    /// Logs that the process lacks parts of its sandbox: the kernel is too old, or forbids them.
    private func sayUnconfined(_ tap: OutputID, _ parts: [String]) {
        guard let setup = streamers[tap]?.setup else { return }
        let fields = [
            ("room", setup.room), ("streaming", setup.name),
            ("missing", parts.joined(separator: ",")),
        ]
        self.setup.log.warning("streaming without the whole sandbox", fields)
    }

    /// Logs that the process is too slow, with the number of dropped frames; at most once a second.
    private mutating func sayDropped(_ tap: OutputID) {
        guard let dropped = streamers[tap]?.takeDropped(), let setup = streamers[tap]?.setup
        else { return }
        let fields = [
            ("room", setup.room), ("streaming", setup.name), ("frames", "\(dropped)"),
        ]
        self.setup.log.warning("streaming is too slow", cause: setup.name, fields)
    }
}
