import SFU
import TestSupport

#if arch(x86_64)
    import Testing

    @testable import SFU

    /// Test vectors with session keys, which cannot be given to libsrtp2.
    @Suite("SRTP transform", .enabled(if: SRTPEngine.available.contains(.ipsecMB)))
    struct SRTPTransformTests {
        struct Vector: CustomTestStringConvertible, Sendable {
            var testDescription: String
            var profile: SRTPProfile
            var clear: String
            var protected: String
        }

        static let gallia =
            "8040f17b8041f8d35501a0b2 47616c6c696120657374206f6d6e697320646976697361"
            + "20696e207061727465732074726573"
        static let mars =
            "81c8000d4d617273 4e5450314e545032525450200000042a0000e9304c756e61"
            + "deadbeefdeadbeefdeadbeefdeadbeefdeadbeef"

        /// RFC 7714 §16: roll-over counter 0.
        static let rtp = [
            Vector(
                testDescription: "SRTP, AES-128-GCM (16.1)",
                profile: .aeadAes128Gcm,
                clear: gallia,
                protected: "8040f17b8041f8d35501a0b2 f24de3a3fb34de6cacba861c9d7e4bca"
                    + "be633bd50d294e6f42a5f47a51c7d19b36de3adf8833"
                    + "899d7f27beb16a9152cf765ee4390cce"
            ),
            Vector(
                testDescription: "SRTP, AES-256-GCM (16.2)",
                profile: .aeadAes256Gcm,
                clear: gallia,
                protected: "8040f17b8041f8d35501a0b2 32b1de78a822fe12ef9f78fa332e33aa"
                    + "b18012389a58e2f3b50b2a0276ffae0f1ba63799b87b"
                    + "7aa3db36dfffd6b0f9bb7878d7a76c13"
            ),
        ]

        /// RFC 7714 §17: SRTCP index 5d4.
        static let rtcp = [
            Vector(
                testDescription: "SRTCP, AES-128-GCM (17.1)",
                profile: .aeadAes128Gcm,
                clear: mars,
                protected: "81c8000d4d617273 63e94885dcdab67ca727d7662f6b7e997ff5c0f7"
                    + "6c06f32dc676a5f1730d6fda4ce09b4686303ded0bb9275b"
                    + "c84aa45896cf4d2fc5abf87245d9eade 800005d4"
            ),
            Vector(
                testDescription: "SRTCP, AES-256-GCM (17.2)",
                profile: .aeadAes256Gcm,
                clear: mars,
                protected: "81c8000d4d617273 d50ae4d1f5ce5d304ba297e47d470c282c3ece5d"
                    + "bffe0a50a2eaa5c1110555be8415f658c61de0476f1b6fad"
                    + "1d1eb30c4446839f57ff6f6cb26ac3be 800005d4"
            ),
        ]

        @Test(arguments: rtp, [0, 1, 16, 17, 38])
        func `RFC 7714 RTP`(_ vector: Vector, prefix: Int) throws {
            let transform = try gcm(vector.profile)
            let clear = hex(vector.clear)
            let wire = hex(vector.protected)
            let split = 12 + prefix
            var output = Array(clear[..<split])
            output += Array(repeating: 0, count: wire.count - split)
            let rest = Array(clear[split...])
            var span = output.mutableSpan
            let isDone = transform.protectRTP(
                &span,
                headerLength: 12,
                prefixLength: prefix,
                rest: rest.span,
                ssrc: 0x5501_a0b2,
                index: 0xf17b
            )
            #expect(isDone && output == wire)

            var back = Array(repeating: 0 as UInt8, count: wire.count)
            var backSpan = back.mutableSpan
            let isGood = transform.unprotectRTP(
                wire.span,
                headerLength: 12,
                ssrc: 0x5501_a0b2,
                index: 0xf17b,
                into: &backSpan
            )
            #expect(isGood && back.starts(with: clear))
        }

        /// Tests a key that is prepared once, and one that is prepared for each packet.
        @Test(arguments: rtcp, [false, true])
        func `RFC 7714 RTCP`(_ vector: Vector, rare: Bool) throws {
            let transform = try gcm(vector.profile, rare: rare)
            let clear = hex(vector.clear)
            let wire = hex(vector.protected)
            var output = clear + Array(repeating: 0, count: 20)
            var span = output.mutableSpan
            let isDone = transform.protectRTCP(
                &span,
                length: clear.count,
                ssrc: 0x4d61_7273,
                index: 0x5d4
            )
            #expect(isDone && output == wire)

            var back = Array(repeating: 0 as UInt8, count: wire.count)
            var backSpan = back.mutableSpan
            let isGood = transform.unprotectRTCP(
                wire.span,
                ssrc: 0x4d61_7273,
                index: 0x5d4,
                into: &backSpan
            )
            #expect(isGood && back.starts(with: clear))
        }

        /// RFC 3711 §B.2: with SSRC and index 0 the vector is the salt.
        @Test func `AES counter mode's keystream`() throws {
            let manager = try #require(MultiBufferManager())
            let key = hex("2B7E151628AED2A6ABF7158809CF4F3C")
            let salt = hex("F0F1F2F3F4F5F6F7F8F9FAFBFCFD")
            let hash = Array(repeating: 0 as UInt8, count: 20)
            let transform = SRTPTransform(
                profile: .aes128CmSha1_80,
                encryption: key.span,
                authentication: hash.span,
                salt: salt.span,
                manager: manager
            )
            let header = hex("80600000 00000000 00000000")
            let zeros = Array(repeating: 0 as UInt8, count: 48)
            var output = header + Array(repeating: 0, count: 58)
            var span = output.mutableSpan
            let isDone = transform.protectRTP(
                &span,
                headerLength: 12,
                prefixLength: 0,
                rest: zeros.span,
                ssrc: 0,
                index: 0
            )
            manager.computeTags()
            let keystream = """
                E03EAD0935C95E80E166B16DD92B4EB4
                D23513162B02D0F72A43A2FE4A5F97AB
                41E95B3BB0A2E8DD477901E4FCA894C0
                """
            #expect(isDone && Array(output[12..<60]) == hex(keystream))
        }

        /// Makes a transform with key and salt of RFC 7714 §16 and §17.
        private func gcm(_ profile: SRTPProfile, rare: Bool = false) throws -> SRTPTransform {
            let manager = try #require(MultiBufferManager())
            let key = (0..<UInt8(profile.keyLength)).map(\.self)
            let salt = hex("517569642070726f2071756f")
            let nothing: [UInt8] = []
            return SRTPTransform(
                profile: profile,
                encryption: key.span,
                authentication: nothing.span,
                salt: salt.span,
                manager: manager,
                rare: rare
            )
        }
    }
#endif
