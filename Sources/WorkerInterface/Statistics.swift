package import RTP

/// Reason for dropping a packet.
///
/// Drops are counted, because a log line per packet is an attack surface.
package enum DropReason: String, Error, CaseIterable, Hashable, BitwiseCopyable {
    /// The first byte matches no protocol of a WebRTC port (RFC 7983).
    case unknownProtocol = "unknown-protocol"
    case oversized
    /// The source address is not validated by any transport.
    case unknownSource = "unknown-source"
    case stunMalformed = "stun-malformed"
    case stunUnauthenticated = "stun-unauthenticated"
    case stunRateLimited = "stun-rate-limited"
    case dtlsUnexpected = "dtls-unexpected"
    case notConnected = "not-connected"
    case malformedRTCP = "malformed-rtcp"
    case srtcpAuthentication = "srtcp-authentication"
    case srtcpReplay = "srtcp-replay"
    /// The transport exceeded its RTCP rate limit.
    case rtcpRateLimited = "rtcp-rate-limited"
    case malformedRTP = "malformed-rtp"
    /// The SRTP authentication tag was wrong.
    case srtpAuthentication = "srtp-authentication"
    case srtpReplay = "srtp-replay"
    /// No m-line matches the SSRC, MID, RID or payload type.
    case unknownStream = "unknown-stream"
    case unknownPayloadType = "unknown-payload-type"
    case streamLimit = "stream-limit"
    /// The packet pool or the batch is full.
    case bufferFull = "buffer-full"
    case duplicate
    case tooOld = "too-old"
    /// The packet holds only padding and is not forwarded.
    case padding
    /// The publication's gate is closed.
    case gated
    /// The publication exceeded the rate that its publisher's role or the worker allows.
    case policed
    /// The packet waited too long before it was received, and is of no use.
    case stale
    /// The transport started too many new SSRCs.
    case streamRateLimited = "stream-rate-limited"
    case noSubscriber = "no-subscriber"
    /// Subscribers wait for a keyframe, and the packet belongs to none.
    case awaitingKeyframe = "awaiting-keyframe"
    /// No subscriber has negotiated the codec.
    case noCommonCodec = "no-common-codec"
    /// Every subscriber is sent another layer of the same source.
    case layerNotSelected = "layer-not-selected"
    /// The packet could not be rewritten or encrypted for any subscriber.
    case sendFailed = "send-failed"
    /// The socket did not take the datagram and its send queue was full.
    ///
    /// Like the three reasons below it counts outgoing datagrams, which are outside the sums of
    /// received packets.
    case sendQueueFull = "send-queue-full"
    /// The relay ring to another worker was full.
    case relayQueueFull = "relay-queue-full"
    /// The datagram was queued for the socket for too long.
    case sendQueueStale = "send-queue-stale"
    /// The right to the datagram was revoked while it was queued for the socket.
    case sendQueueWithdrawn = "send-queue-withdrawn"

    /// Whether it counts outgoing packets, which are outside the sums of received packets.
    package var isOutgoing: Bool {
        switch self {
        case .sendQueueFull, .relayQueueFull, .sendQueueStale, .sendQueueWithdrawn: true
        case .unknownProtocol, .oversized, .unknownSource, .stunMalformed, .stunUnauthenticated,
            .stunRateLimited, .dtlsUnexpected, .notConnected, .malformedRTCP,
            .srtcpAuthentication, .srtcpReplay, .rtcpRateLimited, .malformedRTP,
            .srtpAuthentication, .srtpReplay, .unknownStream, .unknownPayloadType, .streamLimit,
            .bufferFull, .duplicate, .tooOld, .padding, .gated, .policed, .stale,
            .streamRateLimited, .noSubscriber, .awaitingKeyframe, .noCommonCodec,
            .layerNotSelected, .sendFailed:
            false
        }
    }
}

