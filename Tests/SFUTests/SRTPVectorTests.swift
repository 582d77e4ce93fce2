import TestSupport
import Testing

@testable import SFU

@Suite("SRTP vectors")
struct SRTPVectorTests {
    /// RFC 3711 §B.3: label and key.
    static let derived: [(SRTPKeyDerivation.Label, String)] = [
        (.rtpEncryption, "C61E7A93744F39EE10734AFE3FF7A087"),
        (.rtpSalt, "30CBBC08863D8C85D49DB34A9AE1"),
        (
            .rtpAuthentication,
            """
            CEBE321F6FF7716B6FD4AB49AF256A15 6D38BAA48F0A0ACF3C34E2359E6CDBCE
            E049646C43D9327AD175578EF7227098 6371C10C9A369AC2F94A8C5FBCDDDC25
            6D6E919A48B610EF17C2041E47403576 6B68642C59BBFC2F34DB60DBDFB2
            """
        ),
    ]

    @Test(arguments: derived)
    func `session keys`(label: SRTPKeyDerivation.Label, expected: String) throws {
        let key = hex("E1F97A0D3E018BE0D64FA32C06DE4139")
        let salt = hex("0EC675AD498AFEEBB6960B3AABE6")
        var output = Array(repeating: 0 as UInt8, count: hex(expected).count)
        var span = output.mutableSpan
        try SRTPKeyDerivation.derive(label, key: key.span, salt: salt.span, into: &span)
        #expect(output == hex(expected))
    }

    /// Whole packets from master keys; `0` is both roll-over counter and SRTCP index - 1.
    ///
    /// The keys are RFC 3711 §B.3's and counting bytes; the protected packets were made with
    /// Python's `cryptography`, by the formulas of RFC 3711 §4 and RFC 7714 §8–9.
    struct Whole: CustomTestStringConvertible, Sendable {
        var profile: SRTPProfile
        var key: String
        var salt: String
        var rtp: String
        var rtcp: String
        var testDescription: String { profile.name }
    }

    static let whole = [
        Whole(
            profile: .aes128CmSha1_80,
            key: "E1F97A0D3E018BE0D64FA32C06DE4139",
            salt: "0EC675AD498AFEEBB6960B3AABE6",
            rtp: "4e55dc4ce79978d88ca4d215949d2402 b78d6acc99ea179b8dbb",
            rtcp: "7128035be487b9bdbef89041f977a5a8 80000001 993e08cd54d6c1230798"
        ),
        Whole(
            profile: .aeadAes128Gcm,
            key: "000102030405060708090a0b0c0d0e0f",
            salt: "a0a1a2a3a4a5a6a7a8a9aaab",
            rtp: "c5002ede04cfdd2eb91159e0880aa06e d2976826f796b201df3131a127e8a392",
            rtcp: "c98b8b5df0392a55852b6c21ac8e7025 c52c6fbea2b3b446ea31123ba88ce61e 80000001"
        ),
        Whole(
            profile: .aeadAes256Gcm,
            key: "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
            salt: "a0a1a2a3a4a5a6a7a8a9aaab",
            rtp: "0af7f21e8a90bdad7a425c9c31ed4bb1 d90238917e7390a2793500e1681acaea",
            rtcp: "8abfafa780070a90e80f9161cf4aac08 1ed93aaa53c15b0f3ed1a3b984167b03 80000001"
        ),
    ]

    @Test(arguments: whole, SRTPEngine.available)
    func `packets from master keys`(_ vector: Whole, engine: SRTPEngine) throws {
        let key = hex(vector.key)
        let salt = hex(vector.salt)
        let material = key + key + salt + salt
        var ends = try SRTPEnds(
            vector.profile,
            SRTPContext(engine: engine),
            material: material
        )
        let payload = Array(repeating: 0xab as UInt8, count: 16)

        let rtpHeader = hex("800f1234 decafbad cafebabe")
        #expect(ends.protect(rtpHeader + payload) == rtpHeader + hex(vector.rtp))
        #expect(ends.unprotect(rtpHeader + hex(vector.rtp)) == .success(rtpHeader + payload))

        let rtcpHeader = hex("81c8000b cafebabe")
        #expect(ends.protectRTCP(rtcpHeader + payload) == rtcpHeader + hex(vector.rtcp))
        #expect(ends.unprotectRTCP(rtcpHeader + hex(vector.rtcp)) == .success(rtcpHeader + payload))
    }
}
