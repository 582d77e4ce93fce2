import COpenSSL
import RTP
import TestSupport
import Testing

@testable import SFU
@testable import WorkerInterface

@Suite("DTLS")
struct DTLSAssociationTests {
    let here: DTLSIdentity
    let there: DTLSIdentity

    init() throws {
        here = try DTLSIdentity()
        there = try DTLSIdentity()
    }

    @Test func `both sides connect with the same keys`() throws {
        var link = try DTLSLink(client: there, server: here)
        link.run()
        let client = try #require(link.clientEnd.keys)
        let server = try #require(link.serverEnd.keys)
        #expect(link.clientEnd.profile == .aeadAes128Gcm)
        #expect(link.serverEnd.profile == .aeadAes128Gcm)
        let mirrored =
            Digest.equal(client.local, server.remote) && Digest.equal(client.remote, server.local)
        let sameBothWays = Digest.equal(client.local, client.remote)
        #expect(mirrored && !sameBothWays)
        #expect("\(client)" == "SRTPKeys(redacted)")
        #expect(link.now.nanoseconds == 0)
        #expect(link.client.deadline == nil && link.server.deadline == nil)
    }

    @Test(arguments: SRTPProfile.allCases)
    func `the server takes what the client has`(profile: SRTPProfile) throws {
        let limited = try DTLSIdentity(profiles: [profile])
        var link = try DTLSLink(client: limited, server: here)
        link.run()
        #expect(link.clientEnd.profile == profile)
        #expect(link.serverEnd.profile == profile)
    }

    /// Kinds of keys that a client's certificate may have.
    enum CertificateKey: String, CaseIterable, Sendable {
        case p256 = "P-256"
        case p384 = "P-384"
        case p521 = "P-521"
        case rsa = "RSA"
        case ed25519 = "ED25519"

        /// Makes a key and its certificate, as an earlier process would have saved them.
        func identity() throws -> DTLSIdentity {
            let isCurve = rawValue.hasPrefix("P-")
            let context = unsafe EVP_PKEY_CTX_new_from_name(nil, isCurve ? "EC" : rawValue, nil)
            defer { unsafe EVP_PKEY_CTX_free(context) }
            var made: OpaquePointer?
            try #require(unsafe EVP_PKEY_keygen_init(context) == 1)
            if isCurve { try #require(unsafe EVP_PKEY_CTX_set_group_name(context, rawValue) == 1) }
            try #require(unsafe EVP_PKEY_generate(context, &made) == 1)
            guard let key = unsafe made else { throw DTLSError.unavailable }
            defer { unsafe EVP_PKEY_free(key) }
            let certificate = try unsafe Self.certificate(of: key, self == .ed25519)
            defer { unsafe X509_free(certificate) }
            return try unsafe DTLSIdentity(key, certificate, DTLSIdentity.profiles)
        }

        private static func certificate(
            of key: OpaquePointer,
            _ signsWithoutDigest: Bool
        ) throws -> OpaquePointer {
            guard signsWithoutDigest else { return try unsafe DTLSIdentity.selfSigned(with: key) }
            guard let other = unsafe ssl_make_p256_key() else { throw DTLSError.unavailable }
            defer { unsafe EVP_PKEY_free(other) }
            let certificate = try unsafe DTLSIdentity.selfSigned(with: other)
            guard unsafe X509_set_pubkey(certificate, key) == 1,
                unsafe X509_sign(certificate, key, nil) > 0
            else { throw DTLSError.unavailable }
            return unsafe certificate
        }
    }

    @Test(arguments: CertificateKey.allCases)
    func `a client's certificate may have any usual key`(key: CertificateKey) throws {
        var link = try DTLSLink(client: key.identity(), server: here)
        link.run()
        #expect(link.serverEnd.profile == .aeadAes128Gcm)
        #expect(link.clientEnd.profile == .aeadAes128Gcm)
    }

    @Test func `the server chooses by its own preference`() throws {
        let reversed = try DTLSIdentity(profiles: DTLSIdentity.profiles.reversed())
        var link = try DTLSLink(client: reversed, server: here)
        link.run()
        #expect(link.serverEnd.profile == .aeadAes128Gcm)
    }

    @Test func `every datagram fits the path`() throws {
        var link = try DTLSLink(client: there, server: here)
        var largest = 0
        link.run { _, datagram in
            largest = max(largest, datagram.count)
            return datagram
        }
        #expect(largest <= DTLSAssociation.maxDatagram)
        #expect(link.sent == 4 || link.sent == 5)
    }