/// Counters of one worker; all but the current values only grow.
///
/// `rtpIn` = `rtpForwarded` + the `drops` from malformed RTP on, except the outgoing ones;
/// `datagramsIn` = STUN + DTLS + RTCP + RTP + the drops before malformed RTP; `relayedIn` =
/// `relayedForwarded` + all `relayDrops`. `docs/ipc.md` describes the sums, and tests enforce them.
package struct WorkerStatistics: Hashable, Sendable {
    package var datagramsIn: UInt64 = 0
    package var bytesIn: UInt64 = 0
    package var stunIn: UInt64 = 0
    package var dtlsIn: UInt64 = 0
    package var rtcpIn: UInt64 = 0
    package var rtpIn: UInt64 = 0
    /// Paths on which media stopped because consent expired (RFC 7675).
    package var consentsEnded: UInt64 = 0
    /// RTCP blocks, transport-wide feedback or NACK, skipped beyond the transport's RTCP budget.
    package var feedbackOverBudget: UInt64 = 0
    /// Received RTP packets that were sent to at least one subscriber or relayed to another worker.
    package var rtpForwarded: UInt64 = 0
    /// Packets relayed to other workers, counted once for each.
    package var relayedOut: UInt64 = 0
    /// Packets received from other workers' relays; those workers count them in `rtpIn`, this one
    /// does not.
    package var relayedIn: UInt64 = 0
    /// Of those, packets sent to at least one subscriber.
    package var relayedForwarded: UInt64 = 0
    /// Outcomes of subscribers' keyframe requests.
    package var keyframeRequestCounts = KeyframeRequestCounts()
    package var datagramsOut: UInt64 = 0
    package var bytesOut: UInt64 = 0
    /// Forwarded copies, without retransmissions.
    package var rtpOut: UInt64 = 0
    package var rtxOut: UInt64 = 0
    /// Retransmissions that were requested and left out, as the last one of the same packet might
    /// still be on its way.
    package var rtxInFlight: UInt64 = 0
    /// Retransmissions that were requested and left out, as they exceeded the path's budget.
    package var rtxOverBudget: UInt64 = 0
    /// Padding packets sent to probe a path's bandwidth.
    package var paddingOut: UInt64 = 0
    /// Empty packets sent in place of packets dropped too late to close the gap in sequence
    /// numbers.
    package var fillersOut: UInt64 = 0
    package var rtcpOut: UInt64 = 0
    /// Freezes of subscribers' video that have ended.
    package var freezes = FreezeTotals()
    package var connections = ConnectionOutcomes()
    package var paths = PathSamples()
    /// Dropped packets, indexed by `DropReason.allCases`.
    package var drops: [UInt64] = Array(repeating: 0, count: DropReason.allCases.count)
    /// Dropped packets out of `relayedIn`, indexed likewise.
    package var relayDrops: [UInt64] = Array(repeating: 0, count: DropReason.allCases.count)
    /// Datagrams that the kernel dropped because the socket's receive queue was full; not in
    /// `datagramsIn`.
    package var kernelDrops: UInt64 = 0
    /// Datagrams that the kernel refused to send for reasons other than a full queue.
    package var sendErrors: UInt64 = 0
    /// Outgoing datagrams dropped at the sockets, by cause and content; also in `drops`.
    package var sendDrops = SendDrops()
    /// Datagrams queued for the sockets; a current value.
    package var sendQueueLength = 0
    package var streams = TCPConnectionStatistics()
    /// Time from the arrival of a batch's media at the socket until its first copy was sent.
    package var firstCopies = ForwardingTimes()
    /// Time from the arrival of a batch's media at the socket until its last copy was sent.
    package var lastCopies = ForwardingTimes()
    /// User and system time of the thread, in nanoseconds.
    package var cpuNanoseconds: UInt64 = 0
    /// Share of one core that the thread used over the last second or more, 0 to 1; a current
    /// value.
    package var load: Double = 0
    package var pressure = WorkerOverload()
    /// Time at which the counters were read.
    package var time = Instant(nanoseconds: 0)
    package var transports: [TransportStatistics] = []
    package var publications: [PublicationStatistics] = []
    package var slots: [SlotStatistics] = []

    package init() {}
}

