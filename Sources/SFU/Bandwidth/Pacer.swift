package import RTP

/// Decides when how many bytes may leave to one viewer, and what goes first.
///
/// A leaky bucket: what leaves fills it, and it drains at the rate. Packets may leave while it
/// holds less than a burst, so a short run goes out in one call and a large frame in several, a
/// few milliseconds apart. It knows sizes, classes and the caller's indices, never packets, and
/// drops nothing. Under 200 bytes while nothing waits.
package struct Pacer: ~Copyable {
    /// What waits, the first first.
    package enum Class: Int, CaseIterable, Sendable {
        /// Leaves at once: it is small, and every millisecond is heard.
        case audio
        case retransmission, video, padding
    }

    /// A packet that waits, by the name that its owner gave it.
    package struct Item: Equatable, Sendable, BitwiseCopyable {
        package var index: UInt32
        package var bytes: Int32
        package var arrived: Instant
        package var probe: ProbeID?
    }

    /// Packets of one class that may wait.
    package static let maximumQueue = 2_048
    /// Nanoseconds that a packet should wait at most; the rate rises to keep it.
    package static let patience: Int64 = 30_000_000
    /// Nanoseconds of the rate that may leave at once, and at rates where these would be less than
    /// a few packets, longer.
    static let burst: Int64 = 5_000_000
    static let longBurst: Int64 = 20_000_000
    static let smallestBurst = 2_500
    static let runBurst = 12_500
    static let minimumRate = 30_000

    private var audio = PacerQueue()
    private var retransmissions = PacerQueue()
    private var video = PacerQueue()
    private var fillers = PacerQueue()
    /// Bits a second.
    private var rate: Int
    /// What the bucket holds, in bytes.
    private var debt = 0.0
    private var drained: Instant
    private var probe: Probe?
    private var probeSent = 0
    private var probePackets = 0

    package init(at now: Instant, bitsPerSecond: Int) {
        rate = max(bitsPerSecond, Self.minimumRate)
        drained = now
    }

    /// Sets the rate, in bits a second.
    package mutating func setRate(_ bitsPerSecond: Int, at now: Instant) {
        drain(at: now)
        rate = max(bitsPerSecond, Self.minimumRate)
    }

    package var waitingPackets: Int {
        audio.count &+ retransmissions.count &+ video.count &+ fillers.count
    }

    package var waitingBytes: Int {
        audio.bytes &+ retransmissions.bytes &+ video.bytes &+ fillers.bytes
    }

    package var isEmpty: Bool { waitingPackets == 0 }

    /// Bytes that may leave now; what leaves is told by `left`, or taken by `next`.
    ///
    /// The last packet may go beyond it.
    package mutating func budget(at now: Instant) -> Int {
        drain(at: now)
        return max(0, burstBytes &- Int(saturating: debt))
    }

    /// Notes bytes that left without having waited here.
    package mutating func left(bytes: Int, at now: Instant) {
        drain(at: now)
        fill(bytes)
    }

    /// Puts a packet into its class's queue.
    ///
    /// - Returns: Whether there was room; where not, the caller sends it at once or drops it.
    package mutating func enqueue(
        _ index: UInt32,
        bytes: Int,
        class kind: Class,
        at now: Instant
    ) -> Bool {
        let item = Item(index: index, bytes: Int32(clamping: bytes), arrived: now, probe: nil)
        switch kind {
        case .audio: return audio.append(item)
        case .retransmission: return retransmissions.append(item)
        case .video: return video.append(item)
        case .padding: return fillers.append(item)
        }
    }

    /// The next packet to send now, taken out of its queue; `nil` when it is time to wait.
    package mutating func next(at now: Instant) -> Item? {
        drain(at: now)
        if let item = audio.removeFirst() { return sent(item) }
        guard probe != nil || debt < Double(burstBytes) else { return nil }
        if let item = retransmissions.removeFirst() { return sent(item) }
        if let item = video.removeFirst() { return sent(item) }
        if let item = fillers.removeFirst() { return sent(item) }
        return nil
    }

    /// Takes out one of those that wait, whether it is time or not.
    package mutating func removeAny() -> Item? {
        audio.removeFirst() ?? retransmissions.removeFirst() ?? video.removeFirst()
            ?? fillers.removeFirst()
    }

    /// Sends what comes next at a probe's rate; a probe under way ends.
    package mutating func start(_ probe: Probe, at now: Instant) {
        drain(at: now)
        self.probe = probe
        probeSent = 0
        probePackets = 0
        // What media has left in the bucket must not delay a probe that measures the path.
        debt = 0
    }

    /// Ends a probe for which there are no packets.
    package mutating func cancelProbe() { probe = nil }

    /// Bytes of padding that the probe under way lacks now, as nothing else waits; 0 for none.
    ///
    /// The caller makes packets of `paddingPacket` bytes at most and tells them by `left`.
    package mutating func padding(at now: Instant) -> (bytes: Int, probe: ProbeID)? {
        drain(at: now)
        guard let probe, isEmpty else { return nil }
        let due = burstBytes &- Int(saturating: debt)
        return due > 0 ? (due, probe.id) : nil
    }

    /// The size of a probe's padding packets, IP and UDP headers counted.
    package var paddingPacket: Int {
        guard let probe else { return 0 }
        return min(max(probe.bytes / max(probe.minimumPackets, 1), 100), 1_200)
    }

    /// The probe that packets belong to which leave now.
    package var currentProbe: ProbeID? { probe?.id }

    /// When `next` or `padding` has something to give; `nil` while nothing waits.
    package func deadline(at now: Instant) -> Instant? {
        if !audio.isEmpty { return now }
        guard !isEmpty || probe != nil else { return nil }
        // At least half a burst at a time, so that packets still leave in runs.
        let allowed = probe == nil ? Double(burstBytes) / 2 : 0
        guard debt > allowed else { return now }
        let wait = (debt - allowed) * 8e9 / effectiveRate(at: now)
        return drained.advanced(nanoseconds: Int64(saturating: min(wait.rounded(.up), 1e15)))
    }

    private mutating func sent(_ item: Item) -> Item {
        var item = item
        item.probe = probe?.id
        fill(Int(item.bytes))
        return item
    }

    private mutating func fill(_ bytes: Int) {
        debt += Double(bytes)
        guard let running = probe else { return }
        probeSent &+= bytes
        probePackets &+= 1
        guard probeSent >= running.bytes, probePackets >= running.minimumPackets else { return }
        probe = nil
    }

    private mutating func drain(at now: Instant) {
        let elapsed = now.nanoseconds(since: drained)
        guard elapsed > 0 else { return }
        debt = max(0, debt - Double(elapsed) * effectiveRate(at: now) / 8e9)
        drained = now
    }

    /// The rate, raised where what waits would wait too long.
    private func effectiveRate(at now: Instant) -> Double {
        if let probe { return Double(probe.bitsPerSecond) }
        guard !isEmpty else { return Double(rate) }
        let oldest = video.first ?? retransmissions.first ?? fillers.first
        let waited = oldest.map { now.nanoseconds(since: $0.arrived) } ?? 0
        let left = max(Self.patience &- waited, 2_000_000)
        let needed = Double(waitingBytes) + debt - Double(burstBytes)
        return max(Double(rate), needed * 8e9 / Double(left))
    }

    /// What may leave at once, in bytes.
    private var burstBytes: Int {
        if let probe { return max(probe.bitsPerSecond / 8 * 2 / 1_000, 1) }
        let short = rate / 8 * Int(Self.burst / 1_000) / 1_000_000
        let long = rate / 8 * Int(Self.longBurst / 1_000) / 1_000_000
        return max(short, min(max(long, Self.smallestBurst), Self.runBurst))
    }
}
