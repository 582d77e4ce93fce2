import RTP
import Testing

@testable import SFU
@testable import WorkerInterface

/// Viewers without RTX, to whom no padding can be sent: media shows what the path carries.
struct TrialTests {
    /// A path that becomes narrow, and the seconds in which the highest layer comes back after.
    struct Row: CustomTestStringConvertible, Sendable {
        var bitsPerSecond: Double
        var seconds: Double
        var testDescription: String { "\(Int(bitsPerSecond / 1_000)) kbit/s" }
    }

    private static func call(
        _ capacity: [(second: Double, bitsPerSecond: Double)],
        seed: UInt64
    ) throws -> LayeredCall {
        var settings = LayeredCall.Settings()
        settings.hasRTX = false
        settings.capacity = capacity
        return try LayeredCall(settings, seed: seed)
    }

    @Test(
        arguments: [
            Row(bitsPerSecond: 60e3, seconds: 30), Row(bitsPerSecond: 200e3, seconds: 20),
            Row(bitsPerSecond: 600e3, seconds: 10),
        ]
    )
    func `the highest layer comes back`(row: Row) throws {
        var call = try Self.call([(0, 3e6), (5, row.bitsPerSecond), (20, 3e6)], seed: 1)
        call.run(until: 20)
        let before = call.viewer.frames.count
        call.run(until: 20 + row.seconds)
        #expect(call.viewer.frames[before...].last?.width == 1_280)
    }

    @Test func `more than the path carries is tried ever more seldom`() throws {
        let capacity = 600e3
        var call = try Self.call([(0, 3e6), (5, capacity)], seed: 1)
        call.run(until: 10)
        let before = call.viewer.frames.count
        var tried: [Double] = []
        var wasHigh = false
        for tenth in 100...600 {
            call.run(until: Double(tenth) / 10)
            let told = call.call.core.transports[1].bandwidth?.estimator.explanation
            let isHigh = Double(told?.estimate ?? 0) > 1.5 * capacity
            if isHigh, !wasHigh { tried.append(Double(tenth) / 10) }
            wasHigh = isHigh
        }
        #expect(tried.count == 3)
        for (first, (second, third)) in zip(tried, zip(tried.dropFirst(), tried.dropFirst(2))) {
            #expect(third - second > 1.3 * (second - first))
        }
        // Each costs less than a second of the picture, and little of the sound.
        let frames = call.viewer.frames[before...]
        #expect(Set(frames.map(\.width)) == [640])
        let gaps = zip(frames, frames.dropFirst()).map { $1.time - $0.time }
        #expect(gaps.max() ?? 0 < 1_000_000_000)
        #expect(gaps.count { $0 > 200_000_000 } <= tried.count)
        #expect(call.silentShare(in: 10..<60) < 0.05)
    }

    /// Nanoseconds until the estimate allows what is asked for; `nil` if it does not within 20 s.
    private static func wait(
        _ estimator: inout BandwidthEstimator,
        from start: Instant,
        until isEnough: (Int) -> Bool
    ) -> Int64? {
        for step: Int64 in 0..<2_000 {
            let now = start.advanced(milliseconds: 10 * step)
            estimator.expire(at: now)
            let probe = estimator.takeProbe(at: now)
            #expect(probe == nil)
            if isEnough(estimator.estimate) { return now.nanoseconds(since: start) }
        }
        return nil
    }

    @Test func `video that was taken off is tried though nothing else is on the way`() throws {
        var estimator = BandwidthEstimator(
            at: Instant(nanoseconds: 0),
            startBitrate: 300_000,
            maximum: 5_000_000
        )
        estimator.setWanted(1_000_000, allocated: 960_000, isPadded: false)
        var sender = SteadySender()
        sender.run(milliseconds: 3_000, &estimator)
        // A queue that grows by a fifth of the time, and then nothing more.
        for step in 0..<100 {
            sender.wait = Int64(2 * step)
            sender.run(milliseconds: 10, &estimator)
        }
        let next = 2 * estimator.estimate
        estimator.setWanted(
            2 * next,
            allocated: 0,
            next: next,
            isStarved: true,
            isPadded: false
        )
        let waited = Self.wait(&estimator, from: sender.now) { $0 >= next }
        #expect(try #require(waited) < 12_000_000_000)
    }

    @Test(arguments: [true, false])
    func `nothing is tried while nothing is answered`(isVideoOff: Bool) {
        var estimator = BandwidthEstimator(
            at: Instant(nanoseconds: 0),
            startBitrate: 300_000,
            maximum: 5_000_000
        )
        var sender = SteadySender()
        // A client that never answers, or a path that is dead now.
        sender.isHeard = !isVideoOff
        sender.run(milliseconds: 3_000, &estimator)
        let before = estimator.estimate
        estimator.setWanted(
            2_000_000,
            allocated: isVideoOff ? 0 : 300_000,
            next: 2 * before,
            isStarved: isVideoOff,
            isPadded: false
        )
        sender.isHeard = false
        sender.run(milliseconds: 15_000, &estimator)
        let waited = Self.wait(&estimator, from: sender.now) { $0 > before }
        #expect(waited == nil)
    }

    @Test func `nothing is tried if nothing more is wanted, or the path is full`() {
        var trials = Trials()
        var situation = Prober.Situation(
            estimate: 500_000,
            wanted: 2_000_000,
            next: 0,
            maximum: 5_000_000,
            isCongested: false,
            isRecovering: false,
            isApplicationLimited: true,
            waiting: 0
        )
        let second: Int64 = 1_000_000_000
        func rates(_ seconds: ClosedRange<Int64>) -> [Double] {
            seconds.compactMap { trials.take(situation, at: $0 * second) }
        }
        #expect(rates(0...20) == [])
        situation.next = 1_000_000
        situation.isCongested = true
        #expect(rates(21...40) == [])
        situation.isCongested = false
        situation.empties = false
        situation.waiting = 20_000_000
        #expect(rates(41...60) == [])
        situation.waiting = 10_000_000
        #expect(rates(61...61) == [1_020_000])
        #expect(rates(62...65) == [])
        #expect(rates(66...66) == [1_020_000])
        situation.maximum = 900_000
        #expect(rates(71...71) == [900_000])
    }
}
