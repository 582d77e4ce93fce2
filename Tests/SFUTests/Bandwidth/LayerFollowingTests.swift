import Foundation
import Testing

@testable import SFU

/// What a viewer of three encodings (150, 400 and 1,500 kbit/s) sees through paths of several
/// rates; `SFUD_FIGURES=1` prints it.
struct LayerFollowingTests {
    private static let (top, middle, lowest) = (1_280, 640, 320)

    private func call(
        _ capacity: [(Double, Double)],
        seed: UInt64,
        until end: Double
    ) throws -> LayeredCall {
        var settings = LayeredCall.Settings()
        settings.capacity = capacity.map { ($0.0, $0.1 * 1e3) }
        var call = try LayeredCall(settings, seed: seed)
        call.run(until: end)
        return call
    }

    private func tell(_ name: String, _ call: borrowing LayeredCall) {
        guard ProcessInfo.processInfo.environment["SFUD_FIGURES"] != nil else { return }
        let changes = call.changes.map { "\(($0.second * 100).rounded() / 100) s: \($0.width)" }
        let stands = call.stands(in: 0..<1_000).map { Int($0) }
        print("FIGURE following \(name): \(changes.joined(separator: ", ")); stands \(stands) ms")
    }

    /// In kbit/s, and what is seen through it, in pixels.
    struct Path: CustomTestStringConvertible, Sendable {
        var rate: Double
        var width: Int

        var testDescription: String { "\(Int(rate)) kbit/s" }
    }

    static let paths = [
        Path(rate: 3_000, width: top), Path(rate: 600, width: middle),
        Path(rate: 200, width: lowest),
    ]

    @Test(arguments: paths, Scenarios.seeds)
    func `who joins sees the layer that fits within four seconds, and keeps it`(
        path: Path,
        seed: UInt64
    ) throws {
        let end = Scenarios.length(60, short: 20)
        let call = try call([(0, path.rate)], seed: seed, until: end)
        tell("\(Int(path.rate)) kbit/s", call)
        let seen = call.changes
        #expect(seen.last?.width == path.width)
        #expect((seen.last?.second ?? end) <= 4)
        // Not even for a moment another one.
        #expect(seen.count == 1)
    }

    @Test(arguments: Scenarios.seeds)
    func `layers follow a path down to 600 and 200 kbit a second, and back up`(
        seed: UInt64
    ) throws {
        let path = [(0, 3_000), (10, 600), (40, 200), (60, 3_000)] as [(Double, Double)]
        let call = try call(path, seed: seed, until: 80)
        tell("3,000 to 600 to 200 to 3,000 kbit/s", call)
        let down = call.changes(in: 10..<40)
        #expect(down.map(\.width) == [Self.middle])
        #expect((down.last?.second ?? 40) <= 14)
        let further = call.changes(in: 40..<60)
        #expect(further.map(\.width) == [Self.lowest])
        #expect((further.last?.second ?? 60) <= 44)
        let up = call.changes(in: 60..<80)
        #expect(up.last?.width == Self.top && up.count <= 2)
        #expect((up.last?.second ?? 80) <= 68)
        // Into a full queue a keyframe takes its time; where there is room it does not.
        let downwards = call.stands(in: 0..<60).max() ?? 0
        #expect(downwards <= 1_000)
        let upwards = call.stands(in: 60..<80).max() ?? 0
        #expect(upwards <= 200)
    }

    @Test(arguments: Scenarios.seeds)
    func `O-9 below the lowest layer the video goes off, the sound stays, and all comes back`(
        seed: UInt64
    ) throws {
        let path = [(0, 1_500), (10, 60), (40, 1_500)] as [(Double, Double)]
        var call = try call(path, seed: seed, until: 40)
        let holds = call.takeHolds()
        #expect(holds == [.quality])
        let silent = call.silentShare(in: 20..<40)
        #expect(silent <= 0.02)
        call.run(until: 50)
        tell("1,500 to 60 to 1,500 kbit/s, \(Int(silent * 1_000)) permille silent", call)
        let returned = call.takeHolds()
        #expect(returned == [nil])
        let first = call.viewer.frames.first { $0.time > 40_000_000_000 }
        #expect((first?.time ?? .max) <= 48_000_000_000)
    }
}
