/// Bounds of a worker's TCP connections; `docs/limits.md` says what happens at each.
package struct StreamLimits: Hashable, Sendable {
    /// Connections at one time.
    package var connections = 1_024
    /// Of those, from one address, or one /64 of IPv6.
    package var connectionsPerAddress = 128
    /// Bytes that wait for one connection that takes no more.
    package var queueBytes = 512 << 10

    package init() {}

    /// More than this has no numbers.
    package static let maximumConnections = StreamTable.maximumCapacity

    /// Connections that no check has validated yet; for one more the oldest of them goes.
    package var unchecked: Int { max(1, connections / 4) }

    /// Two datagrams a kilobyte: audio is small.
    var queue: SendQueueLimits {
        SendQueueLimits(datagrams: max(1, queueBytes / 512), bytes: queueBytes)
    }
}
