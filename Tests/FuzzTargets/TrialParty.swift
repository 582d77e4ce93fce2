import LoadPeer
import RTP
import SFU
import WorkerInterface

/// One side of a transport in a trial: its keys and its negotiated configuration.
struct TrialParty: ~Copyable {
    let id: TransportID
    let path: Path
    let configuration: TransportConfiguration
    private var peer: LoadPeer
    private var session: SRTPSession
    private let context: SRTPContext
    /// Highest sent index of each SSRC (RFC 3711 §3.3.1).
    private var highest: [UInt32: UInt64] = [:]
    /// Hash of the bits that last came under each SSRC and number.
    private var received: [UInt64: UInt64] = [:]

    static let profile = SRTPProfile.aeadAes128Gcm
    /// Largest packet, header included, that is still accepted once encrypted.
    private static let largest = Batch.maximumLength - 24

    static let identity: DTLSIdentity = {
        guard let identity = try? DTLSIdentity() else { preconditionFailure("no certificate") }
        return identity
    }()

    static func path(_ index: Int) -> Path {
        Path(remote: Address(ipv4: 0x7f00_0001, port: 10_000 + UInt16(index)), local: 0)
    }

    /// Returns the keys that the handshake would have given to each side.
    static func keys(of index: Int, role: DTLSRole) -> SRTPKeys {
        let count = 2 * (profile.keyLength + profile.saltLength)
        let exported = (0..<count).map { UInt8(truncatingIfNeeded: $0 + 100 * index) }
        return SRTPKeys(profile: profile, exported: exported.span, role: role)
    }

    init(
        _ index: Int,
        _ publications: [PublicationConfiguration],
        _ slots: [SlotConfiguration]
    ) {
        id = TransportID(index: UInt32(index), generation: 1)
        path = Self.path(index)
        context = SRTPContext(engine: .libsrtp2)
        session = Self.session(of: index, context)
        peer = LoadPeer(
            identity: Self.identity,
            context: context,
            path: path,
            seed: UInt64(index + 1)
        )
        configuration = TransportConfiguration(
            ice: ICECredentials(
                localFragment: "core\(index)",
                localPassword: "corepassword\(index)-0123456789",
                remoteFragment: peer.localFragment,
                remotePassword: peer.localPassword
            ),
            dtlsRole: .server,
            fingerprints: [Self.identity.fingerprint],
            reducedSizeRTCP: true,
            cname: "fuzz",
            publications: publications,
            slots: slots
        )
    }

    private static func session(of index: Int, _ context: SRTPContext) -> SRTPSession {
        let keys = keys(of: index, role: .client)
        guard let made = try? SRTPSession(profile: profile, keys: keys, context: context) else {
            preconditionFailure("no SRTP")
        }
        return made
    }

    /// Makes a connectivity check that nominates the path.
    mutating func takeCheck(at now: Instant) -> [UInt8] {
        var sent = Batch(capacity: 2)
        peer.connect(
            fragment: configuration.ice.localFragment,
            password: configuration.ice.localPassword,
            fingerprint: Self.identity.fingerprint,
            at: now,
            into: &sent
        )
        return sent[0].indices.map { sent[0][$0] }
    }

    /// Encrypts RTP as far as SRTP has to understand it; `nil` for anything else.
    mutating func encryptedRTP(_ bytes: [UInt8]) -> [UInt8]? {
        var packet = Array(bytes.prefix(Self.largest))
        guard packet.count >= 12 else { return nil }
        packet[0] = 0x80 | packet[0] & 0x3f
        // These values would be taken for RTCP packet types.
        if (192...223).contains(packet[1]) { packet[1] &= 0x7f }
        guard let header = try? Packet(encrypted: packet.span).headerLength else { return nil }
        let number = UInt64(packet[2]) << 8 | UInt64(packet[3])
        let ssrc = packet[8..<12].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        let index = Self.index(of: number, after: highest[ssrc])
        highest[ssrc] = max(index, highest[ssrc] ?? 0)
        var sent = Batch(capacity: 2)
        var target = sent.next
        for position in 0..<header { target[position] = packet[position] }
        guard
            let length = try? session.protectRTP(
                &target,
                headerLength: header,
                prefixLength: 0,
                rest: packet.span.extracting(header..<packet.count),
                index: index
            )
        else { return nil }
        context.finish()
        sent.commit(length: length, to: path)
        return sent[0].indices.map { sent[0][$0] }
    }

