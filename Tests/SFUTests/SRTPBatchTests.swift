import TestSupport
import Testing

@testable import SFU

/// SRTP batches: many packets are begun before any is finished, as in the core.
@Suite("SRTP batches", .enabled(if: SRTPEngine.available.count > 1))
struct SRTPBatchTests {
    @Test(arguments: [1, 2, 3, 4] as [UInt64])
    func `packets of several sessions wait together, RTCP and what comes in do not`(
        seed: UInt64
    ) throws {
        var random = SeededRandom(seed: seed)
        var traffic = SRTPTraffic(seed: seed)
        var portable = try SRTPSessions.make(.libsrtp2)
        var fast = try SRTPSessions.make(.ipsecMB)
        var expected = Batch(capacity: 200)
        var batch = Batch(capacity: 200)
        var differing = 0
        var waiting = 0
        for _ in 0..<10 {
            // Sometimes more than the engine's queue holds.
            let count = Int.random(in: 1...200, using: &random)
            while batch.count < count {
                let which = Int.random(in: 0..<SRTPSessions.count, using: &random)
                switch traffic.next() {
                case .rtcp(let bytes):
                    let wire = portable.protectRTCP(bytes, by: which)
                    if wire != fast.protectRTCP(bytes, by: which) { differing += 1 }
                    if portable.unprotectRTCP(wire, by: which) != .success(bytes) { differing += 1 }
                    if fast.unprotectRTCP(wire, by: which) != .success(bytes) { differing += 1 }
                case .rtp(let bytes, let roc):
                    let prefix = traffic.prefix()
                    portable.begin(bytes, roc: roc, prefix, by: which, into: &expected)
                    fast.begin(bytes, roc: roc, prefix, by: which, into: &batch)
                    if batch[batch.count - 1] != expected[batch.count - 1] { waiting += 1 }
                }
            }
            fast.context.finish()
            for index in 0..<count where batch[index] != expected[index] { differing += 1 }
            batch.removeAll()
            expected.removeAll()
        }
        #expect(differing == 0)
        #expect(waiting > 250, "packets of AES-CM wait for their tags")
    }

    @Test func `packets waiting for their tag are already encrypted`() throws {
        var ends = try SRTPEnds(.aes128CmSha1_80, .ipsecMB)
        var batch = Batch(capacity: 1)
        let packet = rtpPacket(1, payload: 1_000)
        ends.begin(packet, roc: 0, prefix: 10, into: &batch)
        let early = Array(copying: batch[0])
        ends.context.finish()
        let late = Array(copying: batch[0])
        #expect(early != late)
        #expect(early.dropLast(10) == late.dropLast(10))
        #expect(early[12..<28] != packet[12..<28])
        #expect(ends.unprotect(late) == .success(packet))
    }

    @Test func `a session that ends finishes what it has begun`() throws {
        let context = SRTPContext(engine: .ipsecMB)
        var batch = Batch(capacity: 1)
        let packet = rtpPacket(7)
        func begin(into batch: inout Batch) throws {
            var ends = try SRTPEnds(.aes128CmSha1_80, .ipsecMB, context: context)
            ends.begin(packet, roc: 0, prefix: 0, into: &batch)
        }
        try begin(into: &batch)
        context.finish()
        var receiver = try SRTPEnds(.aes128CmSha1_80, .libsrtp2)
        #expect(receiver.unprotect(Array(copying: batch[0])) == .success(packet))
    }
}

/// Sessions of one worker: two with AES-CM, which share a queue, and one with GCM.
private struct SRTPSessions: ~Copyable {
    static let count = 3

    let context: SRTPContext
    private var first: SRTPEnds
    private var second: SRTPEnds
    private var third: SRTPEnds

    private init(
        _ context: SRTPContext,
        _ first: consuming SRTPEnds,
        _ second: consuming SRTPEnds,
        _ third: consuming SRTPEnds
    ) {
        self.context = context
        self.first = first
        self.second = second
        self.third = third
    }

    static func make(_ engine: SRTPEngine) throws -> Self {
        let context = SRTPContext(engine: engine)
        return Self(
            context,
            try SRTPEnds(.aes128CmSha1_80, engine, seed: 1, context: context),
            try SRTPEnds(.aes128CmSha1_80, engine, seed: 2, context: context),
            try SRTPEnds(.aeadAes128Gcm, engine, seed: 3, context: context)
        )
    }

    mutating func begin(
        _ packet: [UInt8],
        roc: UInt64,
        _ prefix: Int,
        by which: Int,
        into batch: inout Batch
    ) {
        switch which {
        case 0: first.begin(packet, roc: roc, prefix: prefix, into: &batch)
        case 1: second.begin(packet, roc: roc, prefix: prefix, into: &batch)
        default: third.begin(packet, roc: roc, prefix: prefix, into: &batch)
        }
    }

    mutating func protectRTCP(_ packet: [UInt8], by which: Int) -> [UInt8] {
        switch which {
        case 0: first.protectRTCP(packet)
        case 1: second.protectRTCP(packet)
        default: third.protectRTCP(packet)
        }
    }

    mutating func unprotectRTCP(
        _ packet: [UInt8],
        by which: Int
    ) -> Result<[UInt8], SRTPError> {
        switch which {
        case 0: first.unprotectRTCP(packet)
        case 1: second.unprotectRTCP(packet)
        default: third.unprotectRTCP(packet)
        }
    }
}

private func != (left: Span<UInt8>, right: Span<UInt8>) -> Bool {
    guard left.count == right.count else { return true }
    for index in left.indices where left[index] != right[index] { return true }
    return false
}

extension Array<UInt8> {
    fileprivate init(copying span: Span<UInt8>) {
        self = span.indices.map { span[$0] }
    }
}
