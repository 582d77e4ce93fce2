import HostilePeer
import RTP
import WorkerInterface

/// Ledger of proofs that a peer is at the address that its media goes to, as the network sees them
/// (RFC 7675).
///
/// A proof is an answer to a check that the SFU has sent to that very address, or the handshake. An
/// attacker who spoofs an address receives nothing that is sent to it, and so cannot give a proof.
package struct ConsentLedger {
    /// Traffic of an address that requested nothing.
    private struct Strange {
        var bytesIn = 0
        var bytesOut = 0
        var events = 0
    }

    /// Checks of the SFU, by their destination.
    private var asked: [Path: [[UInt8]]] = [:]
    private var proved: [Path: Instant] = [:]
    private var strange: [Path: Strange] = [:]

    /// Lifetime of consent (RFC 7675 §5.1), and the time that a check may take.
    private static let milliseconds: Int64 = 30_000 + 2_500
    private static let asksRemembered = 64
    /// Most bytes sent for each byte received, and a handshake's first flights.
    private static let gain = 3
    private static let handshakeBytes = 6_000
    private static let request: [UInt8] = [0x00, 0x01]
    private static let success: [UInt8] = [0x01, 0x01]

    /// Records a datagram with a spoofed source.
    mutating func noteForged(_ bytes: Int, from path: Path) {
        guard Adversary.isStranger(path) else { return }
        strange[path, default: Strange()].bytesIn += bytes
    }

    /// Records a datagram from an address.
    mutating func noteIn(_ bytes: [UInt8], from path: Path, at now: Instant, isHandshake: Bool) {
        if isHandshake { proved[path] = now }
        guard bytes.count >= 20, Array(bytes[0..<2]) == Self.success,
            asked[path]?.contains(Array(bytes[8..<20])) == true
        else { return }
        proved[path] = now
    }

    /// Records a datagram to an address; returns a violation, if any.
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

    /// Returns the violation if media must not go to an address of a client.
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
