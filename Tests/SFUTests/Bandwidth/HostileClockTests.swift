import RTP
import Testing

@testable import SFU

/// Feedback with an impossible clock: each message is valid, and their sum is the attack.
struct HostileClockTests {
    struct Row: Sendable, CustomTestStringConvertible {
        var testDescription: String
        /// Step of the reference time from message to message, in units of 64 ms.
        var step: @Sendable (_ message: Int) -> Int32
        /// Least share of the earlier estimate that remains five seconds after the last step.
        var share = 0.5
    }

    static let rows: [Row] = [
        Row(testDescription: "20,000 maximal steps forwards", step: { _ in 0x7f_ffff }),
        Row(testDescription: "20,000 maximal steps backwards", step: { _ in -0x7f_ffff }),
        Row(testDescription: "20,000 steps of half the circle", step: { _ in -0x80_0000 }),
        Row(testDescription: "to and fro", step: { $0 % 2 == 0 ? 0x7f_ffff : -0x7f_ffff }),
        // A path whose delay grows by seconds each time: the rate falls, and rises from the bottom.
        Row(testDescription: "just under the leap", step: { _ in 46 }, share: 0.015),
        Row(testDescription: "just under the leap, backwards", step: { _ in -46 }),
        Row(testDescription: "a leap in each hundred", step: { $0 % 100 == 0 ? 0x3f_ffff : 0 }),
    ]

    @Test(arguments: rows)
    func `no series of steps traps, and the estimate is sane five seconds later`(row: Row) {
        var estimator = BandwidthEstimator(
            at: Instant(nanoseconds: 0),
            startBitrate: 1_000_000,
            maximum: 8_000_000
        )
        var sender = SteadySender()
        sender.run(milliseconds: 10_000, &estimator)
        let before = estimator.estimate
        var time: Int32 = 0
        for message in 0..<20_000 {
            time = ((time &+ row.step(message)) << 8) >> 8
            let number = sender.sequence
            estimator.sent(number, bytes: 1_200, at: sender.now, probe: nil)
            sender.skip()
            ViewerFeedback.give(Self.message(on: number, at: time), to: &estimator, at: sender.now)
            sender.now = sender.now.advanced(milliseconds: 1)
            estimator.expire(at: sender.now)
            #expect((10_000...8_000_000).contains(estimator.estimate))
        }
        sender.run(milliseconds: 5_000, &estimator)
        let after = estimator.estimate
        #expect(Double(after) >= row.share * Double(before), "\(before) before, \(after) after")
    }

    @Test func `a probe that a leap falls into shows no rate across it`() {
        var cluster = ProbeCluster(
            Probe(
                id: ProbeID(rawValue: 1),
                bitsPerSecond: 1_000_000,
                bytes: 4_000,
                minimumPackets: 4
            )
        )
        cluster.add(bytes: 1_000, sent: 0, arrived: 1_000_000)
        cluster.forgetArrivals()
        for packet in 0..<4 as Range<Int64> {
            let time = packet * 8_000_000
            cluster.add(bytes: 1_000, sent: time, arrived: 500_000_000_000 + time)
        }
        #expect(abs((cluster.result?.rate ?? 0) - 1_000_000) < 1)
    }

    @Test func `drift within an hour is followed, and more is anchored again`() {
        var clock = RemoteClock()
        let tick: Int64 = 64_000_000
        _ = clock.advance(to: 0, at: 0)
        var leaps: [Int] = []
        // Each step is two seconds ahead of our clock.
        for step in 1...2_000 {
            let reference = Int32(step * 47)
            let now = Int64(step) * (47 * tick - 2_000_000_000)
            if clock.advance(to: reference, at: now) { leaps.append(step) }
            #expect(clock.time(of: Int64(reference) * tick) == Int64(reference) * tick)
        }
        #expect(leaps == [1_801])
    }

    /// Encodes a message on one packet that arrived at exactly `time`.
    private static func message(on number: UInt16, at time: Int32) -> [UInt8] {
        let reference = UInt32(bitPattern: time) & 0xff_ffff
        return [
            0x8f, 205, 0, 5, 0, 0, 0, 1, 0, 0, 0, 2,
            UInt8(number >> 8), UInt8(number & 0xff), 0, 1,
            UInt8(reference >> 16), UInt8(reference >> 8 & 0xff), UInt8(reference & 0xff), 0,
            0x20, 0x01, 0, 0,
        ]
    }
}
