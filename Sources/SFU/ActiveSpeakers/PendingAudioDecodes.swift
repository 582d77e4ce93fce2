import RTP
import WorkerInterface

/// Queue of audio payloads without an audio level extension, to be measured by decoding.
///
/// Decoding waits until the batch has been forwarded, and is limited by a budget.
struct PendingAudioDecodes: ~Copyable {
    struct Packet: BitwiseCopyable {
        var publication: PublicationID
        var start: Int32
        var length: Int32
        var milliseconds: Int32
        var arrival: Instant
    }

    /// Packets queued; further ones of a batch are not measured.
    static let capacity = 64
    /// Decodes per second and worker, enough for forty people who talk at once.
    static let decodesPerSecond: Int64 = 2_000
    /// Decoders per worker.
    static let decoders = 64
    /// Decodes in one burst.
    private static let burst: Int64 = 200

    private(set) var packets = UncountedArray<Packet>(capacity: 1)
    private(set) var payloads = UncountedArray<UInt8>(capacity: 1)
    /// Remaining budget, in millionths of a decode.
    private var credit = burst * 1_000_000
    private var refilled = Instant(nanoseconds: 0)

    var isFull: Bool { packets.count >= Self.capacity }
    /// Decodes that the budget allows now.
    var allowed: Int64 { credit / 1_000_000 }

    /// Queues a copy of a payload; memory is allocated with the first one.
    mutating func append(
        _ payload: Span<UInt8>,
        of publication: PublicationID,
        milliseconds: Int,
        at arrival: Instant
    ) {
        packets.reserve(Self.capacity)
        payloads.reserve(Self.capacity * PacketBytes.stride)
        packets.append(
            Packet(
                publication: publication,
                start: Int32(payloads.count),
                length: Int32(payload.count),
                milliseconds: Int32(milliseconds),
                arrival: arrival
            )
        )
        for index in payload.indices { payloads.append(payload[index]) }
    }

    mutating func removeAll() {
        packets.removeAll()
        payloads.removeAll()
    }

    mutating func refill(at now: Instant) {
        let passed = min(max(0, now.nanoseconds(since: refilled)), 1_000_000_000)
        refilled = now
        credit = min(Self.burst &* 1_000_000, credit &+ passed &* Self.decodesPerSecond / 1_000)
    }

    mutating func spend(decodes: UInt64) { credit &-= Int64(clamping: decodes) &* 1_000_000 }
}

extension Core {
    /// Measures the queued payloads, after the batch that they came with has been forwarded.
    mutating func measurePendingAudio(at now: Instant) {
        guard !pendingAudioDecodes.packets.isEmpty else { return }
        pendingAudioDecodes.refill(at: now)
        // Taken out, so that payloads can be borrowed while the rest of the core is mutated.
        var taken = PendingAudioDecodes()
        swap(&taken, &pendingAudioDecodes)
        let first = opusLevelMeter.decodes
        let allowed = taken.allowed
        for index in 0..<taken.packets.count {
            let packet = taken.packets[index]
            let publication = Int(packet.publication.index)
            // Packets from before the gate closed or opened no longer count.
            guard publications.contains(packet.publication), publications[publication].isOpen,
                packet.arrival > publications[publication].openedAt
            else { continue }
            guard Int64(clamping: opusLevelMeter.decodes &- first) < allowed else {
                opusLevelMeter.skip(&publications[publication].sound)
                continue
            }
            let start = Int(packet.start)
            let payload = taken.payloads.span.extracting(start..<start + Int(packet.length))
            guard
                let level = opusLevelMeter.level(
                    of: payload,
                    in: &publications[publication].sound
                )
            else { continue }
            hear(
                level,
                milliseconds: Int(packet.milliseconds),
                on: publication,
                at: packet.arrival
            )
        }
        taken.spend(decodes: opusLevelMeter.decodes &- first)
        taken.removeAll()
        swap(&taken, &pendingAudioDecodes)
    }
}
