package import RTP
package import SFU
package import WorkerInterface

/// A WebRTC client without a codec: full ICE, DTLS, SRTP; bytes and time in, bytes out.
///
/// The load client runs thousands of them over sockets, and the tests run them against the core in
/// virtual time. It is ICE-controlling and nominates the one path that it has.
package struct LoadPeer: ~Copyable {
    /// Kind of a received datagram.
    package enum Received: Equatable {
        case nothing
        /// ICE and DTLS are complete.
        case connected
        /// `clear` returns a decrypted RTP packet of this length.
        case rtp(length: Int)
        case rtcp(length: Int)
        /// SRTP or SRTCP that the keys do not decrypt.
        case undecryptable
        case failed
    }

    package static let checkMilliseconds: Int64 = 2_500
    private static let firstCheckMilliseconds: Int64 = 50

    package private(set) var localFragment: String
    package private(set) var localPassword: String
    package private(set) var isConnected = false
    /// Whether the SFU has ended the DTLS association.
    package private(set) var isClosed = false
    package private(set) var profile: SRTPProfile?
    /// Negotiated keys, for an observer that decrypts this peer's traffic.
    package private(set) var keys: SRTPKeys?
    package private(set) var checksAnswered = 0
    /// Path of its datagrams: the server, as this peer sees it.
    package var path: Path

    private let identity: DTLSIdentity
    private let dtlsRole: DTLSRole
    private let context: SRTPContext
    private let tieBreaker: UInt64
    private var username: [UInt8] = []
    private var remotePassword: [UInt8] = []
    private var fingerprints: [Fingerprint] = []
    private var transaction: UInt64
    private var checkDue: Instant?
    private var dtls: DTLSAssociation?
    private var srtp: SRTPSession?
    private var packet: [UInt8] = Array(repeating: 0, count: Batch.stride)

    /// Creates an unconnected peer; its credentials derive from `seed`.
    package init(
        identity: DTLSIdentity,
        context: SRTPContext,
        path: Path,
        seed: UInt64,
        dtlsRole: DTLSRole = .client
    ) {
        self.identity = identity
        self.dtlsRole = dtlsRole
        self.context = context
        self.path = path
        localFragment = Self.fragment(seed: seed)
        localPassword = Self.password(seed: seed)
        tieBreaker = seed
        transaction = seed &* 0x9e37_79b9_7f4a_7c15
    }

    /// Returns the ICE fragment of a peer made with `seed`, for an offer that is made before it.
    package static func fragment(seed: UInt64) -> String { "load" + String(seed, radix: 36) }

    /// Returns the ICE password of a peer made with `seed`; it is as guessable as the seed.
    package static func password(seed: UInt64) -> String {
        "loadpeerpassword00000000" + String(seed, radix: 36)
    }

    /// Starts connectivity checks with the credentials of an answer.
    package mutating func connect(
        fragment: String,
        password: String,
        fingerprint: Fingerprint,
        at now: Instant,
        into output: inout Batch
    ) {
        username = Array("\(fragment):\(localFragment)".utf8)
        remotePassword = Array(password.utf8)
        fingerprints = [fingerprint]
        check(at: now, into: &output)
    }

    /// Restarts ICE (RFC 8445 §9); the DTLS association and its keys remain.
    ///
    /// `seed` gives its new credentials, `fragment` and `password` come from an answer.
    package mutating func restart(
        seed: UInt64,
        fragment: String,
        password: String,
        at now: Instant,
        into output: inout Batch
    ) {
        localFragment = Self.fragment(seed: seed)
        localPassword = Self.password(seed: seed)
        username = Array("\(fragment):\(localFragment)".utf8)
        remotePassword = Array(password.utf8)
        check(at: now, into: &output)
    }

    /// Sends a connectivity check that nominates the path.
    package mutating func check(at now: Instant, into output: inout Batch) {
        transaction &+= 1
        let id = TransactionID(high: 0x6c6f6164, low: transaction)
        let key = remotePassword
        let name = username
        let breaker = self.tieBreaker
        output.append(to: path) { bytes in
            STUNWriter.bindingRequest(
                id,
                username: name.span,
                priority: 1,
                tieBreaker: breaker,
                useCandidate: true,
                into: &bytes,
                integrity: { Digest.hmacSHA1(key: key.span, message: $0) }
            )
        }
        let interval = isConnected ? Self.checkMilliseconds : Self.firstCheckMilliseconds
        checkDue = now.advanced(milliseconds: interval)
    }

    /// Time of the next `expire`.
    package var deadline: Instant? {
        mutating get {
            let handshakeDue = dtls?.deadline
            guard let checkDue, let handshakeDue else { return checkDue ?? handshakeDue }
            return min(checkDue, handshakeDue)
        }
    }

    package mutating func expire(at now: Instant, into output: inout Batch) {
        if let checkDue, checkDue <= now { check(at: now, into: &output) }
        if let due = dtls?.deadline, due <= now {
            _ = dtls?.expire(at: now)
            sendDTLS(into: &output)
        }
    }

    package mutating func receive(
        _ datagram: Span<UInt8>,
        at now: Instant,
        into output: inout Batch
    ) -> Received {
        switch Datagram(datagram) {
        case .stun(let bytes): receiveSTUN(bytes, at: now, into: &output)
        case .dtls(let bytes): receiveDTLS(bytes, at: now, into: &output)
        case .rtp(let bytes): decryptRTP(bytes)
        case .rtcp(let bytes): decryptRTCP(bytes)
        case nil: .nothing
        }
    }

    private mutating func receiveSTUN(
        _ bytes: Span<UInt8>,
        at now: Instant,
        into output: inout Batch
    ) -> Received {
        guard let message = try? STUNMessage(bytes) else { return .nothing }
        if message.messageClass == .request { answer(message, into: &output) }
        guard message.messageClass == .success else { return .nothing }
        checksAnswered += 1
        guard dtls == nil else { return .nothing }
        dtls = try? DTLSAssociation(
            identity: identity,
            role: dtlsRole,
            fingerprints: fingerprints,
            at: now
        )
        sendDTLS(into: &output)
        return .nothing
    }

    /// Answers a check from the other side; libnice sends some even as a lite agent.
    private func answer(_ request: borrowing STUNMessage, into output: inout Batch) {
        let key = localPassword.utf8.span
        let covered = [UInt8](capacity: request.bytes.count) { request.integrityInput(into: &$0) }
        guard request.integrityOffset != nil,
            Digest.equal(
                Digest.hmacSHA1(key: key, message: covered.span).span,
                request.integrityTag
            )
        else { return }
        let seen = STUNAddress(
            high: path.remote.high,
            low: path.remote.low,
            port: path.remote.port
        )
        output.append(to: path) { bytes in
            STUNWriter.bindingSuccess(
                request.transactionID,
                address: seen,
                into: &bytes,
                integrity: { Digest.hmacSHA1(key: key, message: $0) }
            )
        }
    }

    private mutating func receiveDTLS(
        _ bytes: Span<UInt8>,
        at now: Instant,
        into output: inout Batch
    ) -> Received {
        guard let progress = dtls?.receive(bytes, at: now) else { return .nothing }
        sendDTLS(into: &output)
        switch progress {
        case .handshaking, .established:
            return .nothing
        case .closed:
            isClosed = true
            return .nothing
        case .failed:
            return .failed
        case .connected(let profile, let keys):
            self.profile = profile
            self.keys = keys
            srtp = try? SRTPSession(profile: profile, keys: keys, context: context)
            isConnected = true
            checkDue = now.advanced(milliseconds: Self.checkMilliseconds)
            return .connected
        }
    }

    private mutating func sendDTLS(into output: inout Batch) {
        while output.free > 0 {
            var isDone = false
            output.append(to: path) { bytes in
                isDone = dtls?.nextDatagram(into: &bytes) != true
            }
            if isDone { return }
        }
    }

    private mutating func decryptRTP(_ bytes: Span<UInt8>) -> Received {
        guard bytes.count <= packet.count else { return .undecryptable }
        var buffer: [UInt8] = []
        swap(&buffer, &packet)
        var clear = buffer.mutableSpan
        let length = try? srtp?.unprotectRTP(bytes, into: &clear)
        swap(&buffer, &packet)
        guard let length else { return .undecryptable }
        return .rtp(length: length)
    }

    private mutating func decryptRTCP(_ bytes: Span<UInt8>) -> Received {
        guard bytes.count <= packet.count else { return .undecryptable }
        var buffer: [UInt8] = []
        swap(&buffer, &packet)
        var clear = buffer.mutableSpan
        let length = try? srtp?.unprotectRTCP(bytes, into: &clear)
        swap(&buffer, &packet)
        guard let length else { return .undecryptable }
        return .rtcp(length: length)
    }

    /// Returns the last decrypted packet.
    package func clear(length: Int) -> [UInt8] { Array(packet[0..<length]) }

    /// Calls `body` with the last decrypted packet; `length` is from `receive`.
    package func withDecrypted(length: Int, _ body: (Span<UInt8>) -> Void) {
        body(packet.span.extracting(0..<length))
    }

    /// Encrypts and queues a whole RTP packet; `index` is its index (RFC 3711 §3.3.1).
    package mutating func sendRTP(
        _ clear: Span<UInt8>,
        index: UInt64,
        into output: inout Batch
    ) {
        guard let header = try? Packet(encrypted: clear).headerLength else { return }
        var target = output.next
        for position in 0..<header { target[position] = clear[position] }
        let length = try? srtp?.protectRTP(
            &target,
            headerLength: header,
            prefixLength: 0,
            rest: clear.extracting(header..<clear.count),
            index: index
        )
        context.finish()
        if let length { output.commit(length: length, to: path) }
    }

    /// Encrypts and queues a compound that `fill` writes.
    package mutating func sendRTCP(
        into output: inout Batch,
        _ fill: (inout OutputSpan<UInt8>) -> Void
    ) {
        let length = output.compose(fill)
        var buffer = output.next
        if let total = try? srtp?.protectRTCP(&buffer, length: length) {
            output.commit(length: total, to: path)
        }
    }

    /// Closes the DTLS association, which notifies the other side.
    package mutating func close(into output: inout Batch) {
        dtls?.close()
        sendDTLS(into: &output)
    }
}
