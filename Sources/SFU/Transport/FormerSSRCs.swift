import RTP
import WorkerInterface

/// Memory of the SSRCs of m-lines that stopped sending, for when they resume.
///
/// A browser keeps its SSRCs while an m-line is `inactive`. It omits MID and RID from its packets
/// once it has learned that they arrived, so the receiver must remember what the SSRC stood for
/// (RFC 8843 §9.2: an entry of the table is replaced, not removed).
struct FormerSSRCs {
    private struct Entry {
        var ssrc: SSRC
        var mid: String
        var rid: String?
        var isRetransmission: Bool
    }

    /// Capacity: every encoding of eight m-lines, with RTX.
    static let limit = 8 * 2 * CoreLimits.encodingsPerPublication

    private var entries: [Entry] = []

    /// Remembers an SSRC in place of the previous one with the same role.
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

    /// Returns the last SSRC with this role.
    func ssrc(mid: String, rid: String?, isRetransmission: Bool) -> SSRC? {
        entries.last {
            $0.mid == mid && $0.rid == rid && $0.isRetransmission == isRetransmission
        }?.ssrc
    }
}
