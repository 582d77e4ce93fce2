/// Records that were found in a region.
package struct SavedRecords: Equatable, Sendable {
    /// Records of each scope, by its name.
    package private(set) var scopes: [String: [RecordKey: [UInt8]]] = [:]
    /// Number of scopes that damage has cost.
    package private(set) var lost = 0

    /// Reason for which nothing can be restored from a region.
    package enum Failure: String, Error, Sendable {
        /// It has no records of this layout.
        case foreign
        /// Saving had stopped, because the log was full.
        case stopped
        /// It is damaged, and nobody can say which scopes that concerns.
        case damaged
    }

    package init() {}

    /// Reads the committed groups of a region that `RecordLog` wrote.
    ///
    /// All bytes are checked. A damaged group costs the records of its scope alone.
    package init(reading memory: UnsafeRawBufferPointer) throws(Failure) {
        let words = unsafe RecordRegion.Words(memory)
        guard let words, words.magic == RecordRegion.magic else { throw .foreign }
        guard words.isUnusable == 0 else { throw .stopped }
        guard words.half <= 1, words.halfSize <= UInt64(memory.count) else {
            throw .damaged
        }
        let halfSize = Int(words.halfSize)
        let start = RecordRegion.headerSize + (words.half == 0 ? 0 : halfSize)
        let tail = words.half == 0 ? words.firstTail : words.secondTail
        guard tail <= words.halfSize, start + halfSize <= memory.count else {
            throw .damaged
        }
        var reader = RecordReader(end: Int(tail))
        unsafe try reader.read(UnsafeRawBufferPointer(rebasing: memory[start..<start + Int(tail)]))
        for scope in reader.scopes.values where !scope.isLost && !scope.records.isEmpty {
            scopes[scope.name] = scope.records
        }
        lost = reader.scopes.values.count(where: \.isLost)
    }
}

extension RecordRegion {
    /// Words of a region's header.
    fileprivate struct Words {
        var magic, halfSize, half, firstTail, secondTail, isUnusable: UInt64

        init?(_ memory: UnsafeRawBufferPointer) {
            guard memory.count >= RecordRegion.headerSize else { return nil }
            func word(_ word: Word) -> UInt64 {
                unsafe memory.loadUnaligned(fromByteOffset: word.rawValue * 8, as: UInt64.self)
            }
            magic = word(.magic)
            halfSize = word(.halfSize)
            half = word(.half)
            firstTail = word(.firstTail)
            secondTail = word(.secondTail)
            isUnusable = word(.isUnusable)
        }
    }
}

/// Reader of the groups of one half.
private struct RecordReader {
    struct Scope {
        var name = ""
        var records: [RecordKey: [UInt8]] = [:]
        var isLost = false
    }

    struct Header {
        var length: Int
        var hash: UInt64
        var ordinal: UInt64
    }

    let end: Int
    var scopes: [UInt64: Scope] = [:]

    init(end: Int) { self.end = end }

    /// Reads all groups; throws if damage cannot be attributed to a scope.
    mutating func read(_ half: UnsafeRawBufferPointer) throws(SavedRecords.Failure) {
        var offset = 0
        var expected: UInt64 = 0
        while offset < end {
            if let header = unsafe header(at: offset, half), header.ordinal == expected {
                unsafe apply(header, at: offset, half)
                offset += header.length
                expected += 1
                continue
            }
            // Something is damaged up to the next group that is to be recognized.
            var next = offset + 8
            while next < end, unsafe header(at: next, half)?.ordinal != expected + 1 { next += 8 }
            guard let hash = unsafe trailer(endingAt: min(next, end), after: offset, half) else {
                throw .damaged
            }
            lose(hash)
            offset = next
            expected += 1
        }
    }

    private mutating func lose(_ hash: UInt64) {
        scopes[hash, default: Scope()].isLost = true
        scopes[hash]?.records = [:]
    }

