import Synchronization

/// Layout of a region of records, and access to its words.
///
/// A header is followed by two halves. One of them is in use: groups follow one another in it up to
/// its tail. The other one is free, or is being filled with the records that are still alive.
@safe struct RecordRegion {
    /// Word of the header, by its index.
    enum Word: Int {
        case magic
        case halfSize
        /// Half in use, 0 or 1.
        case half
        /// End of the last committed group of each half, from the half's start.
        case firstTail, secondTail
        /// 0: usable; else saving has stopped.
        case isUnusable
    }

    static let headerSize = 64
    /// Identifies the layout; another layout has another number.
    static let magic: UInt64 = 0x3230_6463_6572_7566

    let memory: UnsafeMutableRawBufferPointer
    let halfSize: Int
    /// Hears of memory whose contents are not needed any more.
    var onFree: (UnsafeMutableRawBufferPointer) -> Void = { _ in }
    /// Hears of each store before it is made, with its place in the region; for tests.
    var onStore: ((Int, [UInt8]) -> Void)?

    /// Wraps a region; `nil` if it is too short for any record.
    init?(_ memory: UnsafeMutableRawBufferPointer) {
        let half = ((memory.count - Self.headerSize) / 2) & ~7
        guard half >= RecordFrame.overhead + 64, half <= Int(UInt32.max) else { return nil }
        unsafe self.memory = memory
        halfSize = half
    }

    static func tail(of half: Int) -> Word { half == 0 ? .firstTail : .secondTail }

    func start(of half: Int) -> Int { Self.headerSize + half * halfSize }

    /// Stores a word behind everything that was stored before it.
    ///
    /// The header is aligned, so a process that is killed has stored all of a word or nothing.
    func store(_ value: UInt64, in word: Word) {
        guard let base = unsafe memory.baseAddress else { return }
        unsafe onStore?(word.rawValue * 8, withUnsafeBytes(of: value) { unsafe Array($0) })
        let place = unsafe base + word.rawValue * 8
        let atomic = unsafe place.assumingMemoryBound(to: Atomic<UInt64>.self)
        unsafe atomic.pointee.store(value, ordering: .releasing)
    }

    /// Copies bytes into a half.
    func copy(_ bytes: [UInt8], to offset: Int, of half: Int) {
        let from = start(of: half) + offset
        onStore?(from, bytes)
        unsafe bytes.withUnsafeBytes { source in
            unsafe UnsafeMutableRawBufferPointer(rebasing: memory[from..<from + source.count])
                .copyMemory(from: source)
        }
    }

    /// Gives back the memory of a half.
    func free(_ half: Int) {
        let start = start(of: half)
        unsafe onFree(UnsafeMutableRawBufferPointer(rebasing: memory[start..<start + halfSize]))
    }

    /// Returns bytes of a half.
    func bytes(_ range: Range<Int>, of half: Int) -> UnsafeRawBufferPointer.SubSequence {
        let start = start(of: half)
        return unsafe UnsafeRawBufferPointer(memory)[
            start + range.lowerBound..<start + range.upperBound
        ]
    }
}

/// Form of a group in a half.
///
/// Its header and its trailer both name the scope, each with a digest of its own, so that damage
/// anywhere in the group tells whose records it has cost.
enum RecordFrame {
    static let headerSize = 32
    static let trailerSize = 24
    static let overhead = headerSize + trailerSize
    static let magic: UInt32 = 0x7075_7267

    enum Entry: UInt8 {
        /// Padding up to the end of the body.
        case end
        case put, remove
        /// All records of the scope so far.
        case clear
    }

    static let entryHeader = 7

    /// Encodes a group, the body of which has these entries.
    static func bytes(scope: String, ordinal: UInt64, body entries: [UInt8]) -> [UInt8] {
        let hash = RecordDigest.of(scope)
        let name = Array(scope.utf8.prefix(Int(UInt16.max)))
        let padded = (2 + name.count + entries.count + 7) & ~7
        var writer = WordWriter()
        writer.bytes.reserveCapacity(padded + overhead)
        writer.add(UInt64(magic) | UInt64(padded + overhead) << 32)
        writer.add(hash)
        writer.add(ordinal)
        writer.add(digest(writer.bytes, 0..<24, seed: 1))
        writer.bytes.append(UInt8(truncatingIfNeeded: name.count))
        writer.bytes.append(UInt8(truncatingIfNeeded: name.count >> 8))
        writer.bytes += name
        writer.bytes += entries
        while writer.bytes.count < headerSize + padded { writer.bytes.append(0) }
        let body = digest(writer.bytes, headerSize..<writer.bytes.count, seed: hash ^ ordinal)
        let trailer = writer.bytes.count
        writer.add(hash)
        writer.add(body)
        writer.add(digest(writer.bytes, trailer..<trailer + 16, seed: 2))
        return writer.bytes
    }

    /// Length of a group with these entries, in bytes.
    static func length(scope: String, entries: Int) -> Int {
        ((2 + min(scope.utf8.count, Int(UInt16.max)) + entries + 7) & ~7) + overhead
    }

    private static func digest(_ bytes: [UInt8], _ range: Range<Int>, seed: UInt64) -> UInt64 {
        unsafe bytes.withUnsafeBytes { unsafe digest($0[range], seed: seed) }
    }

    static func digest(_ bytes: Slice<UnsafeRawBufferPointer>, seed: UInt64) -> UInt64 {
        var digest = RecordDigest(seed: seed)
        unsafe digest.add(UnsafeRawBufferPointer(rebasing: bytes))
        return digest.value
    }

    static func append(
        _ kind: Entry,
        _ key: RecordKey?,
        _ value: [UInt8],
        to bytes: inout [UInt8]
    ) {
        let key = key?.bytes ?? []
        bytes.append(kind.rawValue)
        for shift in [0, 8] { bytes.append(UInt8(truncatingIfNeeded: key.count >> shift)) }
        for shift in [0, 8, 16, 24] {
            bytes.append(UInt8(truncatingIfNeeded: value.count >> shift))
        }
        bytes += key
        bytes += value
    }

    private struct WordWriter {
        var bytes: [UInt8] = []

        mutating func add(_ word: UInt64) {
            for shift in stride(from: 0, to: 64, by: 8) {
                bytes.append(UInt8(truncatingIfNeeded: word >> UInt64(shift)))
            }
        }
    }
}
