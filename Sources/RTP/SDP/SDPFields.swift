/// Field parsing within one line; separators are ASCII, so that no grapheme rule interferes.
extension Substring {
    /// Removes and returns the text before `separator`, or all text if there is none.
    mutating func cut(at separator: Unicode.Scalar) -> Substring {
        let byte = UInt8(ascii: separator)
        guard let end = utf8.firstIndex(of: byte) else {
            defer { self = self[endIndex...] }
            return self
        }
        defer { self = self[utf8.index(after: end)...] }
        return self[..<end]
    }

    /// Returns the parts between separators; at most `limit`, of which the last holds the rest.
    func fields(_ separator: Unicode.Scalar = " ", limit: Int = .max) -> [Substring] {
        let byte = UInt8(ascii: separator)
        return utf8.split(separator: byte, maxSplits: limit - 1).map { Substring($0) }
    }

    /// Text without spaces at either end.
    var trimmed: Substring {
        var view = utf8[...]
        while view.first == UInt8(ascii: " ") { view.removeFirst() }
        while view.last == UInt8(ascii: " ") { view.removeLast() }
        return Substring(view)
    }

    /// Returns the number with these decimal digits, or `nil` if it exceeds `maximum`.
    func decimal<Number: FixedWidthInteger>(to maximum: Number = .max) -> Number? {
        guard !isEmpty else { return nil }
        var value: Number = 0
        for byte in utf8 {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
            let (tens, overflow) = value.multipliedReportingOverflow(by: 10)
            let (sum, carry) = tens.addingReportingOverflow(Number(byte - UInt8(ascii: "0")))
            guard !overflow, !carry, sum <= maximum else { return nil }
            value = sum
        }
        return value
    }

    /// Whether the text is a `token` (RFC 8866 §9).
    var isToken: Bool {
        !isEmpty
            && utf8.allSatisfy { byte in
                switch byte {
                case 0x21, 0x23...0x27, 0x2a, 0x2b, 0x2d, 0x2e: true
                case 0x30...0x39, 0x41...0x5a, 0x5e...0x7e: true
                default: false
                }
            }
    }

    /// Whether the text is a `rid-id` (RFC 8851 §10).
    var isRID: Bool {
        !isEmpty
            && utf8.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x2d, 0x5f: true
                default: false
                }
            }
    }

    /// Returns whether the text consists of `ice-char` (RFC 8839 §5.1) with a length in `range`.
    func isICEText(_ range: ClosedRange<Int>) -> Bool {
        range.contains(utf8.count)
            && utf8.allSatisfy { byte in
                switch byte {
                case 0x2b, 0x2f, 0x30...0x39, 0x41...0x5a, 0x61...0x7a: true
                default: false
                }
            }
    }
}
