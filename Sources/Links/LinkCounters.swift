/// Counters of the media that nodes exchange.
package struct LinkCounters: Hashable, Sendable {
    package internal(set) var datagramsIn: UInt64 = 0
    package internal(set) var bytesIn: UInt64 = 0
    package internal(set) var datagramsOut: UInt64 = 0
    package internal(set) var bytesOut: UInt64 = 0
    /// Datagrams that were not genuine, had come before, or were malformed.
    package internal(set) var datagramsRefused: UInt64 = 0
    package internal(set) var packetsIn: UInt64 = 0
    package internal(set) var packetsOut: UInt64 = 0
    package internal(set) var packetsRepeated: UInt64 = 0
    /// Packets that were asked for again.
    package internal(set) var packetsMissed: UInt64 = 0
    /// Packets that came after their gate had closed, or for an earlier right.
    package internal(set) var packetsUnwanted: UInt64 = 0
    /// Packets that had come before, or could not be kept.
    package internal(set) var packetsRefused: UInt64 = 0
    package internal(set) var packetsTooLong: UInt64 = 0
    /// Video packets that found no room where they wait for a narrow path.
    package internal(set) var packetsCrowded: UInt64 = 0
    /// Bytes of probes.
    package internal(set) var paddingOut: UInt64 = 0
    /// Nodes to which the path limits what is sent, and encodings that are withheld for that.
    package internal(set) var narrowPaths = 0
    package internal(set) var encodingsWithheld = 0
    /// Publications of other nodes that go on from here to nodes that do not hear those.
    package internal(set) var streamsPassedOn = 0

    package init() {}
}
