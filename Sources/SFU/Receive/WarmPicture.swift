import RTP
import WorkerInterface

/// Picture that a new viewer can be sent at once: an encoding's last keyframe, and the packets of
/// its base layer that came since.
///
/// The encoding's history holds the packets beyond their retention. This value tells which those
/// are, and whether they form a picture: each packet since the keyframe has to have arrived.
struct WarmPicture: BitwiseCopyable {
    /// Packets kept; a frame takes one at least, and a numbering remembers 128 spans.
    static let packetLimit = 96
    /// Bytes of payload kept.
    static let byteLimit = 65_536
    /// Numbers from the keyframe on, those of padding and other layers included, beyond which
    /// nothing is sent to new viewers.
    static let rangeLimit = 1_024
    /// Age of a keyframe, in milliseconds, beyond which nothing is sent to new viewers.
    static let ageMilliseconds: Int64 = 15_000
    /// Time in milliseconds for which packets are kept that new viewers are not sent any more.
    ///
    /// Earlier ones may still request their retransmission. A gap is given up after the same time.
    static let farewellMilliseconds: Int64 = 1_500
    /// Layers that are kept: the lowest ones, of which every other layer can be reached.
    static let point = LayerPoint(spatial: 0, temporal: 0)

    /// Number of the keyframe's first packet, and its timestamp and arrival.
    let start: Int
    let timestamp: UInt32
    let startedAt: Instant
    /// Number after the newest packet counted.
    private(set) var end: Int
    /// Packets that arrived from `start` on, of all layers.
    private var arrived = 0
    /// Packets kept, and the bytes of their payloads.
    private(set) var packets = 0
    private(set) var bytes = 0
    private var incompleteSince: Instant?
    /// Time when a bound was reached, and the number from which on nothing is kept.
    private var endedAt: Instant?
    private var limit = Int.max

    init(from info: borrowing PacketInfo) {
        start = Int(truncatingIfNeeded: info.number)
        end = start
        timestamp = info.timestamp
        startedAt = info.arrival
    }

    /// Whether the packet with this number is kept beyond its retention.
    func keeps(_ info: borrowing PacketInfo, number: Int) -> Bool {
        guard number >= start, number < limit else { return false }
        return info.points.contains(Self.point)
    }

    /// Counts a packet that arrived; returns whether it is kept.
    mutating func count(_ info: borrowing PacketInfo, number: Int, at now: Instant) -> Bool {
        guard number >= start else { return false }
        arrived &+= 1
        end = max(end, number &+ 1)
        incompleteSince = arrived == end &- start ? nil : incompleteSince ?? now
        guard keeps(info, number: number) else { return false }
        let sum = bytes &+ Int(truncatingIfNeeded: info.payloadLength)
        guard packets < Self.packetLimit, sum <= Self.byteLimit else {
            endedAt = now
            limit = number
            return false
        }
        packets &+= 1
        bytes = sum
        return true
    }

    /// Counts packets that another worker has received, and that are not kept.
    mutating func leaveOut(_ count: Int) {
        arrived &+= count
        end &+= count
    }

    /// Whether new viewers may be sent it: it is complete and within its bounds.
    func isUsable(at now: Instant) -> Bool {
        endedAt == nil && incompleteSince == nil && end &- start <= Self.rangeLimit
            && now.milliseconds(since: startedAt) < Self.ageMilliseconds
    }

    /// Whether its packets are of no more use.
    func isOver(at now: Instant) -> Bool {
        let old = startedAt.advanced(milliseconds: Self.ageMilliseconds)
        let since = min(endedAt ?? old, incompleteSince ?? old)
        return now.milliseconds(since: since) >= Self.farewellMilliseconds
    }
}

extension Receiver {
    /// Whether a warm picture may begin with a keyframe of an encoding: no lower one is live, and
    /// the pool has room for it.
    func mayBeWarm(_ encoding: EncodingIndex, of publication: PublicationIndex) -> Bool {
        guard publications[publication].kind == .video,
            mayBeLowest(encoding, of: publication)
        else { return false }
        // Those that nobody watches are the first to go without.
        let most = publications[publication].hasViewers ? pool.warmLimit : pool.warmLimit / 2
        return pool.warmCount < most
    }

    /// Whether an encoding is the lowest one that is live, or not known well enough to tell.
    private func mayBeLowest(_ encoding: EncodingIndex, of publication: PublicationIndex) -> Bool {
        guard let lowest = lowestLive(of: publication), lowest != encoding else { return true }
        for index in 0..<publications[publication].options.count {
            let option = publications[publication].options[index]
            if option.target.encoding == encoding { return false }
        }
        return true
    }

    /// Returns the lowest encoding that is live.
    func lowestLive(of publication: PublicationIndex) -> EncodingIndex? {
        for index in 0..<publications[publication].options.count {
            let encoding = publications[publication].options[index].target.encoding
            if encodings[encoding].isLive { return encoding }
        }
        return nil
    }
}
