extension String {
    /// Copies UTF-8; `nil` if the bytes are none.
    ///
    /// `String(validating:as:)` does the same for all encodings, and takes several times as long.
    init?(validatingUTF8 bytes: Span<UInt8>) {
        guard let text = try? UTF8Span(validating: bytes) else { return nil }
        self = String(copying: text)
    }
}
