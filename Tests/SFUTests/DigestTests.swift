import TestSupport
import Testing

@testable import SFU

@Suite("Digest")
struct DigestTests {
    struct Vector: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var key: [UInt8]
        var message: [UInt8]
        var digest: String
    }

    /// RFC 2202 §3; the empty key is from Python's `hmac`.
    static let vectors = [
        Vector(
            testDescription: "a key of 20 bytes (case 1)",
            key: Array(repeating: 0x0b, count: 20),
            message: Array("Hi There".utf8),
            digest: "b617318655057264e28bc0b6fb378c8ef146be00"
        ),
        Vector(
            testDescription: "a short key (case 2)",
            key: Array("Jefe".utf8),
            message: Array("what do ya want for nothing?".utf8),
            digest: "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"
        ),
        Vector(
            testDescription: "a key longer than a block (case 6)",
            key: Array(repeating: 0xaa, count: 80),
            message: Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8),
            digest: "aa4ae5e15272d00e95705637ce8a3b55ed402112"
        ),
        Vector(
            testDescription: "no key",
            key: [],
            message: Array("x".utf8),
            digest: "6244e66451a1c8695db9731ce2c4fd5de25ccf87"
        ),
    ]

    @Test(arguments: vectors)
    func `HMAC-SHA1 in one part and in two`(_ vector: Vector) {
        let whole = Digest.hmacSHA1(key: vector.key.span, message: vector.message.span)
        #expect((0..<20).map { whole[$0] } == hex(vector.digest))
        for split in 0...vector.message.count {
            let parts = Digest.hmacSHA1(
                key: vector.key.span,
                head: vector.message.span.extracting(0..<split),
                body: vector.message.span.extracting(split..<vector.message.count)
            )
            #expect((0..<20).map { parts[$0] } == hex(vector.digest))
        }
    }

    @Test(arguments: [
        ("", "", true), ("", "00", false), ("00", "00", true), ("0001", "0002", false),
        ("ff00", "00ff", false), ("010203", "0102", false),
    ])
    func `bytes are compared`(left: String, right: String, expected: Bool) {
        let (left, right) = (hex(left), hex(right))
        let result = Digest.equal(left.span, right.span)
        #expect(result == expected)
    }

    @Test func `random bytes are as many as asked for, and others each time`() {
        #expect(Digest.randomBytes(0).isEmpty)
        #expect(Digest.randomBytes(33).count == 33)
        #expect(Digest.randomBytes(16) != Digest.randomBytes(16))
    }
}
