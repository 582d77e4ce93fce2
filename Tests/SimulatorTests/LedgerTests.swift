import HostilePeer
import RTP
import TestSupport
import Testing
import WorkerInterface

@testable import Simulator

/// Tests of the ledgers that check the daemon's behavior under attack.
@Suite struct LedgerTests {
    static let path = Path(remote: Address(ipv4: 0x0a00_0001, port: 10_000), local: 0)
    static let stranger = Adversary.stranger(7)
    static let start = Instant(nanoseconds: 0)
    static let media: [UInt8] = [0x80, 111] + [UInt8](repeating: 0, count: 30)
    static let nonce: [UInt8] = Array(1...12)

    static func message(_ type: [UInt8], _ nonce: [UInt8]) -> [UInt8] {
        type + [0, 0, 0x21, 0x12, 0xa4, 0x42] + nonce
    }

    /// Records a check sent to `path` and an answer from there.
    static func ask(_ ledger: inout ConsentLedger, answer: [UInt8]) {
        let check = message([0x00, 0x01], nonce)
        _ = ledger.noteOut(check, to: path, at: start)
        let success = message([0x01, 0x01], answer)
        ledger.noteIn(success, from: path, at: start, isHandshake: false)
    }

    static func objects(_ ledger: ConsentLedger, milliseconds: Int64) -> Bool {
        let now = start.advanced(milliseconds: milliseconds)
        return ledger.objection(toMediaFor: path, at: now, since: start) != nil
    }

    @Test func `M1 media to an address that never answered is against the rules`() {
        var ledger = ConsentLedger()
        #expect(ledger.noteOut(Self.media, to: Self.stranger, at: Self.start)?.0 == .consent)
        #expect(Self.objects(ledger, milliseconds: 1))
    }

    @Test func `M1 an answer proves that the peer is there for thirty seconds`() {
        var ledger = ConsentLedger()
        Self.ask(&ledger, answer: Self.nonce)
        #expect(!Self.objects(ledger, milliseconds: 30_000))
        #expect(Self.objects(ledger, milliseconds: 33_000))
    }

    @Test func `M1 an answer to another check proves nothing`() {
        var ledger = ConsentLedger()
        Self.ask(&ledger, answer: Self.nonce.reversed())
        #expect(Self.objects(ledger, milliseconds: 1))
    }

    @Test func `M1 an unvalidated source is sent at most a few times what it sent`() {
        var ledger = ConsentLedger()
        let check = Self.message([0x01, 0x01], Self.nonce)
        let sent = (0..<1_000).count { _ in
            ledger.noteOut(check, to: Self.stranger, at: Self.start) == nil
        }
        #expect((100..<400).contains(sent))
    }

    @Test(arguments: ValueStrategy.allCases)
    func `M1 the values of a field fit into its bits`(_ strategy: ValueStrategy) {
        var random = SeededRandom(seed: 1)
        for bits in [1, 8, 24, 63, 64] {
            for step in ValueSource.steps(bits: bits) {
                var source = ValueSource(strategy, bits: bits, step: step, from: 0)
                let values = (0..<100).map { _ in source.next(using: &random) }
                #expect(bits == 64 || values.allSatisfy { $0 >> UInt64(bits) == 0 })
            }
        }
    }

    @Test func `M1 a rising field takes steps of the size that was chosen, and wraps`() {
        var random = SeededRandom(seed: 1)
        var source = ValueSource(.rising, bits: 24, step: 0x7f_ffff, from: 0)
        let values = (0..<3).map { _ in source.next(using: &random) }
        #expect(values == [0x7f_ffff, 0xff_fffe, 0x7f_fffd])
    }
}
