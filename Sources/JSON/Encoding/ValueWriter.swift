/// Text or bytes to which values are written one after another, in the order of their encoding.
protocol ValueWriter: AnyObject {
    /// Bytes written so far.
    var count: Int { get }

    /// Begins an object; its members are sorted by name where `isSorted`.
    func openObject(isSorted: Bool)
    func closeObject()
    func openArray()
    func closeArray()
    /// Comes before each value in an object, with the member's name.
    func member(_ name: String)
    /// Comes before each value in an array.
    func element()

    func null()
    func bool(_ value: Bool)
    func integer(_ value: Int64)
    /// Writes a number beyond `Int64`.
    func unsigned(_ value: UInt64)
    func number(_ value: Double)
    func string(_ value: String)
    func bytes(_ value: [UInt8])
    func json(_ value: JSON)
}

extension ValueWriter {
    func integer(_ value: some FixedWidthInteger) {
        if let small = Int64(exactly: value) {
            integer(small)
        } else {
            unsigned(UInt64(clamping: value))
        }
    }

    /// Writes a value by its conformance to `Encodable`.
    func encode(_ value: some Encodable) {
        do {
            try StreamEncoder(stream: EncodingStream(self), level: 0).encode(value)
        } catch {
            preconditionFailure("\(type(of: value)) does not encode: \(error)")
        }
    }
}
