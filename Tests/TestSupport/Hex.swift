/// Decodes hexadecimal digits; spaces and line breaks are ignored.
package func hex(_ text: some StringProtocol) -> [UInt8] {
    let digits = text.compactMap(\.hexDigitValue)
    precondition(digits.count.isMultiple(of: 2), "half a byte")
    return stride(from: 0, to: digits.count, by: 2).map { place in
        let byte: Int = digits[place] << 4 | digits[place + 1]
        return UInt8(byte)
    }
}
