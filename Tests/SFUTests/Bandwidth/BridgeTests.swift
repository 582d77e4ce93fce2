import Testing

@testable import SFU
@testable import WorkerInterface

/// Forwarding of the old encoding until the keyframe of a lower one arrives.
struct BridgeTests {
    struct Row: CustomTestStringConvertible, Sendable {
        var name: String
        /// Encodings left and entered, from 0.
        var from: Int
        var to: Int
        var budget: Int
        var isFull = false
        /// Highest temporal layer that goes on.
        var temporal: UInt8?

        var testDescription: String { name }
    }

    // Encodings of 150, 500 and 1,500 kbit/s; temporal layers of 0.5, 0.7 and 1 of that.
    static let rows = [
        Row(name: "all fits", from: 1, to: 0, budget: 500_000, temporal: 2),
        Row(name: "one layer less", from: 1, to: 0, budget: 350_000, temporal: 1),
        Row(name: "only the lowest", from: 2, to: 1, budget: 800_000, temporal: 0),
        Row(name: "not even the lowest", from: 2, to: 1, budget: 100_000, temporal: 0),
        Row(name: "a full path", from: 2, to: 1, budget: 800_000, isFull: true, temporal: nil),
    ]

    @Test(arguments: rows)
    func `the old encoding goes on with the frames that fit`(row: Row) {
        var options = UncountedArray<LayerOption>(capacity: 16)
        for option in LadderTests.camera { options.append(option) }
        let temporal = LayerAllocator.bridge(
            from: LadderTests.camera[3 * row.from + 2],
            to: LadderTests.camera[3 * row.to + 2],
            within: row.budget,
            isFull: row.isFull,
            options
        )
        #expect(temporal == row.temporal)
    }

    @Test func `a full path bears an encoding little larger than the next`() {
        var large = LadderTests.camera[5]
        large.bitrate = 250_000
        var options = UncountedArray<LayerOption>(capacity: 16)
        options.append(large)
        let temporal = LayerAllocator.bridge(
            from: large,
            to: LadderTests.camera[2],
            within: 100_000,
            isFull: true,
            options
        )
        #expect(temporal == 2)
    }
}