package struct TransportStatistics: Hashable, Sendable, Codable {
    package var id: TransportID
    package var connected: Bool
    package var remote: Address?
    /// Whether media goes over a TCP connection; `nil` while there is no path.
    package var isTCP: Bool?
    package var srtpProfile: String?
    package var bytesIn: UInt64
    package var bytesOut: UInt64
    package var packetsIn: UInt64
    package var packetsOut: UInt64
    /// Round-trip time from sender and receiver reports, in nanoseconds.
    package var roundTripNanoseconds: Int64?
    /// Estimate of what the path to the peer carries, in bits a second; `nil` if no limit is known.
    package var estimate: Int?

    package init(id: TransportID) {
        self.id = id
        connected = false
        remote = nil
        isTCP = nil
        srtpProfile = nil
        bytesIn = 0
        bytesOut = 0
        packetsIn = 0
        packetsOut = 0
        roundTripNanoseconds = nil
        estimate = nil
    }
}

package struct PublicationStatistics: Hashable, Sendable, Codable {
    package var id: PublicationID
    package var codec: Codec?
    package var encodings: [EncodingStatistics]

    package init(id: PublicationID, codec: Codec?, encodings: [EncodingStatistics]) {
        self.id = id
        self.codec = codec
        self.encodings = encodings
    }
}

package struct EncodingStatistics: Hashable, Sendable, Codable {
    package var layer: LayerDescription
    package var ssrc: SSRC
    package var packets: UInt64
    package var bytes: UInt64
    /// Cumulative number of packets lost, as in a receiver report (RFC 3550 §6.4.1).
    package var packetsLost: Int64
    /// Fraction of packets lost in the last report's interval, in 256ths.
    package var fractionLost: UInt8
    /// Interarrival jitter in RTP timestamp units.
    package var jitter: UInt32
    package var nacksSent: UInt64
    package var pictureLossesSent: UInt64
    package var retransmissionsReceived: UInt64

    package init(layer: LayerDescription, ssrc: SSRC) {
        self.layer = layer
        self.ssrc = ssrc
        packets = 0
        bytes = 0
        packetsLost = 0
        fractionLost = 0
        jitter = 0
        nacksSent = 0
        pictureLossesSent = 0
        retransmissionsReceived = 0
    }
}

package struct SlotStatistics: Hashable, Sendable, Codable {
    package var id: SlotID
    package var subscription: UInt64?
    package var codec: Codec?
    /// RID of the encoding being forwarded.
    package var rid: String?
    package var packets: UInt64
    package var bytes: UInt64
    /// Cumulative number of packets lost, from the subscriber's receiver reports.
    package var packetsLost: Int64
    /// Fraction of packets lost in the last report's interval, in 256ths.
    package var fractionLost: UInt8
    /// Interarrival jitter in RTP timestamp units.
    package var jitter: UInt32
    package var nacksReceived: UInt64
    package var pictureLossesReceived: UInt64
    package var retransmissionsSent: UInt64
    /// Freezes of the subscription's video that have ended.
    package var freezes = FreezeTotals.Sum()

    package init(id: SlotID) {
        self.id = id
        subscription = nil
        codec = nil
        rid = nil
        packets = 0
        bytes = 0
        packetsLost = 0
        fractionLost = 0
        jitter = 0
        nacksReceived = 0
        pictureLossesReceived = 0
        retransmissionsSent = 0
    }
}

/// Counters of subscribers' keyframe requests by outcome.
package struct KeyframeRequestCounts: Hashable, Sendable {
    package var asked: UInt64 = 0
    /// Requests served by one that was pending or scheduled.
    package var shared: UInt64 = 0
    /// Requests delayed because the last one was too recent.
    package var held: UInt64 = 0
    /// Requests delayed because keyframes had used their share of the bitrate.
    package var bounded: UInt64 = 0

    package init() {}
}
