import LiveStream
import RTP
import Testing

@Suite struct DecodeBudgetTests {
    /// Plays five seconds of several tracks with a picture of each every 33 ms.
    ///
    /// Returns the number of decoded pictures of each track; a track that exceeds the budget pauses
    /// for a second.
    private func play(_ milliseconds: [UInt32: Int64]) -> [UInt32: Int] {
        var budget = DecodeBudget()
        var decoded: [UInt32: Int] = [:]
        var pauses: [UInt32: Instant] = [:]
        for step in 0..<150 as Range<Int64> {
            let now = Instant(nanoseconds: 1_000_000_000 &+ step &* 33_000_000)
            for (track, cost) in milliseconds.sorted(by: { $0.key < $1.key }) {
                if let until = pauses[track], now < until { continue }
                decoded[track, default: 0] += 1
                guard let most = budget.note(cost &* 1_000_000, of: track, at: now) else {
                    continue
                }
                pauses[most] = now.advanced(milliseconds: 1_000)
            }
        }
        return decoded
    }

    @Test func `tracks that the thread has time for are all decoded`() {
        #expect(play([1: 5, 2: 5, 3: 5, 4: 5]) == [1: 150, 2: 150, 3: 150, 4: 150])
    }

    @Test func `A5 only the track that costs too much pauses`() {
        let decoded = play([1: 3, 2: 3, 3: 3, 4: 3, 5: 60])
        #expect((1...4).allSatisfy { decoded[$0] == 150 })
        #expect((1...50).contains(decoded[5] ?? 0))
    }

    @Test func `equally expensive tracks take turns`() {
        let decoded = play([1: 12, 2: 12, 3: 12, 4: 12])
        #expect(decoded.values.allSatisfy { $0 > 50 })
    }
}
