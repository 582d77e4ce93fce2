internal import RTP

/// A batch that has been put aside, half let out.
struct BatchAside: ~Copyable {
    var isThere = false
    var queued = List<Int32>(capacity: 64)
    var cursor = FlushCursor()
    var departures = Departures()
    var arrivalCount = 0
}

/// To let a picture out to hundreds takes milliseconds: who has few viewers need not wait for that.
///
/// Where `flush` has said that more is left, the batch may be put aside. What may overtake it is
/// then received and flushed as a batch of its own, and the first one is taken up where it was.
extension Core {
    /// Viewers of who may overtake, at most.
    package static let fewViewers = 16

    /// Whether a datagram may go before the batch that has been put aside.
    ///
    /// That is media of a stream that is known already, of a publication that has few viewers and
    /// nothing in that batch. What could end or move anything has to wait: the batch would find
    /// somebody else where it goes on.
    package func mayOvertake(_ datagram: Span<UInt8>, on path: Path) -> Bool {
        guard aside.isThere, case .rtp(let bytes) = Datagram(datagram), bytes.count >= 12 else {
            return false
        }
        let owner = paths[path]
        guard owner >= 0, transports[Int(owner)].srtp != nil, transports[Int(owner)].canSend,
            let stream = transports[Int(owner)].stream(of: SSRC(rawValue: bytes.u32(at: 8)))
        else { return false }
        let publication = Int(encodings[Int(stream.encoding)].publication)
        return !publications[publication].isAside
            && publications[publication].subscribers.count <= Self.fewViewers
    }

    /// Puts the batch under way aside; until `takeUp` nothing but what may overtake is received,
    /// nothing expires and no command is carried out.
    package mutating func putAside() {
        precondition(!aside.isThere, "one batch is put aside already")
        for position in 0..<queued.count { publications[Int(queued[position])].isAside = true }
        swapAside()
        aside.isThere = true
    }

    /// Takes the batch up again, when what has overtaken it is out.
    package mutating func takeUp() {
        precondition(aside.isThere && queued.isEmpty, "what overtakes is let out first")
        aside.isThere = false
        swapAside()
        for position in 0..<queued.count { publications[Int(queued[position])].isAside = false }
    }

    private mutating func swapAside() {
        swap(&queued, &aside.queued)
        swap(&cursor, &aside.cursor)
        swap(&departures, &aside.departures)
        swap(&arrivalCount, &aside.arrivalCount)
    }
}
