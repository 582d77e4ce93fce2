extension String {
    /// Copies UTF-8; `nil` if the bytes are none.
    ///
    /// `String(validating:as:)` is for all encodings, and looks up generic types each time.
    init?(validatingUTF8 bytes: Span<UInt8>) {
        guard let text = try? UTF8Span(validating: bytes) else { return nil }
        self = String(copying: text)
    }
}
