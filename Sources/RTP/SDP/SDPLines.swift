/// Iterator over the lines of a session description (RFC 8866 §5).
///
/// Lines end with CRLF or LF; blank lines are allowed only at the end.
struct SDPLines {
    struct Line {
        /// Line number from 1.
        var number: Int
        /// Letter before the `=`.
        var type: UInt8
        var value: Substring
    }

    private let text: String.UTF8View
    private var position: String.UTF8View.Index
    private(set) var number = 0

    init(_ text: String) throws(SDPError) {
        guard text.utf8.count <= SDPLimits.bytes else {
            throw SDPError(line: 1, cause: "longer than \(SDPLimits.bytes) bytes")
        }
        self.text = text.utf8
        position = text.utf8.startIndex
    }

    mutating func next() throws(SDPError) -> Line? {
        guard let line = try cut() else { return nil }
        guard line.isEmpty else { return try split(line) }
        let blank = number
        while let following = try cut() {
            guard following.isEmpty else {
                throw SDPError(line: blank, cause: "blank line")
            }
        }
        return nil
    }

    private func split(_ line: Substring.UTF8View) throws(SDPError) -> Line {
        let second = line.index(after: line.startIndex)
        guard second < line.endIndex, line[second] == UInt8(ascii: "=") else {
            throw SDPError(line: number, cause: "not of the form letter=value")
        }
        return Line(
            number: number,
            type: line[line.startIndex],
            value: Substring(line[line.index(after: second)...])
        )
    }

    /// Returns the bytes up to the next line end and skips that line end.
    private mutating func cut() throws(SDPError) -> Substring.UTF8View? {
        guard position < text.endIndex else { return nil }
        number += 1
        let start = position
        var end = start
        var length = 0
        scan: while end < text.endIndex {
            switch text[end] {
            case UInt8(ascii: "\n"):
                position = text.index(after: end)
                return text[start..<end]
            case UInt8(ascii: "\r"):
                break scan
            case 0:
                throw SDPError(line: number, cause: "NUL byte")
            default:
                length += 1
                guard length <= SDPLimits.lineBytes else {
                    throw SDPError(
                        line: number,
                        cause: "line longer than \(SDPLimits.lineBytes) bytes"
                    )
                }
                end = text.index(after: end)
            }
        }
        position = end
        guard end < text.endIndex else { return text[start..<end] }
        position = text.index(after: end)
        guard position < text.endIndex, text[position] == UInt8(ascii: "\n") else {
            throw SDPError(line: number, cause: "carriage return without line feed")
        }
        position = text.index(after: position)
        return text[start..<end]
    }
}
