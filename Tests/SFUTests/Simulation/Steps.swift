import LoadPeer
import RTP

@testable import SFU
@testable import WorkerInterface

/// Actions of hostile and unlucky peers.
extension Call {
    /// Gives the core a raw datagram from any address.
    mutating func inject(_ datagram: [UInt8], on path: Path) {
        core.receive(datagram.span, on: path, at: now, into: &output)
        if output.free < 64 { settle() }
    }

    /// Applies another offer and answer.
    mutating func reconfigure(_ index: Int, _ change: (inout TransportConfiguration) -> Void) {
        change(&peers[index].configuration)
        apply(.configure(peers[index].id, peers[index].configuration))
    }

    /// Sends a connectivity check from the peer's present address, nominating it.
    mutating func check(from index: Int) {
        var sent = Batch(capacity: 4)
        peers[index].peer.check(at: now, into: &sent)
        deliver(&sent, from: index)
    }

    mutating func sendRTCP(from index: Int, bytes: [UInt8]) {
        sendRTCP(from: index) { output in
            for byte in bytes { output.append(byte) }
        }
    }

    /// Number of objects of each kind; the same before and after means nothing leaked.
    var occupancy: Occupancy {
        Occupancy(
            packets: core.receiver.pool.used,
            transports: core.transports.count,
            paths: core.transports.paths.count,
            fragments: core.transports.fragments.count,
            encodings: core.receiver.encodings.count,
            slots: core.forwarder.slots.count,
            records: core.forwarder.slotRecords.count,
            shares: core.allocator.shares.count,
            streams: (0..<core.transports.capacity).reduce(0) { sum, offset in
                core.transports.index(at: offset).map { sum + core.transports[$0].streams.count }
                    ?? sum
            }
        )
    }

    /// Number of queued packets in all pacers, whether they may still leave or not.
    var waitingPackets: Int {
        var free = 0
        var place = core.forwarder.firstFreePaced
        while let next = place {
            free += 1
            place = core.forwarder.pacedPackets[next].nextFree
        }
        return core.forwarder.pacedPackets.count - free
    }

    /// Whether all senders know the present state of each transport.
    var destinationsAgree: Bool {
        (0..<core.transports.capacity).allSatisfy { offset in
            guard let index = core.transports.index(at: offset) else { return true }
            let path = core.transports[index].canSend ? core.transports[index].path : nil
            let hasKey = core.transports.destinations[index].key != nil
            return core.transports.destinations[index].path == path && (path != nil || !hasKey)
        }
    }

    /// Returns the sequence numbers that a peer received under one SSRC, in order of arrival.
    func numbers(at index: Int, ssrc: UInt32 = 0xaaaa) -> [UInt16] {
        peers[index].received.filter { $0.ssrc == ssrc }.map { $0.u16(2) }
    }
}

struct Occupancy: Equatable {
    var packets: Int
    var transports: Int
    var paths: Int
    var fragments: Int
    var encodings: Int
    var slots: Int
    var records: Int
    var shares: Int
    var streams: Int
}

/// Addresses of attackers, and other addresses of peers.
extension Path {
    static func from(port: UInt16, host: UInt32 = 0x7f00_0009) -> Self {
        Self(remote: Address(ipv4: host, port: port), local: 0)
    }
}

extension [UInt8] {
    func u16(_ offset: Int) -> UInt16 { UInt16(self[offset]) << 8 | UInt16(self[offset + 1]) }
    func u32(_ offset: Int) -> UInt32 { UInt32(u16(offset)) << 16 | UInt32(u16(offset + 2)) }
    var ssrc: UInt32 { u32(8) }
}

extension [UInt16] {
    /// Whether each number is one more than the one before.
    var isContiguous: Bool { zip(self, dropFirst()).allSatisfy { $1 == $0 &+ 1 } }
}
