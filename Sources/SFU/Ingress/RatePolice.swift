import RTP
import WorkerInterface

/// Holds one publication to bits and packets a second: two leaky buckets, kept as points in time.
///
/// A bucket is as full as its time lies ahead of now, so that a packet costs two additions.
struct RatePolice: BitwiseCopyable {
    /// What a publication may send, in bits and packets a second.
    struct Limits: BitwiseCopyable {
        var bitrate: Int
        var packetRate: Int
    }

    private var nanosecondsPerByte: Int64
    private var nanosecondsPerPacket: Int64
    private var bytesUntil = Instant(nanoseconds: .min / 2)
    private var packetsUntil = Instant(nanoseconds: .min / 2)
    /// Whether what comes is dropped until there is room again.
    private(set) var isHolding = false
    /// Of the frame of which something was dropped.
    private var timestamp: UInt32 = 0

    /// What a bucket holds, in time: a keyframe is several times its share of a second.
    static let burstNanoseconds: Int64 = 1_000_000_000

    init(_ limits: Limits) {
        nanosecondsPerByte = 8_000_000_000 / Int64(max(1_000, limits.bitrate))
        nanosecondsPerPacket = 1_000_000_000 / Int64(max(1, limits.packetRate))
    }

    /// Takes other limits; what is in the buckets stays.
    mutating func limit(to limits: Limits) {
        let other = Self(limits)
        nanosecondsPerByte = other.nanosecondsPerByte
        nanosecondsPerPacket = other.nanosecondsPerPacket
    }

    /// What becomes of a packet.
    enum Verdict { case pass, passAgain, hold, holdFirst }

    /// Judges one packet.
    ///
    /// What is dropped is dropped whole: to the frame's end, and on until half of a bucket is free,
    /// for what follows cannot be shown without it in any case.
    mutating func judge(bytes: Int, timestamp: UInt32, at now: Instant) -> Verdict {
        let nextBytes = max(bytesUntil, now).advanced(
            nanoseconds: Int64(bytes) &* nanosecondsPerByte
        )
        let nextPackets = max(packetsUntil, now).advanced(nanoseconds: nanosecondsPerPacket)
        let fill = max(nextBytes, nextPackets).nanoseconds(since: now)
        let limit = isHolding ? Self.burstNanoseconds / 2 : Self.burstNanoseconds
        // The rest of a frame whose beginning is gone is of no use.
        guard fill <= limit, !isHolding || timestamp != self.timestamp else {
            self.timestamp = timestamp
            defer { isHolding = true }
            return isHolding ? .hold : .holdFirst
        }
        bytesUntil = nextBytes
        packetsUntil = nextPackets
        defer { isHolding = false }
        return isHolding ? .passAgain : .pass
    }
}

extension PublicationConfiguration {
    /// What one of its encodings may send: twice what its publisher's role says, or what the worker
    /// takes of anybody.
    ///
    /// What is above the role's rate goes to nobody as it is, by what was measured over a second
    /// (`LayerCap`). This is for what comes faster than that can tell.
    func rateLimits(most bitrate: Int) -> RatePolice.Limits {
        switch kind {
        case .audio:
            return RatePolice.Limits(bitrate: Self.mostAudio, packetRate: Self.mostAudioPackets)
        case .video:
            return RatePolice.Limits(
                bitrate: min(cap.bitrate.map { max(2 * $0, Self.leastVideo) } ?? bitrate, bitrate),
                packetRate: Self.mostVideoPackets
            )
        }
    }

    /// Opus at its most (RFC 6716 §2.1.1), three times by RED (RFC 2198), in packets of 2.5 ms.
    private static let mostAudio = 2_000_000
    private static let mostAudioPackets = 500
    private static let mostVideoPackets = 10_000
    /// A keyframe of the smallest picture has to fit.
    private static let leastVideo = 200_000
}

/// A publisher that sends more than it may: what is beyond goes no further.
extension Core {
    /// Judges a packet that has its number already, so that what is dropped is not asked for again.
    mutating func police(_ info: PacketInfo, length: Int, encoding: Int) -> DropReason? {
        let verdict = encodings[encoding].police.judge(
            bytes: length,
            timestamp: info.timestamp,
            at: info.arrival
        )
        switch verdict {
        case .pass: return nil
        case .passAgain:
            if encodings[encoding].kind == .video { wantKeyframe(of: encoding, at: info.arrival) }
            return nil
        case .hold: return .policed
        case .holdFirst:
            holdViewers(of: encoding)
            return .policed
        }
    }

    /// Holds a publication's encodings to what its configuration says now.
    mutating func limitRate(of publication: Int) {
        let rates = publications[publication].configuration
            .rateLimits(most: limits.publicationBitrate)
        for index in 0..<publications[publication].encodings.count {
            encodings[Int(publications[publication].encodings[index])].police.limit(to: rates)
        }
    }

    /// What they have cannot be gone on with: they wait for a keyframe.
    private mutating func holdViewers(of encoding: Int) {
        guard encodings[encoding].kind == .video else { return }
        let publication = encodings[encoding].publication
        for index in 0..<publications[publication].subscribers.count {
            let slot = Int(publications[publication].subscribers[index])
            switch slots[slot].source {
            case .flowing(Int32(encoding)), .switching(from: Int32(encoding), to: _):
                slots[slot].source = .waiting
            case .idle, .waiting, .flowing, .switching: break
            }
        }
        for index in 0..<publications[publication].mirrors.count {
            publications[publication].mirrors[index].hasGap = true
        }
    }
}
