/// Writer of the compact form: CBOR (RFC 8949) with references to strings that have come before.
///
/// Objects and arrays have no length ahead (§3.2.2). Strings are repeated as references (tags 256
/// and 25, <http://cbor.schmorp.de/stringref>), so that a list of objects names its members once.
final class CompactWriter: ValueWriter {
    private var state = WriterState(CompactBytes())

    var bytes: [UInt8] { state.form.bytes }
    var count: Int { state.form.count }
    var depth: Int { state.depth }

    func openObject(isSorted: Bool) { state.openObject(isSorted: isSorted) }
    func openArray() { state.openArray() }
    func close(to level: Int) { state.close(to: level) }
    func end(level: Int, since start: Int) { state.end(level: level, since: start) }

    func member(_ name: String, at level: Int) {
        state.close(to: level)
        state.form.string(name)
    }

    func element(at level: Int) { state.close(to: level) }
    func null() { state.form.null() }
    func bool(_ value: Bool) { state.form.bool(value) }
    func integer(_ value: Int64) { state.form.integer(value) }
    func unsigned(_ value: UInt64) { state.form.unsigned(value) }
    func number(_ value: Double) { state.form.number(value) }
    func string(_ value: String) { state.form.string(value) }
    func bytes(_ value: [UInt8]) { state.form.bytes(value) }
    func json(_ value: JSON) { state.form.json(value) }
}

/// Bytes in the compact form.
struct CompactBytes: ContainerForm {
    private(set) var bytes: [UInt8] = []
    private var strings = StringReferences()
    /// Number of strings and byte strings that a reference might stand for.
    private var referable = 0

    init() {
        bytes.reserveCapacity(512)
        head(.tag, CompactForm.namespaceTag)
    }

    var count: Int { bytes.count }

    private mutating func head(_ major: CompactForm.Major, _ value: UInt64) {
        let kind = major.rawValue << 5
        switch value {
        case ..<24: bytes.append(kind | UInt8(value))
        case ...0xff: append(value, width: 1, behind: kind | 24)
        case ...0xffff: append(value, width: 2, behind: kind | 25)
        case ...0xffff_ffff: append(value, width: 4, behind: kind | 26)
        default: append(value, width: 8, behind: kind | 27)
        }
    }

    /// Appends a byte, and the low bytes of a number, the most significant one first.
    private mutating func append(_ value: UInt64, width: Int, behind first: UInt8) {
        bytes.append(first)
        var shift = UInt64(8 * width)
        while shift > 0 {
            shift -= 8
            bytes.append(UInt8(truncatingIfNeeded: value >> shift))
        }
    }

    mutating func beginObject(isSorted: Bool) { bytes.append(CompactForm.object) }
    mutating func endObject() { bytes.append(CompactForm.end) }
    mutating func beginArray() { bytes.append(CompactForm.array) }
    mutating func endArray() { bytes.append(CompactForm.end) }

    mutating func null() { bytes.append(CompactForm.null) }

    mutating func bool(_ value: Bool) {
        bytes.append(value ? CompactForm.true : CompactForm.false)
    }

    mutating func integer(_ value: Int64) {
        if value < 0 {
            head(.negative, UInt64(bitPattern: ~value))
        } else {
            head(.unsigned, UInt64(value))
        }
    }

    mutating func unsigned(_ value: UInt64) { head(.unsigned, value) }

    mutating func number(_ value: Double) {
        append(value.bitPattern, width: 8, behind: CompactForm.double)
    }

    mutating func string(_ value: String) {
        let text = value.utf8Span.span
        if text.count >= CompactForm.shortestReferable(referable) {
            // The head is as long whether the text is stored or not.
            let start = bytes.count + Self.headLength(text.count)
            if let number = strings.number(of: text, in: bytes, orNote: referable, at: start) {
                head(.tag, CompactForm.referenceTag)
                return head(.unsigned, UInt64(number))
            }
            referable += 1
        }
        head(.text, UInt64(text.count))
        for index in text.indices { bytes.append(text[index]) }
    }

    private static func headLength(_ value: Int) -> Int {
        switch value {
        case ..<24: 1
        case ...0xff: 2
        case ...0xffff: 3
        case ...0xffff_ffff: 5
        default: 9
        }
    }

