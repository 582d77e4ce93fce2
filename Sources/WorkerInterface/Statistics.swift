package import RTP

/// Why packets went no further; counted, because a log line per packet is an attack surface.
package enum DropReason: String, CaseIterable, Hashable, Sendable, BitwiseCopyable {
    /// Belongs to no protocol that WebRTC has on this port (RFC 7983).
    case unknownProtocol = "unknown-protocol"
    case oversized
    /// From an address that no transport has validated.
    case unknownSource = "unknown-source"
    case stunMalformed = "stun-malformed"
    case stunUnauthenticated = "stun-unauthenticated"
    case stunRateLimited = "stun-rate-limited"
    case dtlsUnexpected = "dtls-unexpected"
    case notConnected = "not-connected"
    case malformedRTCP = "malformed-rtcp"
    case srtcpAuthentication = "srtcp-authentication"
    case srtcpReplay = "srtcp-replay"
    /// More RTCP than one transport may send.
    case rtcpRateLimited = "rtcp-rate-limited"
    case malformedRTP = "malformed-rtp"
    /// The authentication tag did not hold.
    case srtpAuthentication = "srtp-authentication"
    case srtpReplay = "srtp-replay"
    /// No m-line claims the SSRC, MID, RID or payload type.
    case unknownStream = "unknown-stream"
    case unknownPayloadType = "unknown-payload-type"
    case streamLimit = "stream-limit"
    /// No place is left to keep the packet in.
    case bufferFull = "buffer-full"
    case duplicate
    case tooOld = "too-old"
    /// Padding only: nothing to forward.
    case padding
    /// The publisher's gate is closed.
    case gated
    /// More than the publisher's role, or the worker, lets it send.
    case policed
    /// It waited too long to be received, and serves nobody any more.
    case stale
    /// Too many new SSRCs of one transport.
    case streamRateLimited = "stream-rate-limited"
    case noSubscriber = "no-subscriber"
    /// Subscribers wait for a keyframe, and this packet was none of it.
    case awaitingKeyframe = "awaiting-keyframe"
    /// No subscriber has a payload type for the codec.
    case noCommonCodec = "no-common-codec"
    /// Another layer of the same source is being forwarded to all subscribers.
    case layerNotSelected = "layer-not-selected"
    /// It could not be written or encrypted for any subscriber.
    case sendFailed = "send-failed"
    /// A datagram that the socket would not take, nor the queue before it; like the two after it
    /// outgoing, so outside the sums of what came in.
    case sendQueueFull = "send-queue-full"
    /// A packet that another worker was too slow to take: outside the sums too.
    case relayQueueFull = "relay-queue-full"
    /// It waited too long for the socket.
    case sendQueueStale = "send-queue-stale"
    /// It waited for the socket when the right to it was taken away.
    case sendQueueWithdrawn = "send-queue-withdrawn"

    /// Whether it counts what was on its way out, which is outside the sums of what came in.
    package var isOutgoing: Bool {
        switch self {
        case .sendQueueFull, .relayQueueFull, .sendQueueStale, .sendQueueWithdrawn: true
        default: false
        }
    }
}

