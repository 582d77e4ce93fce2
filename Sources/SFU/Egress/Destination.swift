import RTP
import WorkerInterface

/// Where one transport's media goes: what a forwarded packet touches of it, in one cache line.
struct Destination: BitwiseCopyable {
    /// `nil` while media may not go out.
    var path: Path?
    /// The last outgoing transport-wide sequence number.
    var transportSequence: UInt16 = 0
    private(set) var packetsOut: UInt64 = 0
    private(set) var bytesOut: UInt64 = 0
    /// The short way to the key, which goes when `path` goes; without it the session is asked.
    var key: OutgoingKey?

    /// Counts one datagram sent.
    mutating func count(length: Int) {
        packetsOut &+= 1
        bytesOut &+= UInt64(length)
    }
}

/// A slot and where it sends to, in hand while packets go through them.
struct Outlet: BitwiseCopyable {
    /// The slot's index.
    let index: Int
    var slot: Slot
    var destination: Destination
}

extension Core {
    /// Takes a slot and its destination in hand; nothing else may change them until `put`.
    func outlet(of slot: Int) -> Outlet {
        Outlet(
            index: slot,
            slot: slots[slot],
            destination: destinations[slots[slot].transport]
        )
    }

    mutating func put(_ outlet: Outlet) {
        slots[outlet.index] = outlet.slot
        destinations[outlet.slot.transport] = outlet.destination
    }

    /// To be called whenever a transport's path, keys or end may have changed.
    ///
    /// A key must not be reached when its session is gone: it is forgotten here, at once.
    mutating func updateDestination(of transport: Int) {
        let canSend = transports[transport].canSend
        destinations[transport].path = canSend ? transports[transport].path : nil
        destinations[transport].key = canSend ? transports[transport].outgoingKey : nil
    }
}
