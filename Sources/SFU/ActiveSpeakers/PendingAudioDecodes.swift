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