/// One worker's counters; they only grow.
///
/// `rtpIn` = `rtpForwarded` + the `drops` from malformed RTP on, but for those outgoing;
/// `datagramsIn` = STUN + DTLS + RTCP + RTP + the drops before malformed RTP;
/// `relayedIn` = `relayedForwarded` + all `relayDrops`. `docs/ipc.md` has the sums, and tests
/// hold them.
package struct WorkerStatistics: Hashable, Sendable {
    package var datagramsIn: UInt64 = 0
    package var bytesIn: UInt64 = 0
    package var stunIn: UInt64 = 0
    package var dtlsIn: UInt64 = 0
    package var rtcpIn: UInt64 = 0
    package var rtpIn: UInt64 = 0
    /// Paths whose peer stopped to answer our checks, so that media stopped (RFC 7675).
    package var consentsEnded: UInt64 = 0
    /// Blocks of transport-wide feedback beyond their transport's RTCP budget.
    package var feedbackLeftOut: UInt64 = 0
    /// RTP packets in that at least one subscriber was sent, or another worker was handed.
    package var rtpForwarded: UInt64 = 0
    /// Packets handed to other workers, once for each.
    package var relayedOut: UInt64 = 0
    /// Packets that other workers handed to this one; they are in `rtpIn` there, not here.
    package var relayedIn: UInt64 = 0
    /// Of those, sent to at least one subscriber.
    package var relayedForwarded: UInt64 = 0
    /// What became of viewers' wishes for keyframes.
    package var keyframeWishes = KeyframeWishes()
    package var datagramsOut: UInt64 = 0
    package var bytesOut: UInt64 = 0
    /// Forwarded copies, retransmissions not counted.
    package var rtpOut: UInt64 = 0
    package var rtxOut: UInt64 = 0
    /// Packets of padding that probed what a path carries.
    package var paddingOut: UInt64 = 0
    /// Empty packets in place of what was left out too late for the numbers to close over it.
    package var fillersOut: UInt64 = 0
    package var rtcpOut: UInt64 = 0
    /// Indexed by `DropReason.allCases`.
    package var drops: [UInt64] = Array(repeating: 0, count: DropReason.allCases.count)
    /// What became of the rest of `relayedIn`, likewise.
    package var relayDrops: [UInt64] = Array(repeating: 0, count: DropReason.allCases.count)
    /// Datagrams that the kernel dropped because the socket's queue was full; not in `datagramsIn`.
    package var kernelDrops: UInt64 = 0
    /// Datagrams that the kernel refused to send for other reasons than a full queue.
    package var sendErrors: UInt64 = 0
    /// The outgoing `drops` once more, by content.
    package var sendDrops = SendDrops()
    /// Datagrams that wait for a socket now.
    package var sendQueueLength = 0
    package var streams = StreamStatistics()
    /// From the arrival of a batch's media at the socket until the first copy of it had left.
    package var firstCopies = ForwardingTimes()
    /// And until the last had.
    package var lastCopies = ForwardingTimes()
    /// The thread's user and system time, in nanoseconds.
    package var cpuNanoseconds: UInt64 = 0
    /// The share of one core that the thread had over the last second or more, 0 to 1.
    package var load: Double = 0
    package var pressure = WorkerPressure()
    package var transports: [TransportStatistics] = []
    package var publications: [PublicationStatistics] = []
    package var slots: [SlotStatistics] = []

    package init() {}
}

package struct TransportStatistics: Hashable, Sendable {
    package var id: TransportID
    package var connected: Bool
    package var remote: Address?
    package var srtpProfile: String?
    package var bytesIn: UInt64
    package var bytesOut: UInt64
    package var packetsIn: UInt64
    package var packetsOut: UInt64
    /// From sender and receiver reports, in nanoseconds.
    package var roundTripNanoseconds: Int64?

    package init(id: TransportID) {
        self.id = id
        connected = false
        remote = nil
        srtpProfile = nil
        bytesIn = 0
        bytesOut = 0
        packetsIn = 0
        packetsOut = 0
        roundTripNanoseconds = nil
    }
}

package struct PublicationStatistics: Hashable, Sendable {
    package var id: PublicationID
    package var codec: Codec?
    package var encodings: [EncodingStatistics]

    package init(id: PublicationID, codec: Codec?, encodings: [EncodingStatistics]) {
        self.id = id
        self.codec = codec
        self.encodings = encodings
    }
}

package struct EncodingStatistics: Hashable, Sendable {
    package var layer: LayerDescription
    package var ssrc: SSRC
    package var packets: UInt64
    package var bytes: UInt64
    /// Cumulative, as in a receiver report (RFC 3550 §6.4.1).
    package var packetsLost: Int64
    /// RTP timestamp units.
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
        jitter = 0
        nacksSent = 0
        pictureLossesSent = 0
        retransmissionsReceived = 0
    }
}

package struct SlotStatistics: Hashable, Sendable {
    package var id: SlotID
    package var subscription: UInt64?
    package var codec: Codec?
    /// The layer being forwarded.
    package var rid: String?
    package var packets: UInt64
    package var bytes: UInt64
    /// From the viewer's receiver reports.
    package var packetsLost: Int64
    package var fractionLost: UInt8
    package var jitter: UInt32
    package var nacksReceived: UInt64
    package var pictureLossesReceived: UInt64
    package var retransmissionsSent: UInt64

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

/// What became of wishes for keyframes.
package struct KeyframeWishes: Hashable, Sendable {
    package var asked: UInt64 = 0
    /// Served by a request that was under way or due.
    package var shared: UInt64 = 0
    /// Put off because the last request was too fresh.
    package var held: UInt64 = 0
    /// Put off because keyframes had had their share of the bits.
    package var bounded: UInt64 = 0

    package init() {}
}
