import RTP
package import WorkerInterface

/// A batch that has been put aside, half let out.
struct BatchAside: ~Copyable {
    var isThere = false
    var queued = List<Int32>(capacity: Core.batchCapacity)
    var crowded = List<Int32>(capacity: Core.batchCapacity)
    var cursor = FlushCursor()
    var departures = Departures()
    var arrivalCount = 0
}

/// To let a picture out to hundreds takes milliseconds: who has few viewers need not wait for that.
///
/// Where `flush` has said that more is left, the batch may be put aside. What may overtake it is
/// then received and flushed as a batch of its own, and the first one is taken up where it was.
extension Core {
    /// Whether a datagram may go before the batch that has been put aside.
    ///
    /// Media may that is of a stream that is known already, of a publication that has few viewers
    /// and nothing in that batch. All else may, and has to: a crowd's reports and checks would keep
    /// what comes behind them from being looked at. None of it takes away what the batch goes to.
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

    /// Puts the batch under way aside; until `takeUp` nothing but what may overtake is received,
    /// nothing expires and no command is carried out.
    package mutating func putAside() {
        precondition(!aside.isThere, "one batch is put aside already")
        markAside(true)
        swapAside()
        aside.isThere = true
    }

    /// Takes the batch up again, when what has overtaken it is out.
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
