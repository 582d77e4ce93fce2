import LoadPeer
import RTP

@testable import SFU
@testable import WorkerInterface

/// Ledger of the packet sent under each index of each key and SSRC.
///
/// It observes the core's output and has the viewers' keys. One index must never carry two packets:
/// with GCM that reveals the key's secrets (RFC 7714 §8), in counter mode the packets themselves
/// (RFC 3711 §9.1). Successful decryption proves a packet's index; under one key and index each
/// clear packet has exactly one protected form, so repeated packets are compared as they are.
final class PacketLedger {
    private struct Place: Hashable {
        var peer: TransportID
        var ssrc: UInt32
        var isRTCP: Bool
        /// 48 bits for RTP (RFC 3711 §3.3.1), 31 for RTCP (§3.4).
        var index: UInt64
    }

    private final class Listener {
        var session: SRTPSession
        var newest: [UInt32: UInt64] = [:]

        init(_ session: consuming SRTPSession) { self.session = session }
    }

    private let context: SRTPContext
    private var listeners: [TransportID: Listener] = [:]
    private var sent: [Place: Int] = [:]
    /// Indexes that carried two packets, in words.
    private(set) var faults: [String] = []
    /// Packets that cannot be decrypted under the index that the preceding numbers imply.
    private(set) var undecryptable = 0
    private(set) var packets = 0
    private(set) var reports = 0
    /// Packets that were sent again unchanged.
    private(set) var repeats = 0
    /// Streams whose 16-bit numbers have wrapped.
    private(set) var wrapped: Set<UInt32> = []

    init(engine: SRTPEngine) { context = SRTPContext(engine: engine) }

    /// Records a datagram that left the core; ignores all but SRTP.
    func note(_ datagram: [UInt8], to peer: Call.Peer) {
        guard datagram.count > 12, datagram[0] >> 6 == 2 else { return }
        guard let listener = listener(for: peer) else { return undecryptable += 1 }
        let isRTCP = (192...223).contains(datagram[1])
        if isRTCP { reports += 1 } else { packets += 1 }
        let place =
            isRTCP
            ? report(datagram, to: peer.id, profile: listener.session.profile)
            : packet(datagram, to: peer.id, listener)
        let hash = datagram.hashValue
        if let before = sent.updateValue(hash, forKey: place) {
            repeats += 1
            if before != hash { faults.append("\(place) carries two packets") }
        } else if !decrypts(datagram, listener, isRTCP: isRTCP) {
            undecryptable += 1
        }
    }

    private func listener(for peer: Call.Peer) -> Listener? {
        if let known = listeners[peer.id] { return known }
        guard let profile = peer.peer.profile, let keys = peer.peer.keys,
            let session = try? SRTPSession(
                profile: profile,
                keys: keys,
                context: context,
                maxStreams: 1_000
            )
        else { return nil }
        let listener = Listener(session)
        listeners[peer.id] = listener
        return listener
    }

    private func packet(
        _ datagram: [UInt8],
        to peer: TransportID,
        _ listener: Listener
    ) -> Place {
        let number = datagram.u16(2)
        let newest = listener.newest[datagram.ssrc] ?? UInt64(number)
        let step = Int64(Int16(bitPattern: number &- UInt16(truncatingIfNeeded: newest)))
        let index = UInt64(max(0, Int64(newest) + step))
        if index >> 16 > newest >> 16 { wrapped.insert(datagram.ssrc) }
        listener.newest[datagram.ssrc] = max(newest, index)
        return Place(peer: peer, ssrc: datagram.ssrc, isRTCP: false, index: index)
    }

    private func report(
        _ datagram: [UInt8],
        to peer: TransportID,
        profile: SRTPProfile
    ) -> Place {
        let word = datagram.count - (profile.isAEAD ? 4 : 4 + profile.rtpOverhead)
        let index = UInt64(datagram.u32(word) & 0x7fff_ffff)
        return Place(peer: peer, ssrc: datagram.u32(4), isRTCP: true, index: index)
    }

    private func decrypts(_ datagram: [UInt8], _ listener: Listener, isRTCP: Bool) -> Bool {
        var clear = datagram
        var output = clear.mutableSpan
        let length =
            isRTCP
            ? try? listener.session.unprotectRTCP(datagram.span, into: &output)
            : try? listener.session.unprotectRTP(datagram.span, into: &output)
        return length != nil
    }
}
