/// Splitter of a byte stream into lines; buffers an incomplete line.
package struct LineReader {
    /// Complete lines without their terminators, and whether a line has exceeded the limit.
    package struct Result: Equatable {
        package var lines: [[UInt8]] = []
        package var isTooLong = false
    }

    private var partial: [UInt8] = []
    private let limit: Int

    /// `limit` is the longest line in bytes, without its terminator.
    package init(limit: Int) { self.limit = limit }

    /// Whether an incomplete line is buffered.
    var isPartial: Bool { !partial.isEmpty }

    /// Adds bytes; `\n` and `\r\n` end a line, and blank lines are ignored.
    ///
    /// After `isTooLong` the rest of the stream must not be parsed.
    package mutating func receive(_ bytes: ArraySlice<UInt8>) -> Result {
        var result = Result()
        var rest = bytes
        while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
            var line = partial + rest[..<end]
            partial = []
            rest = rest[(end + 1)...]
            if line.last == UInt8(ascii: "\r") { line.removeLast() }
            guard line.count <= limit else {
                result.isTooLong = true
                return result
            }
            if !line.allSatisfy({ $0 == 0x20 || $0 == 0x09 }) { result.lines.append(line) }
        }
        partial += rest
        // One byte over the limit may be the \r of a terminator.
        if partial.count > limit + 1 {
            partial = []
            result.isTooLong = true
        }
        return result
    }
}
