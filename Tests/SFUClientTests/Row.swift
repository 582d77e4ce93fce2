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

extension [UInt8] {
    var text: String { String(decoding: self, as: UTF8.self) }
}

extension String {
    var bytes: [UInt8] { Array(utf8) }
}
