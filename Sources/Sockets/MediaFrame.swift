import RTP
import WorkerInterface

/// Frame of one stream on its way to one peer, worthless once a part of it is lost.
struct MediaFrame: Hashable, Sendable, BitwiseCopyable {
    var path: Path
    var ssrc: SSRC
    /// RTP timestamp of the frame.
    var timestamp: UInt32

    init(path: Path, ssrc: SSRC, timestamp: UInt32) {
        self.path = path
        self.ssrc = ssrc
        self.timestamp = timestamp
    }

    /// Reads the fields of the RTP header, which SRTP leaves in clear (RFC 3711 §3.1).
    init(_ packet: Span<UInt8>, to path: Path) {
        precondition(packet.count >= 12, "media has a header")
        self.init(
            path: path,
            ssrc: SSRC(rawValue: Self.word(packet, at: 8)),
            timestamp: Self.word(packet, at: 4)
        )
    }

    /// Hash of the frame, nearly always distinct.
    var tag: UInt32 {
        var mixed = path.remote.low ^ path.remote.high &* 3 ^ UInt64(path.remote.port) << 40
        mixed ^= UInt64(path.local) << 56 ^ UInt64(ssrc.rawValue) << 32 ^ UInt64(timestamp)
        mixed = (mixed ^ mixed >> 30) &* 0xbf58_476d_1ce4_e5b9
        return UInt32(truncatingIfNeeded: mixed >> 32)
    }

    private static func word(_ bytes: Span<UInt8>, at offset: Int) -> UInt32 {
        UInt32(bytes[offset]) << 24 | UInt32(bytes[offset + 1]) << 16
            | UInt32(bytes[offset + 2]) << 8 | UInt32(bytes[offset + 3])
    }
}

/// Recently damaged frames: the rest of them need not be sent.
///
/// It remembers a limited number for a limited time. Overwriting an entry only costs bandwidth. A
/// socket's table has room for more subscribers than lose a frame at once on a worker.
struct DamagedFrames {
    private struct Entry {
        var frame: MediaFrame
        var until: Instant
    }

    /// Number of entries, a power of two.
    private let capacity: Int
    private var entries: [Entry?] = []
    private var last: Instant?

    init(capacity: Int) {
        precondition(capacity.nonzeroBitCount == 1, "the capacity is a power of two")
        self.capacity = capacity
    }

    /// Remembers `frame` until `end`.
    mutating func insert(_ frame: MediaFrame, until end: Instant) {
        if entries.isEmpty { entries = Array(repeating: nil, count: capacity) }
        entries[place(of: frame)] = Entry(frame: frame, until: end)
        last = last.map { max($0, end) } ?? end
    }

    func contains(_ frame: MediaFrame, at now: Instant) -> Bool {
        guard let last, now < last, let entry = entries[place(of: frame)] else {
            return false
        }
        return entry.frame == frame && now < entry.until
    }

    /// Whether no frame is remembered.
    func isEmpty(at now: Instant) -> Bool { last.map { $0 <= now } ?? true }

    private func place(of frame: MediaFrame) -> Int { Int(frame.tag) & (capacity - 1) }
}
