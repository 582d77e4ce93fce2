import RTP
import WorkerInterface

/// Preempted batch, partly sent.
struct PreemptedBatch: ~Copyable {
    var isActive = false
    var queued = UncountedArray<PublicationIndex>(capacity: Receiver.batchCapacity)
    var largeAudiences = UncountedArray<PublicationIndex>(capacity: Receiver.batchCapacity)
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
extension Forwarder {
    /// Whether a datagram may be handled before the preempted batch.
    ///
    /// RTP of a known address may if its stream is known, and its publication has few subscribers
    /// and nothing in that batch. All else may, and has to: RTCP and connectivity checks of a large
    /// audience would otherwise block the datagrams behind them. None of these removes anything
    /// that the preempted batch is sent to.
    func mayOvertake(
        _ datagram: Span<UInt8>,
        on path: Path,
        _ transports: borrowing Transports,
        _ receiver: borrowing Receiver
    ) -> Bool {
        guard aside.isActive else { return false }
        guard case .rtp(let bytes) = Datagram(datagram) else { return true }
        guard let owner = transports.paths[path] else { return true }
        return mayOvertake(bytes, from: owner, transports, receiver)
    }

    private func mayOvertake(
        _ bytes: Span<UInt8>,
        from transport: TransportIndex,
        _ transports: borrowing Transports,
        _ receiver: borrowing Receiver
    ) -> Bool {
        guard bytes.count >= 12, transports[transport].srtp != nil,
            transports[transport].canSend,
            let stream = transports[transport].stream(of: SSRC(rawValue: bytes.u32(at: 8)))
        else { return false }
        let publication = receiver.encodings[stream.encoding].publication
        return !receiver.publications[publication].isPreempted
            && !receiver.publications[publication].hasLargeAudience
    }

    /// Puts the batch under way aside.
    ///
    /// Until `resumePreempted`, only datagrams that may overtake are received, nothing expires and
    /// no command is carried out.
    mutating func preempt(_ receiver: inout Receiver) {
        precondition(!aside.isActive, "one batch is put aside already")
        markPreempted(true, &receiver)
        swapPreempted(&receiver)
        aside.isActive = true
    }

    /// Resumes the preempted batch, once the batch that overtook it is sent.
    mutating func resumePreempted(_ receiver: inout Receiver) {
        precondition(aside.isActive && receiver.queued.isEmpty, "what overtakes is let out first")
        aside.isActive = false
        swapPreempted(&receiver)
        markPreempted(false, &receiver)
    }

    private mutating func markPreempted(_ isPreempted: Bool, _ receiver: inout Receiver) {
        for position in 0..<receiver.queued.count {
            receiver.publications[receiver.queued[position]].isPreempted = isPreempted
        }
        for position in 0..<largeAudiences.count {
            receiver.publications[largeAudiences[position]].isPreempted = isPreempted
        }
    }

    private mutating func swapPreempted(_ receiver: inout Receiver) {
        swap(&receiver.queued, &aside.queued)
        swap(&largeAudiences, &aside.largeAudiences)
        swap(&cursor, &aside.cursor)
        swap(&egressOrder, &aside.egressOrder)
        swap(&receiver.arrivalCount, &aside.arrivalCount)
    }
}
