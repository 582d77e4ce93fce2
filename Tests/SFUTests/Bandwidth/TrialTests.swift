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
        // Nobody sees it.
        #expect(Set(call.viewer.frames[before...].map(\.width)) == [640])
    }

    @Test func `nothing is tried without feedback, or if nothing more is wanted`() {
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
        #expect(rates(41...60) == [])
        situation.empties = true
        #expect(rates(61...61) == [1_020_000])
        #expect(rates(62...65) == [])
        #expect(rates(66...66) == [1_020_000])
        situation.maximum = 900_000
        #expect(rates(71...71) == [900_000])
    }
}
