/// A hash of a history: runs that differ in any recorded detail differ in it (FNV-1a).
package struct TraceHash {
    package private(set) var value: UInt64 = 0xcbf2_9ce4_8422_2325

    mutating func note(_ number: some FixedWidthInteger) {
        value = (value ^ UInt64(truncatingIfNeeded: number)) &* 0x100_0000_01b3
        value ^= value >> 29
    }

    mutating func note(_ text: String) {
        for byte in text.utf8 { value = (value ^ UInt64(byte)) &* 0x100_0000_01b3 }
    }
}
