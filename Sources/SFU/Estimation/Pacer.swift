package import RTP

/// Leaky-bucket pacer of the packets to one subscriber, with one queue for each class.
///
/// Sent packets fill the bucket, and it drains at the pacing rate. Packets may leave while it holds
/// less than a burst: a short run leaves in one call, and a large frame in several, a few
/// milliseconds apart. The pacer handles sizes, classes and the caller's indices rather than
/// packets, and drops nothing. It takes under 200 bytes while its queues are empty.
package struct Pacer: ~Copyable {
    /// Classes of queued packets, in order of precedence.
    package enum Class: Int, CaseIterable, Sendable {
        /// Audio, never delayed, as it is small and delay is audible.
        case audio
        case retransmission, video, padding
    }

    /// Queued packet, identified by the caller's index.
    package struct Item: Equatable, Sendable, BitwiseCopyable {
        package var index: UInt32
        package var bytes: Int32
        package var arrived: Instant
        package var probe: ProbeID?
    }

    /// Capacity of one class's queue, in packets.
    package static let maximumQueue = 2_048
    /// Usual longest queuing time in nanoseconds.
    package static let patience: Int64 = 30_000_000
    /// Burst size, as nanoseconds of the pacing rate.
    ///
    /// At low rates, where that is less than a few packets, the longer one applies, within
    /// `smallestBurst` and `runBurst` bytes.
    static let burst: Int64 = 5_000_000
    static let longBurst: Int64 = 20_000_000
    static let smallestBurst = 2_500
    static let runBurst = 12_500
    static let minimumRate = 30_000

    /// Longest intended queuing time in nanoseconds; the pacing rate rises to keep to it.
    private let patience: Int64
    private var audio = PacerQueue()
    private var retransmissions = PacerQueue()
    private var video = PacerQueue()
    private var fillers = PacerQueue()
    /// Pacing rate in bits a second.
    private var rate: Int
    /// Level of the bucket, in bytes.
    private var debt = 0.0
    private var drained: Instant
    private var probe: Probe?
    private var probeSent = 0
    private var probePackets = 0

    package init(at now: Instant, bitsPerSecond: Int, patience: Int64 = patience) {
        self.patience = patience
        rate = max(bitsPerSecond, Self.minimumRate)
        drained = now
    }

    /// Sets the pacing rate, in bits a second.
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

    /// Time at which the oldest video packet was queued; `nil` if none waits.
    package var waitingSince: Instant? { video.first?.arrived }

    /// Returns the bytes that may leave now; the last packet may exceed it.
    ///
    /// Sent bytes are then noted by `left`, or by `next`.
    package mutating func budget(at now: Instant) -> Int {
        drain(at: now)
        return max(0, burstBytes &- Int(saturating: debt))
    }

    /// Notes bytes that were sent without having been queued here.
    package mutating func left(bytes: Int, at now: Instant) {
        drain(at: now)
        fill(bytes)
    }

    /// Appends a packet to its class's queue.
    ///
    /// - Returns: Whether there was room; if not, the caller sends it at once or drops it.
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

    /// Removes and returns the next packet to send now; `nil` if none may leave.
    package mutating func next(at now: Instant) -> Item? {
        drain(at: now)
        if let item = audio.removeFirst() { return sent(item) }
        guard probe != nil || debt < Double(burstBytes) else { return nil }
        if let item = retransmissions.removeFirst() { return sent(item) }
        if let item = video.removeFirst() { return sent(item) }
        if let item = fillers.removeFirst() { return sent(item) }
        return nil
    }

    /// Removes and returns the next queued packet even if it is not due.
    package mutating func removeAny() -> Item? {
        audio.removeFirst() ?? retransmissions.removeFirst() ?? video.removeFirst()
            ?? fillers.removeFirst()
    }

    /// Starts a probe: the next packets leave at its rate; a probe in progress ends.
    package mutating func start(_ probe: Probe, at now: Instant) {
        drain(at: now)
        self.probe = probe
        probeSent = 0
        probePackets = 0
        // The bucket's level must not delay a probe that measures the path.
        debt = 0
    }

    /// Ends the current probe, for which there are no packets.
    package mutating func cancelProbe() { probe = nil }

    /// Returns the padding that the current probe needs now; `nil` if there is no need.
    ///
    /// The caller sends packets of at most `paddingPacket` bytes and notes them by `left`.
    package mutating func padding(at now: Instant) -> (bytes: Int, probe: ProbeID)? {
        drain(at: now)
        guard let probe, isEmpty else { return nil }
        let due = burstBytes &- Int(saturating: debt)
        return due > 0 ? (due, probe.id) : nil
    }

    /// Size of a probe's padding packets in bytes, IP and UDP headers counted.
    package var paddingPacket: Int {
        guard let probe else { return 0 }
        return min(max(probe.bytes / max(probe.minimumPackets, 1), 100), 1_200)
    }

    /// Probe to which packets sent now belong.
    package var currentProbe: ProbeID? { probe?.id }

    /// Returns the time at which `next` or `padding` has something to send; `nil` if nothing is
    /// queued.
    package func deadline(at now: Instant) -> Instant? {
        if !audio.isEmpty { return now }
        guard !isEmpty || probe != nil else { return nil }
        // Half a burst at a time keeps packets together in runs.
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

    /// Returns the pacing rate, raised if queued packets would exceed their queuing time.
    private func effectiveRate(at now: Instant) -> Double {
        if let probe { return Double(probe.bitsPerSecond) }
        guard !isEmpty else { return Double(rate) }
        let oldest = video.first ?? retransmissions.first ?? fillers.first
        let waited = oldest.map { now.nanoseconds(since: $0.arrived) } ?? 0
        let left = max(patience &- waited, 2_000_000)
        let needed = Double(waitingBytes) + debt - Double(burstBytes)
        return max(Double(rate), needed * 8e9 / Double(left))
    }

    /// Burst size in bytes.
    private var burstBytes: Int {
        if let probe { return max(probe.bitsPerSecond / 8 * 2 / 1_000, 1) }
        let short = rate / 8 * Int(Self.burst / 1_000) / 1_000_000
        let long = rate / 8 * Int(Self.longBurst / 1_000) / 1_000_000
        return max(short, min(max(long, Self.smallestBurst), Self.runBurst))
    }
}
