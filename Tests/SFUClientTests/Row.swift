import Testing

@testable import sfuctl

/// A named row of a table test.
struct Row<Input: Sendable, Output: Sendable>: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let input: Input
    let output: Output

    init(_ name: String, _ input: Input, _ output: Output) {
        testDescription = name
        self.input = input
        self.output = output
    }
}

/// A seeded source of randomness (SplitMix64).
struct Seeded: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }
}

extension [UInt8] {
    var text: String { String(decoding: self, as: UTF8.self) }
}

extension String {
    var bytes: [UInt8] { Array(utf8) }
}
