import Testing

@testable import Daemon

struct LineReaderTests {
    struct Case: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var reads: [String]
        var lines: [[String]]
        var isTooLong = false
        var isPartial = false
    }

    static let cases = [
        Case(testDescription: "one line", reads: ["abc\n"], lines: [["abc"]]),
        Case(testDescription: "nothing whole", reads: ["abc"], lines: [[]], isPartial: true),
        Case(testDescription: "in pieces", reads: ["a", "b", "c\n"], lines: [[], [], ["abc"]]),
        Case(
            testDescription: "several in one read",
            reads: ["a\nb\nc"],
            lines: [["a", "b"]],
            isPartial: true
        ),
        Case(testDescription: "CRLF", reads: ["a\r\nb\r\n"], lines: [["a", "b"]]),
        Case(
            testDescription: "CRLF cut in two",
            reads: ["a\r", "\nb\n"],
            lines: [[], ["a", "b"]]
        ),
        Case(
            testDescription: "blank lines",
            reads: ["\n\r\n \t\n\na\n\n"],
            lines: [["a"]]
        ),
        Case(testDescription: "a carriage return inside", reads: ["a\rb\n"], lines: [["a\rb"]]),
        Case(testDescription: "just fits", reads: ["12345678\n"], lines: [["12345678"]]),
        Case(
            testDescription: "just fits, CRLF cut off",
            reads: ["12345678\r", "\n"],
            lines: [[], ["12345678"]]
        ),
        Case(
            testDescription: "one byte too long",
            reads: ["a\n123456789\n"],
            lines: [["a"]],
            isTooLong: true
        ),
        Case(
            testDescription: "too long and never ended",
            reads: ["12345", "678901"],
            lines: [[], []],
            isTooLong: true
        ),
    ]

    @Test(arguments: cases)
    func `cuts lines`(_ entry: Case) {
        var reader = LineReader(limit: 8)
        var isTooLong = false
        for (read, lines) in zip(entry.reads, entry.lines) {
            let result = reader.receive(Array(read.utf8)[...])
            #expect(result.lines == lines.map { Array($0.utf8) })
            isTooLong = result.isTooLong
        }
        #expect(isTooLong == entry.isTooLong)
        #expect(reader.isPartial == entry.isPartial)
    }

    @Test(arguments: 1...7)
    func `the size of reads does not matter`(size: Int) {
        let text = Array("first\r\n\nsecond\nthird\n".utf8)
        var reader = LineReader(limit: 8)
        var lines: [[UInt8]] = []
        for start in stride(from: 0, to: text.count, by: size) {
            lines += reader.receive(text[start..<min(start + size, text.count)]).lines
        }
        #expect(lines == ["first", "second", "third"].map { Array($0.utf8) })
    }
}
