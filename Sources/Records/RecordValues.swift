// Values of fields: numbers, text, lists.

extension RecordValue where Self: FixedWidthInteger {
    fileprivate func writeInteger(to coder: inout RecordCoder) {
        // Small negative numbers are short, too.
        if Self.isSigned {
            let wide = Int64(truncatingIfNeeded: self)
            coder.write(word: UInt64(bitPattern: wide << 1 ^ wide >> 63))
        } else {
            coder.write(word: UInt64(truncatingIfNeeded: self))
        }
    }

    fileprivate static func readInteger(_ length: Int, from coder: inout RecordCoder) -> Self? {
        guard let word = coder.readWord(length) else { return nil }
        guard isSigned else { return Self(exactly: word) }
        return Self(exactly: Int64(bitPattern: word >> 1) ^ -Int64(bitPattern: word & 1))
    }
}

extension Int: RecordValue {
    package func write(to coder: inout RecordCoder) { writeInteger(to: &coder) }
    package static func read(_ length: Int, from coder: inout RecordCoder) -> Self? {
        readInteger(length, from: &coder)
    }
    package static func describe(to table: inout RecordFieldTable) -> String { "int" }
}

extension Int64: RecordValue {
    package func write(to coder: inout RecordCoder) { writeInteger(to: &coder) }
    package static func read(_ length: Int, from coder: inout RecordCoder) -> Self? {
        readInteger(length, from: &coder)
    }
    package static func describe(to table: inout RecordFieldTable) -> String { "int" }
}

extension UInt64: RecordValue {
    package func write(to coder: inout RecordCoder) { writeInteger(to: &coder) }
    package static func read(_ length: Int, from coder: inout RecordCoder) -> Self? {
        readInteger(length, from: &coder)
    }
    package static func describe(to table: inout RecordFieldTable) -> String { "uint" }
}

extension UInt32: RecordValue {
    package func write(to coder: inout RecordCoder) { writeInteger(to: &coder) }
    package static func read(_ length: Int, from coder: inout RecordCoder) -> Self? {
        readInteger(length, from: &coder)
    }
    package static func describe(to table: inout RecordFieldTable) -> String { "uint" }
}

extension UInt16: RecordValue {
    package func write(to coder: inout RecordCoder) { writeInteger(to: &coder) }
    package static func read(_ length: Int, from coder: inout RecordCoder) -> Self? {
        readInteger(length, from: &coder)
    }
    package static func describe(to table: inout RecordFieldTable) -> String { "uint" }
}

extension UInt8: RecordValue {
    package func write(to coder: inout RecordCoder) { coder.write(byte: self) }
    package static func read(_ length: Int, from coder: inout RecordCoder) -> Self? {
        length == 1 ? coder.readBytes(1).first : nil
    }
    package static func describe(to table: inout RecordFieldTable) -> String { "byte" }
}

extension Bool: RecordValue {
    package func write(to coder: inout RecordCoder) { coder.write(byte: self ? 1 : 0) }
    package static func read(_ length: Int, from coder: inout RecordCoder) -> Self? {
        guard length == 1, let byte = coder.readBytes(1).first, byte <= 1 else { return nil }
        return byte == 1
    }
    package static func describe(to table: inout RecordFieldTable) -> String { "bool" }
}

extension Double: RecordValue {
    package func write(to coder: inout RecordCoder) { coder.write(word: bitPattern.byteSwapped) }
    package static func read(_ length: Int, from coder: inout RecordCoder) -> Self? {
        guard let word = coder.readWord(length) else { return nil }
        let value = Double(bitPattern: word.byteSwapped)
        return value.isFinite ? value : nil
    }
    package static func describe(to table: inout RecordFieldTable) -> String { "double" }
}

extension String: RecordValue {
    package func write(to coder: inout RecordCoder) { coder.write(utf8) }
    package static func read(_ length: Int, from coder: inout RecordCoder) -> Self? {
        String(validating: coder.readBytes(length), as: UTF8.self)
    }
    package static func describe(to table: inout RecordFieldTable) -> String { "text" }
}

extension Array: RecordValue where Element: RecordValue {
    package func write(to coder: inout RecordCoder) {
        for element in self { coder.writeSized(element) }
    }

    package static func read(_ length: Int, from coder: inout RecordCoder) -> Self? {
        let last = coder.position + length
        var elements: Self = []
        while let element: Element = coder.readSized(until: last) { elements.append(element) }
        return elements
    }

    package static func describe(to table: inout RecordFieldTable) -> String {
        "[\(Element.describe(to: &table))]"
    }
}

/// Bytes of a field, without a length for each.
package struct RecordBytes: RecordValue, Hashable, Sendable {
    package var bytes: [UInt8]

    package init(_ bytes: [UInt8] = []) { self.bytes = bytes }

    package func write(to coder: inout RecordCoder) { coder.write(bytes) }
    package static func read(_ length: Int, from coder: inout RecordCoder) -> Self? {
        Self(Array(coder.readBytes(length)))
    }
    package static func describe(to table: inout RecordFieldTable) -> String { "bytes" }
}

extension RecordValue where Self: RawRepresentable, RawValue: RecordValue {
    package func write(to coder: inout RecordCoder) { rawValue.write(to: &coder) }
    package static func read(_ length: Int, from coder: inout RecordCoder) -> Self? {
        RawValue.read(length, from: &coder).flatMap(Self.init(rawValue:))
    }
    package static func describe(to table: inout RecordFieldTable) -> String {
        RawValue.describe(to: &table)
    }
}
