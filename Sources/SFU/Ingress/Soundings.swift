import RTP
import WorkerInterface

/// Sound whose publisher does not tell how loud it is: it waits until the batch has been let out,
/// then the codec is asked, as often as the budget allows.
struct Soundings: ~Copyable {
    struct Packet: BitwiseCopyable {
        var publication: PublicationID
        var start: Int32
        var length: Int32
        var milliseconds: Int32
        var arrival: Instant
    }

    /// Packets that wait; a batch's further ones go unmeasured.
    static let capacity = 64
    /// Decodes a second and worker: the sound of forty people who talk at once.
    static let decodesPerSecond: Int64 = 2_000
    /// Decoders of one worker.
    static let decoders = 64
    /// Decodes that may come together.
    private static let burst: Int64 = 200

    private(set) var packets = List<Packet>(capacity: 1)
    private(set) var payloads = List<UInt8>(capacity: 1)
    /// Millionths of a decode.
    private var credit = burst * 1_000_000
    private var refilled = Instant(nanoseconds: 0)

    var isFull: Bool { packets.count >= Self.capacity }
    /// Decodes that may be made now.
    var allowed: Int64 { credit / 1_000_000 }

    /// Keeps a copy of a payload; memory for it is taken when the first one comes.
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
    /// Measures what waits, once the batch that it came with is on its way.
    mutating func measureSoundings(at now: Instant) {
        guard !soundings.packets.isEmpty else { return }
        soundings.refill(at: now)
        // In hand, so that a payload can be looked at while the rest of the core changes.
        var taken = Soundings()
        swap(&taken, &soundings)
        let first = opusLevels.decodes
        let allowed = taken.allowed
        for index in 0..<taken.packets.count {
            let packet = taken.packets[index]
            let publication = Int(packet.publication.index)
            // What came before the gate closed, or opened, counts no more.
            guard publications.contains(packet.publication), publications[publication].isOpen,
                packet.arrival > publications[publication].openedAt
            else { continue }
            guard Int64(clamping: opusLevels.decodes &- first) < allowed else {
                opusLevels.skip(&publications[publication].sound)
                continue
            }
            let start = Int(packet.start)
            let payload = taken.payloads.span.extracting(start..<start + Int(packet.length))
            guard
                let level = opusLevels.level(
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
        taken.spend(decodes: opusLevels.decodes &- first)
        taken.removeAll()
        swap(&taken, &soundings)
    }
}
