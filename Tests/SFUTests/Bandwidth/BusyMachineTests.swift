import Testing

@testable import SFU

/// A busy machine on the path (the viewer's own or a TURN relay).
///
/// It holds packets for moments and then releases them all at once, on a path that carries a
/// hundred times what is sent.
struct BusyMachineTests {
    struct Row: CustomTestStringConvertible, Sendable {
        /// Average running time and longest stall, in milliseconds.
        var running: Double
        var longest: Double
        var loss = 0.0

        var testDescription: String {
            "\(Int(running)) ms, then up to \(Int(longest)), \(Int(loss * 100)) % lost"
        }
    }

    static let rows = [
        Row(running: 300, longest: 200), Row(running: 300, longest: 400),
        Row(running: 100, longest: 200), Row(running: 100, longest: 400),
        Row(running: 300, longest: 200, loss: 0.05),
    ]

    @Test(arguments: rows, 1...(Scenarios.isFull ? 10 : 1) as ClosedRange<UInt64>)
    func `low-rate video stays on, and freezes no longer than the machine stalls`(
        row: Row,
        seed: UInt64
    ) throws {
        var settings = LayeredCall.Settings()
        settings.rates = [60e3]
        settings.capacity = [(0, 10e6)]
        settings.delayMilliseconds = 50
        settings.loss = row.loss
        settings.stalls = (row.running, row.longest)
        var call = try LayeredCall(settings, seed: seed)
        call.run(until: Scenarios.length(60, short: 20))
        let holds = call.takeVideoHolds()
        #expect(holds.isEmpty)
        let frames = call.viewer.frames
        let longest = zip(frames, frames.dropFirst()).map { $1.time - $0.time }.max() ?? .max
        // Lost packets are requested again, which may take two stalls.
        #expect(Double(longest) / 1e6 < (row.loss > 0 ? 3 : 1) * row.longest + 150)
    }

    @Test(arguments: 1...(Scenarios.isFull ? 10 : 1) as ClosedRange<UInt64>)
    func `the top layer is not given up for one that stops for a moment each second`(
        seed: UInt64
    ) throws {
        var settings = LayeredCall.Settings()
        settings.rates = [60e3, 150e3, 400e3]
        settings.capacity = [(0, 10e6)]
        settings.delayMilliseconds = 50
        settings.stalls = (1_000, 100)
        var call = try LayeredCall(settings, seed: seed)
        call.run(until: Scenarios.length(60, short: 20))
        let seen = call.changes(in: 5..<60)
        #expect(seen.isEmpty)
        #expect(call.changes.last?.width == 1_280)
    }
}
