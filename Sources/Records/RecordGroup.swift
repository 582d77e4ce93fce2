/// Name of a record within its scope.
package struct RecordKey: Hashable, Sendable {
    /// At most 65,535 bytes.
    package let bytes: [UInt8]

    package init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// Makes the key of a kind of record, from names that may have any characters.
    package init(_ kind: UInt8, _ names: String...) {
        var bytes = [kind]
        for name in names {
            let text = name.utf8
            bytes.append(UInt8(truncatingIfNeeded: text.count))
            bytes.append(UInt8(truncatingIfNeeded: text.count >> 8))
            bytes.append(contentsOf: text)
        }
        self.bytes = bytes
    }

    /// Makes the key of a kind of record, from a number; keys sort by it.
    package init(_ kind: UInt8, _ number: UInt64, _ name: String = "") {
        var bytes = [kind]
        for shift in stride(from: 56, through: 0, by: -8) {
            bytes.append(UInt8(truncatingIfNeeded: number >> UInt64(shift)))
        }
        bytes.append(contentsOf: name.utf8)
        self.bytes = bytes
    }

    /// Kind of the record; 0 for an empty key.
    package var kind: UInt8 { bytes.first ?? 0 }
}

/// New value of a record, or its removal (`nil`).
package struct RecordChange: Hashable, Sendable {
    package var key: RecordKey
    package var value: [UInt8]?

    package init(_ key: RecordKey, _ value: [UInt8]?) {
        self.key = key
        self.value = value
    }
}

/// Changes of one scope that take effect together or not at all.
///
/// A scope is what is lost together if a part of it is damaged: a room.
package struct RecordGroup: Hashable, Sendable {
    /// Name of the scope, at most 65,535 bytes.
    package var scope: String
    /// Whether all records that the scope had are removed first.
    package var clears = false
    package var changes: [RecordChange] = []

    package init(scope: String) { self.scope = scope }

    package var isEmpty: Bool { changes.isEmpty && !clears }
}

/// Digest of bytes, 64 bits, not cryptographic.
///
/// Every step is a bijection of the state, so a change within one word of eight bytes is always
/// noticed.
package struct RecordDigest: Sendable {
    private var state: UInt64

    package init(seed: UInt64 = 0) { state = seed ^ 0x5ca1_ab1e_0ddb_a11 }

    package mutating func add(_ word: UInt64) {
        state = (state ^ word) &* 0x9e37_79b9_7f4a_7c15
        state ^= state >> 29
    }

    package mutating func add(_ bytes: UnsafeRawBufferPointer) {
        let words = bytes.count / 8
        for index in 0..<words {
            add(unsafe bytes.loadUnaligned(fromByteOffset: index * 8, as: UInt64.self))
        }
        var last: UInt64 = 0
        for index in words * 8..<bytes.count { last = unsafe last << 8 | UInt64(bytes[index]) }
        add(last)
        add(UInt64(bytes.count))
    }

    package mutating func add(_ bytes: [UInt8]) {
        unsafe bytes.withUnsafeBytes { unsafe add($0) }
    }

    package var value: UInt64 { state ^ state >> 32 }

    package static func of(_ text: String) -> UInt64 { of(Array(text.utf8)) }

    package static func of(_ bytes: [UInt8]) -> UInt64 {
        var digest = Self()
        digest.add(bytes)
        return digest.value
    }
}
