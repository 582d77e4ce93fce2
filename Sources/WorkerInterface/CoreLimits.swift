/// Limits and timeouts of one worker.
///
/// `docs/limits.md` describes the behavior at each limit.
package struct CoreLimits: Hashable, Sendable {
    /// Packets kept for retransmission and forwarding, over all publishers.
    package var packetPool = 32_768
    /// Incoming SSRCs per transport.
    package var streamsPerTransport = 64
    /// Validated addresses kept per transport.
    package var pathsPerTransport = 8
    /// STUN checks answered per second and transport.
    package var stunChecksPerSecond = 50
    /// RTCP datagrams accepted per second from one transport, and the addition for each of its
    /// slots.
    ///
    /// The burst is half a second's worth. `RTCPBudget` defines which blocks cost more than one
    /// token.
    package var rtcpPerSecond = 1_000
    package var rtcpPerSlotAndSecond = 20
    /// Highest bitrate of a video publication, in bits a second, unless the publisher's role sets a
    /// lower one.
    package var publicationBitrate = 50_000_000
    /// New SSRCs accepted per second and transport, besides those that its offers name.
    package var newStreamsPerSecond = 100
    /// Thresholds for overload.
    package var pressure = OverloadLimits()
    /// Silence before a transport becomes `reconnecting`, in milliseconds.
    package var livenessMilliseconds: Int64 = 8_000
    /// Silence before a transport becomes `disconnected`, in milliseconds.
    package var timeoutMilliseconds: Int64 = 30_000

    /// Simulcast encodings of one publication; an offer with more is cut.
    package static let encodingsPerPublication = 4
    /// Leases on rooms of other nodes: more than a cluster has nodes.
    package static let leases = 65

    package init() {}

    package static let `default` = Self()
}
