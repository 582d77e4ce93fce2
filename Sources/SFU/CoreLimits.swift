package import WorkerInterface

/// Bounds and times of one worker; `docs/limits.md` says what happens at each.
package struct CoreLimits: Hashable, Sendable {
    /// Packets kept for retransmission and forwarding, over all publishers.
    package var packetPool = 32_768
    /// Incoming SSRCs a transport.
    package var streamsPerTransport = 64
    /// Validated addresses kept a transport.
    package var pathsPerTransport = 8
    /// STUN checks answered a second and transport.
    package var stunChecksPerSecond = 50
    /// RTCP datagrams of one transport in a second, and more for each of its slots.
    ///
    /// Half as many may come at once. `RTCPBudget` says what counts as several.
    package var rtcpPerSecond = 1_000
    package var rtcpPerSlotAndSecond = 20
    /// Bits a second that a video publication may send whose publisher's role says no less.
    package var publicationBitrate = 50_000_000
    /// SSRCs that a transport may begin with in a second, besides those that its offers name.
    package var newStreamsPerSecond = 100
    /// At which figures the worker gives something up.
    package var pressure = PressureLimits()
    /// Silence before `reconnecting`, in milliseconds.
    package var livenessMilliseconds: Int64 = 8_000
    /// Silence before `disconnected`, in milliseconds.
    package var timeoutMilliseconds: Int64 = 30_000

    package init() {}

    package static let `default` = Self()
}
