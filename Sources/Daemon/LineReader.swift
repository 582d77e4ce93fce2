/// Cuts a stream of bytes into lines, keeping what is not a whole line yet.
package struct LineReader {
    /// What came: lines without their ends, and whether a line has grown past the limit.
    package struct Result: Equatable {
        package var lines: [[UInt8]] = []
        package var isTooLong = false
    }

    private var partial: [UInt8] = []
    private let limit: Int

    /// `limit` is the most bytes of a line, its end not counted.
    package init(limit: Int) { self.limit = limit }

    /// Whether a line has begun that has not ended.
    var isPartial: Bool { !partial.isEmpty }

    /// Takes bytes; `\n` and `\r\n` end a line, and blank lines are nothing.
    ///
    /// After `isTooLong` the rest of the stream has no meaning.
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
        // The one byte more may be the \r of an end to come.
        if partial.count > limit + 1 {
            partial = []
            result.isTooLong = true
        }
        return result
    }
}