    private func header(at offset: Int, _ half: UnsafeRawBufferPointer) -> Header? {
        guard offset + RecordFrame.overhead <= end else { return nil }
        let first = unsafe half.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
        guard UInt32(truncatingIfNeeded: first) == RecordFrame.magic else { return nil }
        let digest = unsafe half.loadUnaligned(fromByteOffset: offset + 24, as: UInt64.self)
        let bytes = unsafe half[offset..<offset + 24]
        guard unsafe RecordFrame.digest(bytes, seed: 1) == digest else { return nil }
        let length = Int(first >> 32)
        guard length >= RecordFrame.overhead, length % 8 == 0, length <= end - offset else {
            return nil
        }
        return Header(
            length: length,
            hash: unsafe half.loadUnaligned(fromByteOffset: offset + 8, as: UInt64.self),
            ordinal: unsafe half.loadUnaligned(fromByteOffset: offset + 16, as: UInt64.self)
        )
    }

    /// Returns the scope that a trailer names; `nil` if there is no valid one.
    private func trailer(
        endingAt position: Int,
        after start: Int,
        _ half: UnsafeRawBufferPointer
    ) -> UInt64? {
        let offset = position - RecordFrame.trailerSize
        guard offset >= start else { return nil }
        let digest = unsafe half.loadUnaligned(fromByteOffset: offset + 16, as: UInt64.self)
        let bytes = unsafe half[offset..<offset + 16]
        guard unsafe RecordFrame.digest(bytes, seed: 2) == digest else { return nil }
        return unsafe half.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
    }

    private mutating func apply(
        _ header: Header,
        at offset: Int,
        _ half: UnsafeRawBufferPointer
    ) {
        let bodyEnd = offset + header.length - RecordFrame.trailerSize
        let body = unsafe half[offset + RecordFrame.headerSize..<bodyEnd]
        let digest = unsafe half.loadUnaligned(fromByteOffset: bodyEnd + 8, as: UInt64.self)
        let seed = header.hash ^ header.ordinal
        guard unsafe RecordFrame.digest(body, seed: seed) == digest,
            let group = unsafe Self.entries(of: body)
        else { return lose(header.hash) }
        var scope = scopes.removeValue(forKey: header.hash) ?? Scope()
        defer { scopes[header.hash] = scope }
        scope.name = group.name
        for entry in group.entries {
            switch entry.kind {
            case .end: break
            case .clear:
                // The new records need none of those that were damaged.
                scope.records = [:]
                scope.isLost = false
            case .put: if !scope.isLost { scope.records[entry.key] = entry.value }
            case .remove: scope.records[entry.key] = nil
            }
        }
    }

    private struct Entry {
        var kind: RecordFrame.Entry
        var key: RecordKey
        var value: [UInt8]
    }

    /// Returns the scope's name and the entries of a body; `nil` if it has another form.
    private static func entries(
        of body: Slice<UnsafeRawBufferPointer>
    ) -> (name: String, entries: [Entry])? {
        var rest = unsafe body
        func number(_ bytes: Slice<UnsafeRawBufferPointer>) -> Int {
            unsafe bytes.reversed().reduce(0) { $0 << 8 | Int($1) }
        }
        func take(_ count: Int) -> Slice<UnsafeRawBufferPointer>? {
            guard unsafe rest.count >= count else { return nil }
            defer { unsafe rest = rest.dropFirst(count) }
            return unsafe rest.prefix(count)
        }
        guard let size = unsafe take(2), let text = unsafe take(number(size)) else { return nil }
        let name = unsafe String(decoding: text, as: UTF8.self)
        var entries: [Entry] = []
        while let first = unsafe rest.first {
            guard let kind = RecordFrame.Entry(rawValue: first) else { return nil }
            if kind == .end { return unsafe rest.count < 8 ? (name, entries) : nil }
            guard unsafe take(1) != nil, let keyLength = unsafe take(2),
                let valueLength = unsafe take(4), let key = unsafe take(number(keyLength)),
                let value = unsafe take(number(valueLength))
            else { return nil }
            unsafe entries.append(
                Entry(kind: kind, key: RecordKey(Array(key)), value: Array(value))
            )
        }
        return (name, entries)
    }
}
