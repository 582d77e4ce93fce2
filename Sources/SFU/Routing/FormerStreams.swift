import RTP

/// SSRCs of m-lines that no longer send, for when they send again.
///
/// A browser keeps its SSRCs over an m-line's time as `inactive`, and names MID and RID in its
/// packets no more once it has heard that they arrived. Who knew the SSRC has to remember what it
/// was (RFC 8843 §9.2: an entry of the table is replaced, not forgotten).
struct FormerStreams {
    private struct Entry {
        var ssrc: SSRC
        var mid: String
        var rid: String?
        var isRetransmission: Bool
    }

    /// Enough for every encoding of eight m-lines with its retransmissions.
    static let limit = 8 * 2 * Publication.maximumEncodings

    private var entries: [Entry] = []

    /// Remembers an SSRC in place of the one that had its part before.
    mutating func keep(_ ssrc: SSRC, mid: String, rid: String?, isRetransmission: Bool) {
        entries.removeAll {
            $0.ssrc == ssrc
                || $0.mid == mid && $0.rid == rid && $0.isRetransmission == isRetransmission
        }
        if entries.count == Self.limit { entries.removeFirst() }
        entries.append(
            Entry(ssrc: ssrc, mid: mid, rid: rid, isRetransmission: isRetransmission)
        )
    }

    /// The SSRC that had this part last.
    func ssrc(mid: String, rid: String?, isRetransmission: Bool) -> SSRC? {
        entries.last {
            $0.mid == mid && $0.rid == rid && $0.isRetransmission == isRetransmission
        }?.ssrc
    }
}
