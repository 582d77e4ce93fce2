import RTP
package import WorkerInterface

/// Preempted batch, partly sent.
struct PreemptedBatch: ~Copyable {
    var isActive = false
    var queued = UncountedArray<Int32>(capacity: Core.batchCapacity)
    var largeAudiences = UncountedArray<Int32>(capacity: Core.batchCapacity)
    var cursor = FlushCursor()
    var egressOrder = EgressOrder()
    var arrivalCount = 0
}

/// Preemption of a batch with a large audience.
///
/// Sending a picture to hundreds of subscribers takes milliseconds, and small audiences should not
/// wait for that. When `flush` reports that more is left, the batch may be put aside. Datagrams
/// that may overtake it are then received and flushed as a batch of their own, and the first batch
/// resumes.
extension Core {
    /// Whether a datagram may be handled before the preempted batch.
    ///
    /// RTP of a known address may if its stream is known, and its publication has few subscribers
    /// and nothing in that batch. All else may, and has to: RTCP and connectivity checks of a large
    /// audience would otherwise block the datagrams behind them. None of these removes anything
    /// that the preempted batch is sent to.
    package func mayOvertake(_ datagram: Span<UInt8>, on path: Path) -> Bool {
        guard aside.isActive else { return false }
        guard case .rtp(let bytes) = Datagram(datagram) else { return true }
        let owner = transports.paths[path]
        return owner < 0 || mayOvertake(bytes, from: Int(owner))
    }

    private func mayOvertake(_ bytes: Span<UInt8>, from transport: Int) -> Bool {
        guard bytes.count >= 12, transports[transport].srtp != nil,
            transports[transport].canSend,
            let stream = transports[transport].stream(of: SSRC(rawValue: bytes.u32(at: 8)))
        else { return false }
        let publication = Int(encodings[Int(stream.encoding)].publication)
        return !publications[publication].isPreempted && !publications[publication].hasLargeAudience
    }

    /// Puts the batch under way aside.
    ///
    /// Until `resumePreempted`, only datagrams that may overtake are received, nothing expires and
    /// no command is carried out.
    package mutating func preempt() {
        precondition(!aside.isActive, "one batch is put aside already")
        markPreempted(true)
        swapPreempted()
        aside.isActive = true
    }

    /// Resumes the preempted batch, once the batch that overtook it is sent.
    package mutating func resumePreempted() {
        precondition(aside.isActive && queued.isEmpty, "what overtakes is let out first")
        aside.isActive = false
        swapPreempted()
        markPreempted(false)
    }

    private mutating func markPreempted(_ isPreempted: Bool) {
        for position in 0..<queued.count {
            publications[Int(queued[position])].isPreempted = isPreempted
        }
        for position in 0..<largeAudiences.count {
            publications[Int(largeAudiences[position])].isPreempted = isPreempted
        }
    }

    private mutating func swapPreempted() {
        swap(&queued, &aside.queued)
        swap(&largeAudiences, &aside.largeAudiences)
        swap(&cursor, &aside.cursor)
        swap(&egressOrder, &aside.egressOrder)
        swap(&arrivalCount, &aside.arrivalCount)
    }
}
