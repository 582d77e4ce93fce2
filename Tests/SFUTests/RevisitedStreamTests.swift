import RTP
import Testing

@testable import SFU

/// Memory of a slot that returns to a stream: the packets of it that it was sent before.
@Suite struct RevisitedStreamTests {
    fileprivate static func packet(_ number: Int64, encoding: EncodingIndex = 1) -> PacketInfo {
        var info = PacketInfo()
        info.number = number
        info.encoding = encoding
        info.arrival = Instant(nanoseconds: number * 20_000_000)
        info.timestamp = UInt32(truncatingIfNeeded: number * 960)
        return info
    }

    /// A sequence rewriter, with its earlier spans.
    struct Numbering: ~Copyable {
        var rewriter = RTPRewriter(random: 7)
        var earlier = RTPRewriter.none

        /// Begins a span and sends consecutive packets; returns their indexes.
        mutating func send(_ numbers: ClosedRange<Int64>, encoding: EncodingIndex = 1) -> [Int64] {
            rewriter.begin(
                with: RevisitedStreamTests.packet(numbers.lowerBound, encoding: encoding),
                clockRate: 48_000,
                timestamp: nil,
                after: &earlier
            )
            return numbers.map { number in
                let info = RevisitedStreamTests.packet(number, encoding: encoding)
                let index = number + rewriter.current.offset
                rewriter.sent(info, index: index, span: rewriter.current)
                return index
            }
        }

        func hasSent(_ number: Int64, encoding: EncodingIndex = 1) -> Bool {
            rewriter.hasSent(
                RevisitedStreamTests.packet(number, encoding: encoding),
                after: earlier
            )
        }
    }

    @Test func `packets already sent are not sent again, later ones are`() {
        var slot = Numbering()
        let holds1 = !slot.hasSent(30)
        #expect(holds1)
        _ = slot.send(30...33)
        let holds2 = slot.hasSent(30) && slot.hasSent(33) && !slot.hasSent(34)
        #expect(holds2)
        _ = slot.send(1...5, encoding: 2)
        let holds3 = slot.hasSent(33) && !slot.hasSent(34)
        #expect(holds3)
        let holds4 = slot.hasSent(5, encoding: 2) && !slot.hasSent(6, encoding: 2)
        #expect(holds4)
    }

    @Test func `a span that goes back has no second index for what was sent before it`() {
        var slot = Numbering()
        _ = slot.send(30...33)
        // Packets before the first one it was sent are no longer sent.
        let holds5 = slot.hasSent(27)
        #expect(holds5)
        // A span may begin with a late packet.
        _ = slot.send(27...29)
        let holds6 = slot.hasSent(29) && slot.hasSent(30) && slot.hasSent(33) && !slot.hasSent(34)
        #expect(holds6)
    }

    @Test func `a span without packets hides none before it`() {
        var slot = Numbering()
        _ = slot.send(30...33)
        slot.rewriter.begin(
            with: Self.packet(34),
            clockRate: 48_000,
            timestamp: nil,
            after: &slot.earlier
        )
        let holds7 = slot.hasSent(33) && !slot.hasSent(34)
        #expect(holds7)
    }

    @Test func `an index that was passed over is used once`() {
        var slot = Numbering()
        let last = slot.send(30...33).last ?? 0
        slot.rewriter.use(last + 3, after: &slot.earlier)
        slot.rewriter.filled(index: last + 3)
        let passed = (1...3).filter { slot.rewriter.isUnsent(last + $0, after: slot.earlier) }
        slot.rewriter.use(last + 1, after: &slot.earlier)
        let left = (1...3).filter { slot.rewriter.isUnsent(last + $0, after: slot.earlier) }
        #expect(passed == [1, 2] && left == [2])
    }
}