    /// Returns the index with this number that is nearest to the highest one.
    private static func index(of number: UInt64, after highest: UInt64?) -> UInt64 {
        guard let highest else { return number }
        let candidate = highest & ~0xffff | number
        if candidate + 0x8000 < highest { return candidate + 0x1_0000 }
        if candidate > highest + 0x8000, candidate >= 0x1_0000 { return candidate - 0x1_0000 }
        return candidate
    }

    /// Encrypts bytes that may be taken for RTCP; `nil` where they are too short.
    mutating func encryptedRTCP(_ bytes: [UInt8]) -> [UInt8]? {
        var compound = Array(bytes.prefix(Self.largest))
        guard compound.count >= 8 else { return nil }
        compound[0] = 0x80 | compound[0] & 0x3f
        if !(192...223).contains(compound[1]) { compound[1] = 200 | compound[1] & 7 }
        var sent = Batch(capacity: 2)
        let length = sent.compose { output in
            for byte in compound { output.append(byte) }
        }
        var target = sent.next
        guard let total = try? session.protectRTCP(&target, length: length) else { return nil }
        sent.commit(length: total, to: path)
        return sent[0].indices.map { sent[0][$0] }
    }

    /// Checks a datagram for this party against what a receiver may expect.
    mutating func inspect(_ datagram: [UInt8]) throws(Violation) {
        switch Datagram(datagram.span) {
        case .rtp:
            guard let clear = try decrypted(datagram, isRTCP: false) else { return }
            guard let ssrc = try? Packet(clear.span).ssrc else {
                throw Violation("a malformed packet goes out")
            }
            guard configuration.slots.contains(where: { $0.sends(ssrc) }) else {
                throw Violation("a packet goes out under an SSRC that was never agreed on")
            }
        case .rtcp:
            guard let clear = try decrypted(datagram, isRTCP: true) else { return }
            var blocks = RTCPBlocks(clear.span)
            while blocks.next() != nil {}
            guard !blocks.isMalformed else { throw Violation("malformed RTCP goes out") }
        case .stun, .dtls: break
        case nil: throw Violation("something unknown goes out")
        }
    }

    /// Returns `nil` for a packet that was sent before: a retransmission may be the same bits.
    private mutating func decrypted(
        _ datagram: [UInt8],
        isRTCP: Bool
    ) throws(Violation) -> [UInt8]? {
        var clear = [UInt8](repeating: 0, count: Batch.stride)
        var target = clear.mutableSpan
        let length: Int
        do throws(SRTPError) {
            length =
                isRTCP
                ? try session.unprotectRTCP(datagram.span, into: &target)
                : try session.unprotectRTP(datagram.span, into: &target)
        } catch {
            guard error == .replay else { throw Violation("what goes out does not open: \(error)") }
            let isSame = isRTCP || received[Self.key(of: datagram)] == Self.hash(datagram)
            guard isSame else { throw Violation("one index carries other bits than before") }
            return nil
        }
        if !isRTCP { received[Self.key(of: datagram)] = Self.hash(datagram) }
        clear.removeLast(clear.count - length)
        return clear
    }
}

extension TrialParty {
    private static func key(of datagram: [UInt8]) -> UInt64 {
        UInt64(datagram.span.u32(at: 8)) << 16 | UInt64(datagram.span.u16(at: 2))
    }

    /// Hashes with FNV-1a.
    private static func hash(_ datagram: [UInt8]) -> UInt64 {
        datagram.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
    }
}

extension SlotConfiguration {
    fileprivate func sends(_ ssrc: SSRC) -> Bool { ssrc == self.ssrc || ssrc == rtxSSRC }
}
