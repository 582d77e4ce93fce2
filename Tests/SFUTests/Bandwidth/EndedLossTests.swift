import Testing

@testable import SFU

/// Loss that ends: the limit that it set on the estimate goes with it.
struct EndedLossTests {
    struct Row: CustomTestStringConvertible, Sendable {
        /// Share that is lost for a quarter of a minute.
        var loss: Double
        /// One-way delay in milliseconds.
        var delay: Double
        var seed: UInt64
        var testDescription: String { "\(loss) lost, \(delay) ms each way, seed \(seed)" }
    }

    @Test(
        arguments: [
            Row(loss: 0.2, delay: 20, seed: 1), Row(loss: 0.2, delay: 200, seed: 2),
            Row(loss: 0.3, delay: 100, seed: 1), Row(loss: 0.3, delay: 100, seed: 3),
        ]
    )
    func `the highest layer comes back within twelve seconds`(row: Row) throws {
        var settings = LayeredCall.Settings()
        settings.capacity = [(0, 2.2e6)]
        settings.delayMilliseconds = row.delay
        var call = try LayeredCall(settings, seed: row.seed)
        call.run(until: 5)
        call.loss = row.loss
        call.run(until: 20)
        let during = call.viewer.frames.last?.width ?? 0
        #expect(during < 1_280)
        call.loss = 0
        call.run(until: 32)
        #expect(call.viewer.frames.last?.width == 1_280)
    }
}
