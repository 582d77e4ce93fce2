import RTP
import WorkerInterface

/// Send state of one transport that the packet path touches, in one cache line.
struct Destination: BitwiseCopyable {
    /// Path that media is sent on; `nil` while media may not be sent.
    var path: Path?
    /// Last outgoing transport-wide sequence number.
    var transportSequence: UInt16 = 0
    private(set) var packetsOut: UInt64 = 0
    private(set) var bytesOut: UInt64 = 0
    /// Direct access to the SRTP key, cleared together with `path`; without it the session is used.
    var key: OutgoingKey?

    /// Counts one sent datagram.
    mutating func count(length: Int) {
        packetsOut &+= 1
        bytesOut &+= UInt64(length)
    }
}

extension Transports {
    /// Updates a transport's destination; call it whenever its path, keys or state may have
    /// changed.
    ///
    /// A key must not be reached once its session is gone, so it is cleared here at once.
    mutating func updateDestination(of transport: TransportIndex) {
        let canSend = transports[transport].canSend
        destinations[transport].path = canSend ? transports[transport].path : nil
        destinations[transport].key = canSend ? transports[transport].outgoingKey : nil
        savePaths(of: transport)
    }
}
