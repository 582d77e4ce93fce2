import LoadPeer
import TestSupport
import Testing

@testable import RTP
@testable import SFU
@testable import WorkerInterface

/// Connectivity checks: which are answered, and where media goes.
struct ICETests {
    /// A check with its fault, and the expected outcome.
    struct Check: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var username = "core0:load1"
        var password = "corepassword0-0123456789"
        var extra: [UInt8] = []
        var fingerprint = true
        /// Error code of the answer; 0 for success, `nil` for silence.
        var answer: Int?
    }

    static let checks = [
        Check(testDescription: "good", answer: 0),
        Check(testDescription: "wrong password", password: "guessed"),
        Check(testDescription: "unknown fragment", username: "core9:load1"),
        Check(testDescription: "wrong peer fragment", username: "core0:load2"),
        Check(testDescription: "swapped halves", username: "load1:core0"),
        Check(testDescription: "no colon", username: "core0"),
        Check(testDescription: "empty", username: ""),
        Check(testDescription: "no fingerprint", fingerprint: false),
        Check(
            testDescription: "role conflict",
            extra: [0x80, 0x29, 0, 8] + UInt64(7).bytes,
            answer: 487
        ),
        Check(testDescription: "unknown attribute", extra: [0x12, 0x34, 0, 0], answer: 420),
        Check(testDescription: "unknown optional", extra: [0x92, 0x34, 0, 0], answer: 0),
    ]

    @Test(arguments: checks)
    func `a check is answered by the rules`(_ check: Check) throws {
        var call = try Call()
        call.join(slots: [Media.slot(0)])
        let before = call.output.count
        call.core.receive(
            Self.request(check).span,
            on: .from(port: 9),
            at: call.now,
            into: &call.output
        )
        guard let expected = check.answer else {
            let silent = call.output.count == before
            #expect(silent)
            #expect(call.core.transports.paths.count == 0)
            return
        }
        let answer = try STUNMessage(call.output[before])
        let code = answer.errorCode ?? 0
        #expect(code == expected)
        #expect(call.core.transports.paths.count == (expected == 0 ? 1 : 0))
    }

    /// Encodes a Binding request with its attributes in the order that RFC 8489 requires.
    static func request(_ check: Check) -> [UInt8] {
        let name = Array(check.username.utf8)
        var body = [0, 6] + UInt16(name.count).bytes + name
        while body.count % 4 != 0 { body.append(0) }
        body += check.extra
        func message(_ length: Int) -> [UInt8] {
            [0, 1] + UInt16(length).bytes + [0x21, 0x12, 0xa4, 0x42]
                + Array(repeating: 7, count: 12)
                + body
        }
        let key = Array(check.password.utf8)
        let tag = Digest.hmacSHA1(key: key.span, message: message(body.count + 24).span)
        body += [0, 8, 0, 20] + tag.indices.map { tag[$0] }
        guard check.fingerprint else { return message(body.count) }
        let sum = Checksum.crc32(message(body.count + 8).span) ^ 0x5354_554e
        body += [0x80, 0x28, 0, 4] + sum.bytes
        return message(body.count)
    }

    @Test func `unknown sources get no byte, whatever they send`() throws {
        var call = try ForwardingTests.call()
        var noise = SeededRandom(seed: 3)
        for first in 0...255 as ClosedRange<UInt8> {
            for length in [1, 12, 20, 64] {
                var bytes = noise.bytes(length)
                bytes[0] = first
                call.inject(bytes, on: .from(port: 4_000))
            }
        }
        call.settle()
        #expect(call.misdirected == 0)
        #expect(call.statistics().isBalanced)
    }

    @Test func `media follows a nomination, and nothing else`() throws {
        var call = try ForwardingTests.call()
        call.sendVideo(sequence: 1, pictureID: 1, isKeyframe: true)
        let old = call.peers[1].path
        call.peers[1].path = .from(port: 7_777)
        // Authentic SRTCP from the new address alone is dropped and does not move the path.
        call.nack(1, from: 1, ssrc: 0xaaaa)
        call.sendVideo(sequence: 2, pictureID: 2, isKeyframe: false)
        #expect(call.peers[1].received.count == 1)
        #expect(call.misdirected == 1)
        #expect(call.statistics().drops[DropReason.unknownSource.index] == 1)
        call.check(from: 1)
        call.sendVideo(sequence: 3, pictureID: 3, isKeyframe: false)
        #expect(call.peers[1].received.count == 2)
        let kept = call.core.transports.paths[old]
        #expect(kept == 1)
    }

    @Test func `a transport keeps eight addresses, and the nominated one among them`() throws {
        var call = try ForwardingTests.call()
        let before = call.core.transports.paths.count
        for port in 0..<20 as Range<UInt16> {
            call.peers[1].path = .from(port: 8_000 + port)
            call.check(from: 1)
            call.run(milliseconds: 100)
        }
        let paths = call.core.transports.paths.count
        #expect(paths == before + 7)
        call.sendVideo(sequence: 1, pictureID: 1, isKeyframe: true)
        #expect(call.peers[1].received.count == 1)
    }

    @Test func `a restart keeps the call and in the end leaves the old credentials behind`() throws
    {
        var call = try ForwardingTests.call()
        let fragments = call.core.transports.fragments.count
        for round in 0..<100 {
            call.reconfigure(1) { configuration in
                configuration.ice.localFragment = "again\(round)"
                configuration.ice.localPassword = "another-password-\(round)"
            }
            let old = Check(
                testDescription: "old",
                username: round == 0 ? "core1:load2" : "again\(round - 1):load2",
                password: round == 0 ? "corepassword1-0123456789" : "another-password-\(round - 1)"
            )
            let new = Check(
                testDescription: "new",
                username: "again\(round):load2",
                password: "another-password-\(round)"
            )
            let path = call.peers[1].path
            #expect(answers(&call, old, on: path) == 1)
            #expect(answers(&call, old, on: .from(port: 5)) == 0)
            #expect(answers(&call, new, on: path) == 1)
            #expect(answers(&call, old, on: path) == 0)
            call.sendVideo(
                sequence: UInt16(round),
                pictureID: UInt16(round),
                isKeyframe: round == 0
            )
            call.now = call.now.advanced(milliseconds: 200)
        }
        #expect(call.core.transports.fragments.count == fragments)
        #expect(call.peers[1].received.count == 100)
        #expect(call.numbers(at: 1).isContiguous)
    }

    private func answers(_ call: inout Call, _ check: Check, on path: Path) -> Int {
        let before = call.output.count
        call.core.receive(Self.request(check).span, on: path, at: call.now, into: &call.output)
        let answered = call.output.count - before
        call.settle()
        return answered
    }

    @Test func `a flood with a known fragment does not silence the peer itself`() throws {
        var call = try ForwardingTests.call()
        call.now = call.now.advanced(milliseconds: 1_500)
        let forged = Self.request(Check(testDescription: "", username: "core1:load2"))
        let before = call.peers[1].peer.checksAnswered
        for _ in 0..<500 { call.inject(forged, on: .from(port: 3)) }
        call.check(from: 1)
        #expect(call.peers[1].peer.checksAnswered == before + 1)
        let statistics = call.statistics()
        #expect(statistics.drops[DropReason.stunRateLimited.index] == 450)
        #expect(call.misdirected == 0)
        for _ in 0..<100 { call.check(from: 1) }
        #expect(call.peers[1].peer.checksAnswered <= before + 50)
    }

    @Test func `an address that another takes over is not sent to`() throws {
        var call = try ForwardingTests.call()
        call.join(slots: [Media.slot(5, ssrc: 0xcccc)])
        call.peers[2].path = call.peers[1].path
        call.peers[1].path = .from(port: 6_543)
        call.connect(2)
        call.sendVideo(sequence: 1, pictureID: 1, isKeyframe: true)
        let (undecryptable, received) = (call.peers[2].undecryptable, call.peers[2].received.count)
        #expect(undecryptable == 0)
        #expect(received == 0)
    }
}
