/// Limits of a worker's TCP connections; `docs/limits.md` says what happens at each.
package struct TCPConnectionLimits: Hashable, Sendable {
    /// Maximum number of connections at one time.
    package var connections = 1_024
    /// Maximum number of connections from one IPv4 address, or one IPv6 /64.
    package var connectionsPerAddress = 128
    /// Maximum number of bytes queued for one connection.
    package var queueBytes = 512 << 10

    package init() {}

    /// Maximum number of connections that can be numbered.
    package static let maximumConnections = TCPConnectionTable.maximumCapacity

    /// Maximum number of connections without a connectivity check; one more ends the oldest.
    package var unchecked: Int { max(1, connections / 4) }

    /// Queue limits, with two datagrams a kilobyte, as audio packets are small.
    var queue: SendQueueLimits {
        SendQueueLimits(datagrams: max(1, queueBytes / 512), bytes: queueBytes)
    }
}
