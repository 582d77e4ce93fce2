import HostilePeer
import RTP
import WorkerInterface

/// Proofs that a peer is where its media goes, as the network sees them (RFC 7675).
///
/// A proof is an answer to a check that the SFU has sent to that very address, or the handshake.
/// A forger of an address sees nothing of what goes there, and so can give no proof.
package struct ConsentLedger {
    /// Traffic of an address where nobody ever asked for anything.
    private struct Strange {
        var bytesIn = 0
        var bytesOut = 0
        var events = 0
    }

    /// Checks of the SFU, by where they went.
    private var asked: [Path: [[UInt8]]] = [:]
    private var proved: [Path: Instant] = [:]
    private var strange: [Path: Strange] = [:]

    /// The time that consent lasts (RFC 7675 §5.1), and as much again as a check may take.
    private static let milliseconds: Int64 = 30_000 + 2_500
    private static let asksRemembered = 64
    /// Bytes sent for each that came, and a handshake's first flights.
    private static let gain = 3
    private static let handshakeBytes = 6_000
    private static let request: [UInt8] = [0x00, 0x01]
    private static let success: [UInt8] = [0x01, 0x01]

    /// Notes a datagram whose source is forged.
    mutating func noteForged(_ bytes: Int, from path: Path) {
        guard Adversary.isStranger(path) else { return }
        strange[path, default: Strange()].bytesIn += bytes
    }

    /// Notes a datagram that has come from an address.
    mutating func noteIn(_ bytes: [UInt8], from path: Path, at now: Instant, isHandshake: Bool) {
        if isHandshake { proved[path] = now }
        guard bytes.count >= 20, Array(bytes[0..<2]) == Self.success,
            asked[path]?.contains(Array(bytes[8..<20])) == true
        else { return }
        proved[path] = now
    }

    /// Notes a datagram that goes to an address; returns the objection to it, if any.
    mutating func noteOut(
        _ bytes: [UInt8],
        to path: Path,
        at now: Instant
    ) -> (Invariant, String)? {
        let protocolClass = Datagram(bytes.span)
        if case .stun = protocolClass, Array(bytes[0..<2]) == Self.request {
            asked[path, default: []].append(Array(bytes[8..<20]))
            if asked[path, default: []].count > Self.asksRemembered { asked[path]?.removeFirst() }
        }
        guard Adversary.isStranger(path) else { return nil }
        strange[path, default: Strange()].bytesOut += bytes.count
        let known = strange[path, default: Strange()]
        switch protocolClass {
        case .rtp, .rtcp: return (.consent, "media goes to \(path.remote), which never answered")
        case .stun, .dtls, nil: break
        }
        guard known.bytesOut <= Self.gain * known.bytesIn + Self.handshakeBytes else {
            return (
                .consent,
                "\(known.bytesOut) bytes go to \(path.remote) for \(known.bytesIn) from there"
            )
        }
        return nil
    }

    /// Why media may not go to an address of a client, if it may not.
    func objection(
        toMediaFor path: Path,
        at now: Instant,
        since stall: Instant
    ) -> (Invariant, String)? {
        guard let proof = proved[path] else {
            return (.consent, "media goes to \(path.remote) before any proof from there")
        }
        let silence = now.milliseconds(since: max(proof, min(stall, now)))
        guard silence > Self.milliseconds else { return nil }
        return (.consent, "media goes to \(path.remote) \(silence) ms after the last proof")
    }
}
