import LoadPeer
import RTP
import Testing

@testable import SFU
@testable import WorkerInterface

/// RTCP budgets of each transport: exceeding one affects nobody else.
struct RTCPBudgetTests {
    @Test func `a bucket lets through its rate, and half a second's worth at once`() {
        var budget = RTCPBudget()
        var now = Instant(nanoseconds: 5)
        var taken = 0
        for _ in 0..<2_000 where budget.fill(1_000, at: now) {
            if budget.charge() { taken += 1 }
        }
        #expect(taken == 500)
        taken = 0
        for _ in 0..<10_000 {
            now = now.advanced(nanoseconds: 200_000)
            if budget.fill(1_000, at: now), budget.charge() { taken += 1 }
        }
        #expect((1_999...2_001).contains(taken))
        // A clock that stands still or goes back adds nothing.
        let before = Instant(nanoseconds: 0)
        while budget.charge() {}
        let isFilled = budget.fill(1_000, at: before)
        #expect(!isFilled)
    }

    @Test func `RTCP beyond the budget is dropped and counted, and only its sender's`() throws {
        var call = try ForwardingTests.call()
        call.join(slots: [Media.slot(5, ssrc: 0xcccc)])
        call.connect(2)
        for _ in 0..<5_000 { call.nack(9_999, from: 1, ssrc: 0xaaaa) }
        let flooded = call.statistics()
        #expect((4_300...4_600).contains(flooded.drops[DropReason.rtcpRateLimited.index]))
        #expect(flooded.isBalanced)
        let before = flooded.rtcpIn
        call.nack(9_999, from: 2, ssrc: 0xcccc)
        let others = call.statistics().rtcpIn
        #expect(others == before + 1)
        call.run(milliseconds: 1_000)
        call.nack(9_999, from: 1, ssrc: 0xaaaa)
        let later = call.statistics().rtcpIn
        #expect(later > before + 1)
    }

    @Test func `spoofed packets do not use up the address owner's budget`() throws {
        var call = try ForwardingTests.call()
        let forged: [UInt8] = [0x80, 201, 0, 1, 0, 0, 0, 1] + Array(repeating: 0x5a, count: 24)
        for _ in 0..<5_000 { call.inject(forged, on: call.peers[1].path) }
        let before = call.statistics()
        #expect(before.drops[DropReason.rtcpRateLimited.index] == 0)
        call.nack(9_999, from: 1, ssrc: 0xaaaa)
        let after = call.statistics().rtcpIn
        #expect(after == before.rtcpIn + 1)
    }

    @Test func `a dozen feedback blocks cost the same in one datagram as in twelve`() throws {
        var call = try ForwardingTests.call()
        // One status, of a lost packet, in each of 36 blocks.
        let block: [UInt8] = [
            0x8f, 205, 0, 5, 0, 0, 0, 1, 0, 0, 0, 2, 0, 1, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0,
        ]
        let datagram = (0..<36).flatMap { _ in block }
        for _ in 0..<20 { call.sendRTCP(from: 1, bytes: datagram) }
        let statistics = call.statistics()
        #expect((13...15).contains(statistics.rtcpIn))
        let dropped = statistics.drops[DropReason.rtcpRateLimited.index]
        #expect(statistics.feedbackOverBudget + 36 * dropped >= 20 * 36 - 520)
    }

    static let blocks: [(name: String, bytes: [UInt8], cost: Int64)] = [
        ("a FIR for one", fir(1), 1), ("for sixteen", fir(16), 1), ("for seventeen", fir(17), 2),
        ("for 175", fir(175), 11), ("for none", fir(0), 0),
        ("PLI", [0x81, 206, 0, 2] + Array(repeating: 1, count: 8), 1),
        ("a report on nothing", report(0), 0), ("on one", report(1), 1),
        ("on sixteen", report(16), 1), ("on 31", report(31), 2),
    ]

    private static func fir(_ entries: Int) -> [UInt8] {
        let words = UInt16(2 + 2 * entries).bytes
        let parties: [UInt8] = UInt32(1).bytes + UInt32(0).bytes
        return [0x84, 206] + words + parties + Array(repeating: 7, count: 8 * entries)
    }

    private static func report(_ blocks: Int) -> [UInt8] {
        let words = UInt16(1 + 6 * blocks).bytes
        return [0x80 | UInt8(blocks), 201] + words + UInt32(1).bytes
            + Array(repeating: 7, count: 24 * blocks)
    }

    @Test(arguments: blocks.indices)
    func `what names streams costs by how many`(row: Int) {
        let (name, bytes, cost) = Self.blocks[row]
        var blocks = RTCPBlocks(bytes.span)
        guard let block = blocks.next() else {
            Issue.record("\(name) is no block")
            return
        }
        let found = RTCPBudget.cost(of: block)
        #expect(found == cost, "\(name)")
    }

    @Test func `a flood of keyframe requests for nobody's streams is cut`() throws {
        var call = try ForwardingTests.call()
        for _ in 0..<200 { call.sendRTCP(from: 1, bytes: Self.fir(160)) }
        let statistics = call.statistics()
        #expect((50...53).contains(Int(statistics.rtcpIn) - Int(statistics.feedbackOverBudget)))
    }

    @Test func `a NACK costs by how many packets it names`() throws {
        var call = try ForwardingTests.call()
        // 300 NACK pairs of seventeen packets, which cost 80 tokens.
        let pairs = (0..<300 as Range<UInt16>).flatMap { ($0 &* 17).bytes + [0xff, 0xff] }
        let header: [UInt8] = [0x81, 205] + UInt16(302).bytes
        let parties: [UInt8] = UInt32(1).bytes + UInt32(0xaaaa).bytes
        for _ in 0..<50 { call.sendRTCP(from: 1, bytes: header + parties + pairs) }
        let statistics = call.statistics()
        let nacks = statistics.slots.first { $0.id.index == 0 }?.nacksReceived
        #expect((5...7).contains(nacks ?? 0))
        let dropped = statistics.drops[DropReason.rtcpRateLimited.index]
        #expect(statistics.feedbackOverBudget + dropped + (nacks ?? 0) == 50)
        // A NACK of one packet costs no more than its datagram.
        call.run(milliseconds: 1_000)
        for _ in 0..<400 { call.nack(9_999, from: 1, ssrc: 0xaaaa) }
        let after = call.statistics()
        #expect(after.drops[DropReason.rtcpRateLimited.index] == dropped)
        #expect(after.feedbackOverBudget == statistics.feedbackOverBudget)
    }
}
