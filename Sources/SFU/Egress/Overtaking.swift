import RTP
package import WorkerInterface

/// Preempted batch, partly sent.
struct BatchAside: ~Copyable {
    var isThere = false
    var queued = List<Int32>(capacity: Core.batchCapacity)
    var crowded = List<Int32>(capacity: Core.batchCapacity)
    var cursor = FlushCursor()
    var departures = Departures()
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
        guard aside.isThere else { return false }
        guard case .rtp(let bytes) = Datagram(datagram) else { return true }
        let owner = paths[path]
        return owner < 0 || mayOvertake(bytes, from: Int(owner))
    }

    private func mayOvertake(_ bytes: Span<UInt8>, from transport: Int) -> Bool {
        guard bytes.count >= 12, transports[transport].srtp != nil,
            transports[transport].canSend,
            let stream = transports[transport].stream(of: SSRC(rawValue: bytes.u32(at: 8)))
        else { return false }
        let publication = Int(encodings[Int(stream.encoding)].publication)
        return !publications[publication].isAside && !publications[publication].hasManyViewers
    }

    /// Puts the batch under way aside.
    ///
    /// Until `takeUp`, only datagrams that may overtake are received, nothing expires and no
    /// command is carried out.
    package mutating func putAside() {
        precondition(!aside.isThere, "one batch is put aside already")
        markAside(true)
        swapAside()
        aside.isThere = true
    }

    /// Resumes the preempted batch, once the batch that overtook it is sent.
    package mutating func takeUp() {
        precondition(aside.isThere && queued.isEmpty, "what overtakes is let out first")
        aside.isThere = false
        swapAside()
        markAside(false)
    }

    private mutating func markAside(_ isAside: Bool) {
        for position in 0..<queued.count { publications[Int(queued[position])].isAside = isAside }
        for position in 0..<crowded.count { publications[Int(crowded[position])].isAside = isAside }
    }

    private mutating func swapAside() {
        swap(&queued, &aside.queued)
        swap(&crowded, &aside.crowded)
        swap(&cursor, &aside.cursor)
        swap(&departures, &aside.departures)
        swap(&arrivalCount, &aside.arrivalCount)
    }
}
