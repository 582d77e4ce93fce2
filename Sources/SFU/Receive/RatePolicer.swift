import RTP
import WorkerInterface

/// Rate limiter of one encoding: two leaky buckets, for bits and packets a second.
///
/// Each bucket is stored as a point in time and is as full as that lies ahead of now, so a packet
/// costs two additions.
struct RatePolicer: BitwiseCopyable {
    /// Limits of an encoding, in bits and packets a second.
    struct Limits: BitwiseCopyable {
        var bitrate: Int
        var packetRate: Int
    }

    private var nanosecondsPerByte: Int64
    private var nanosecondsPerPacket: Int64
    private var bytesUntil = Instant(nanoseconds: .min / 2)
    private var packetsUntil = Instant(nanoseconds: .min / 2)
    /// Whether packets are being dropped until there is room again.
    private(set) var isDropping = false
    /// RTP timestamp of the frame that was last cut.
    private var timestamp: UInt32 = 0

    /// Capacity of a bucket, as time, which leaves room for keyframes.
    static let burstNanoseconds: Int64 = 1_000_000_000

    init(_ limits: Limits) {
        nanosecondsPerByte = 8_000_000_000 / Int64(max(1_000, limits.bitrate))
        nanosecondsPerPacket = 1_000_000_000 / Int64(max(1, limits.packetRate))
    }

    /// Changes the limits; the fill of the buckets stays.
    mutating func limit(to limits: Limits) {
        let other = Self(limits)
        nanosecondsPerByte = other.nanosecondsPerByte
        nanosecondsPerPacket = other.nanosecondsPerPacket
    }

    /// Decision for one packet.
    enum Verdict { case pass, passAfterDrop, drop, startDropping }

    /// Decides whether one packet passes.
    ///
    /// After a drop the rest of the frame is dropped, and further frames until half of the bucket
    /// is free: they could not be decoded without it.
    mutating func judge(bytes: Int, timestamp: UInt32, at now: Instant) -> Verdict {
        let nextBytes = max(bytesUntil, now).advanced(
            nanoseconds: Int64(bytes) &* nanosecondsPerByte
        )
        let nextPackets = max(packetsUntil, now).advanced(nanoseconds: nanosecondsPerPacket)
        let fill = max(nextBytes, nextPackets).nanoseconds(since: now)
        let limit = isDropping ? Self.burstNanoseconds / 2 : Self.burstNanoseconds
        // The rest of a cut frame is of no use.
        guard fill <= limit, !isDropping || timestamp != self.timestamp else {
            self.timestamp = timestamp
            defer { isDropping = true }
            return isDropping ? .drop : .startDropping
        }
        bytesUntil = nextBytes
        packetsUntil = nextPackets
        defer { isDropping = false }
        return isDropping ? .passAfterDrop : .pass
    }
}

extension PublicationConfiguration {
    /// Returns the limits of one encoding.
    ///
    /// For video the bitrate is twice the role's, or the worker's limit `bitrate` if that is lower
    /// or the role has none. For audio it is thrice the role's and room for headers: redundant
    /// copies (RFC 2198) multiply what an encoder that keeps to the role's bitrate sends.
    ///
    /// Layers above the role's bitrate are excluded by their measured rate anyway (`LayerCap`).
    /// This limiter catches bursts faster than that measurement.
    func rateLimits(most bitrate: Int) -> RatePolicer.Limits {
        switch kind {
        case .audio:
            return RatePolicer.Limits(
                bitrate: min(
                    cap.bitrate.map { 3 &* $0 &+ Self.audioHeaders } ?? Self.mostAudio,
                    Self.mostAudio
                ),
                packetRate: Self.mostAudioPackets
            )
        case .video:
            return RatePolicer.Limits(
                bitrate: min(cap.bitrate.map { max(2 * $0, Self.leastVideo) } ?? bitrate, bitrate),
                packetRate: Self.mostVideoPackets
            )
        }
    }

    /// Audio bitrate limit: the highest of Opus (RFC 6716 §2.1.1), tripled for RED (RFC 2198), in
    /// packets of 2.5 ms.
    private static let mostAudio = 2_000_000
    private static let mostAudioPackets = 500
    /// Room for the headers of 50 packets a second, in bits a second.
    private static let audioHeaders = 32_000
    private static let mostVideoPackets = 10_000
    /// Lowest video limit, which leaves room for a keyframe of the smallest resolution.
    private static let leastVideo = 200_000
}

/// Enforcement of the publishers' rate limits.
extension Receiver {
    /// Checks a packet against the rate limit.
    ///
    /// Its sequence number is recorded already, so a dropped packet is not requested again.
    mutating func limitRate(
        of packet: inout ReceivedPacket,
        _ transports: inout Transports
    ) throws(DropReason) {
        let encoding = packet.encoding
        let verdict = encodings[encoding].police.judge(
            bytes: packet.length,
            timestamp: packet.info.timestamp,
            at: packet.info.arrival
        )
        switch verdict {
        case .pass: return
        case .passAfterDrop:
            if encodings[encoding].kind.isVideo {
                requestKeyframe(of: encoding, at: packet.info.arrival, &transports)
            }
        case .drop: throw .policed
        case .startDropping:
            packet.breaksPicture = true
            throw .policed
        }
    }

    /// Applies the configured limits to a publication's encodings.
    mutating func applyRateLimits(to publication: PublicationIndex) {
        let rates = publications[publication].configuration
            .rateLimits(most: limits.publicationBitrate)
        for index in 0..<publications[publication].encodings.count {
            encodings[publications[publication].encodings[index]].police.limit(to: rates)
        }
    }
}
