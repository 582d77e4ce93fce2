/// Encoding of numbers for the wire.
package enum Wire {
    /// Returns the lowest bytes of a number, big-endian.
    package static func bytes(_ value: UInt64, _ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: value >> UInt64(8 * (count - 1 - $0))) }
    }
}