    mutating func bytes(_ value: [UInt8]) {
        if value.count >= CompactForm.shortestReferable(referable) { referable += 1 }
        head(.bytes, UInt64(value.count))
        bytes += value
    }

    mutating func json(_ json: JSON) {
        switch json {
        case .null: null()
        case .bool(let value): bool(value)
        case .integer(let value): integer(value)
        case .number(let value): number(value)
        case .string(let text): string(text)
        case .array(let elements):
            beginArray()
            for element in elements { self.json(element) }
            endArray()
        case .object(let members):
            beginObject(isSorted: false)
            for (name, value) in members {
                string(name)
                self.json(value)
            }
            endObject()
        }
    }
}

/// Table of the strings that references can stand for, by their bytes in what has been written.
///
/// A string that finds no place near its own is not noted: it is then written again. So names that
/// were chosen to collide cost little.
private struct StringReferences {
    private struct Entry {
        var start = 0
        /// Bytes of the string; 0 for an empty entry.
        var length = 0
        var hash: UInt64 = 0
        var number = 0
    }

    private var entries: [Entry] = []
    private var count = 0

    /// Entries looked at for one string.
    private static let nearby = 8

    /// Returns the number of a string that was noted before.
    ///
    /// Otherwise notes it with the number `next`, as bytes of what is written from `start` on, and
    /// returns `nil`.
    mutating func number(
        of text: Span<UInt8>,
        in bytes: [UInt8],
        orNote next: Int,
        at start: Int
    ) -> Int? {
        // FNV-1a (draft-eastlake-fnv).
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        var union: UInt8 = 0
        for index in text.indices {
            hash = (hash ^ UInt64(text[index])) &* 0x100_0000_01b3
            union |= text[index]
        }
        // Of other texts, those that are equal in Swift may have other bytes.
        guard union < 0x80 else { return nil }
        if 2 * count >= entries.count { grow() }
        let mask = entries.count - 1
        for step in 0..<Self.nearby {
            let place = (Int(truncatingIfNeeded: hash) &+ step) & mask
            let entry = entries[place]
            guard entry.length > 0 else {
                entries[place] = Entry(
                    start: start,
                    length: text.count,
                    hash: hash,
                    number: next
                )
                count += 1
                return nil
            }
            if entry.hash == hash, entry.length == text.count,
                text.indices.allSatisfy({ bytes[entry.start + $0] == text[$0] })
            {
                return entry.number
            }
        }
        return nil
    }

    private mutating func grow() {
        let old = entries
        entries = Array(repeating: Entry(), count: max(64, 4 * old.count))
        count = 0
        let mask = entries.count - 1
        for entry in old where entry.length > 0 {
            for step in 0..<Self.nearby {
                let place = (Int(truncatingIfNeeded: entry.hash) &+ step) & mask
                guard entries[place].length == 0 else { continue }
                entries[place] = entry
                count += 1
                break
            }
        }
    }
}

/// Codes of the compact form.
enum CompactForm {
    /// Major types (RFC 8949 §3.1).
    enum Major: UInt8 {
        case unsigned, negative, bytes, text, array, map, tag, simple
    }

    static let array: UInt8 = 0x9f
    static let object: UInt8 = 0xbf
    static let `false`: UInt8 = 0xf4
    static let `true`: UInt8 = 0xf5
    static let null: UInt8 = 0xf6
    static let double: UInt8 = 0xfb
    static let end: UInt8 = 0xff

    static let referenceTag: UInt64 = 25
    static let namespaceTag: UInt64 = 256

    /// Length from which a string may be referred to when `count` others may already.
    ///
    /// A shorter one is no longer than a reference to it.
    static func shortestReferable(_ count: Int) -> Int {
        switch count {
        case ..<24: 3
        case ..<256: 4
        case ..<65_536: 5
        default: 7
        }
    }
}

extension JSON {
    /// Encodes `value` in the compact form, which only `init(parsingCompact:)` reads.
    package static func compact(_ value: some Encodable) -> [UInt8] {
        let writer = CompactWriter()
        writer.encode(value)
        return writer.bytes
    }
}