    @Test(arguments: [DTLSRole.client, .server])
    func `a certificate without a matching fingerprint ends it`(checking: DTLSRole) throws {
        let wrong = try DTLSIdentity()
        var link = try DTLSLink(
            client: there,
            server: here,
            clientExpects: checking == .client ? [wrong.fingerprint] : nil,
            serverExpects: checking == .server ? [wrong.fingerprint] : nil
        )
        link.run()
        let refusing = checking == .client ? link.clientEnd : link.serverEnd
        let refused = checking == .client ? link.serverEnd : link.clientEnd
        #expect(refusing.reason == .fingerprintMismatch)
        #expect(refused.reason == .handshakeFailed || refused.isOpen)
        #expect(refused.keys == nil)
    }

    @Test func `one of several fingerprints is enough, and none is not`() throws {
        let certificate = here.fingerprint
        let other = Fingerprint(algorithm: .sha512, digest: Array(repeating: 7, count: 64))
        var link = try DTLSLink(
            client: there,
            server: here,
            clientExpects: [other, certificate]
        )
        link.run()
        #expect(link.clientEnd.profile != nil)

        var bare = try DTLSLink(client: there, server: here, clientExpects: [])
        bare.run()
        #expect(bare.clientEnd.reason == .fingerprintMismatch)
    }

    @Test func `without SRTP there is nothing to connect for`() throws {
        let without = try DTLSIdentity(profiles: [])
        var link = try DTLSLink(client: without, server: here)
        link.run()
        #expect(link.serverEnd.reason == .noSRTPProfile)
        #expect(link.clientEnd.keys == nil)

        var reverse = try DTLSLink(client: here, server: without)
        reverse.run()
        #expect(reverse.clientEnd.reason == .noSRTPProfile)
        #expect(reverse.serverEnd.keys == nil)
    }

    @Test func `profiles that we lack are no profiles`() throws {
        let limited = try DTLSIdentity(profiles: [.aes128CmSha1_80])
        let other = try DTLSIdentity(profiles: [.aeadAes256Gcm])
        var link = try DTLSLink(client: limited, server: other)
        link.run()
        #expect(link.serverEnd.reason == .noSRTPProfile)
    }

    @Test(arguments: 1...8)
    func `one lost datagram costs a retransmission`(lost: Int) throws {
        var link = try DTLSLink(client: there, server: here)
        link.run { number, datagram in number == lost ? nil : datagram }
        #expect(link.clientEnd.profile == .aeadAes128Gcm)
        #expect(link.serverEnd.profile == .aeadAes128Gcm)
        #expect(link.now.milliseconds(since: Instant(nanoseconds: 0)) <= 2_000)
    }

    @Test(arguments: 1...100 as ClosedRange<UInt64>)
    func `three in ten lost is survived`(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        var link = try DTLSLink(client: there, server: here)
        link.run { _, datagram in
            Int.random(in: 0..<100, using: &random) < 30 ? nil : datagram
        }
        #expect(link.clientEnd.profile == .aeadAes128Gcm)
        #expect(link.serverEnd.profile == .aeadAes128Gcm)
    }

    @Test func `silence ends after thirty seconds`() throws {
        var link = try DTLSLink(client: there, server: here)
        link.run { _, _ in nil }
        #expect(link.clientEnd.reason == .handshakeFailed)
        #expect(link.serverEnd.reason == .handshakeFailed)
        let end = link.now.milliseconds(since: Instant(nanoseconds: 0))
        #expect(end > 20_000 && end <= 30_000)
    }

    /// AES-GCM alone adds 24 bytes.
    @Test(arguments: 0...40)
    func `a forged record of any length ends nothing`(length: Int) throws {
        let forged =
            hex("15 fefd 0001 0000000000ff 00") + [UInt8(length)]
            + [UInt8](repeating: 2, count: length)
        var link = try DTLSLink(client: there, server: here)
        link.serverEnd.note(link.server.receive(forged.span, at: link.now))
        link.run()
        link.serverEnd.note(link.server.receive(forged.span, at: link.now))
        #expect(link.serverEnd.profile != nil)
        link.client.close()
        link.exchange()
        #expect(link.serverEnd.isClosed)
    }

    @Test func `close_notify is accepted, a forged one is not`() throws {
        var link = try DTLSLink(client: there, server: here)
        link.run()
        let forged = hex("15 fefd 0000 0000000000ff 0002 0100")
        link.serverEnd.note(link.server.receive(forged.span, at: link.now))
        #expect(link.serverEnd.profile != nil)
        let fatal = hex("15 fefd 0001 0000000000ff 0002 0228")
        link.serverEnd.note(link.server.receive(fatal.span, at: link.now))
        #expect(link.serverEnd.profile != nil)

        link.client.close()
        link.exchange()
        #expect(link.serverEnd.isClosed)
        if case .closed = link.server.receive(forged.span, at: link.now) {
        } else {
            Issue.record("a closed association woke up")
        }
    }

    @Test func `closing before the end says nothing`() throws {
        var link = try DTLSLink(client: there, server: here)
        _ = takeDatagram(&link.client)
        link.client.close()
        #expect(takeDatagram(&link.client) == nil)
        #expect(link.client.deadline == nil)
    }
}
