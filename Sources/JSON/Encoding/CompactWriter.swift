/// Writer of the compact form: CBOR (RFC 8949) with references to strings that have come before.
///
/// Objects and arrays have no length ahead (§3.2.2). Strings are repeated as references (tags 256
/// and 25, <http://cbor.schmorp.de/stringref>), so that a list of objects names its members once.
final class CompactWriter: ValueWriter {
    private(set) var bytes: [UInt8] = []
    /// Numbers of the strings that references are written for.
    private var strings: [String: Int] = [:]
    /// Number of strings and byte strings that a reference might stand for.
    private var referable = 0

    init() { head(.tag, CompactForm.namespaceTag) }

    var count: Int { bytes.count }

    private func head(_ major: CompactForm.Major, _ value: UInt64) {
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
    private func append(_ value: UInt64, width: Int, behind first: UInt8) {
        bytes.append(first)
        var shift = UInt64(8 * width)
        while shift > 0 {
            shift -= 8
            bytes.append(UInt8(truncatingIfNeeded: value >> shift))
        }
    }

    func openObject(isSorted: Bool) { bytes.append(CompactForm.object) }
    func closeObject() { bytes.append(CompactForm.end) }
    func openArray() { bytes.append(CompactForm.array) }
    func closeArray() { bytes.append(CompactForm.end) }
    func member(_ name: String) { string(name) }
    func element() {}

    func null() { bytes.append(CompactForm.null) }
    func bool(_ value: Bool) { bytes.append(value ? CompactForm.true : CompactForm.false) }

    func integer(_ value: Int64) {
        if value < 0 {
            head(.negative, UInt64(bitPattern: ~value))
        } else {
            head(.unsigned, UInt64(value))
        }
    }

    func unsigned(_ value: UInt64) { head(.unsigned, value) }

    func number(_ value: Double) {
        append(value.bitPattern, width: 8, behind: CompactForm.double)
    }

    func string(_ value: String) {
        let length = value.utf8.count
        guard length >= CompactForm.shortestReferable(referable) else {
            head(.text, UInt64(length))
            return bytes.append(contentsOf: value.utf8)
        }
        // Other strings may be equal, and yet have other bytes.
        let isASCII = value.utf8.allSatisfy { $0 < 0x80 }
        if isASCII, let index = strings[value] {
            head(.tag, CompactForm.referenceTag)
            return head(.unsigned, UInt64(index))
        }
        if isASCII { strings[value] = referable }
        referable += 1
        head(.text, UInt64(length))
        bytes.append(contentsOf: value.utf8)
    }

    func bytes(_ value: [UInt8]) {
        if value.count >= CompactForm.shortestReferable(referable) { referable += 1 }
        head(.bytes, UInt64(value.count))
        bytes += value
    }

    func json(_ json: JSON) {
        switch json {
        case .null: null()
        case .bool(let value): bool(value)
        case .integer(let value): integer(value)
        case .number(let value): number(value)
        case .string(let text): string(text)
        case .array(let elements):
            openArray()
            for element in elements { self.json(element) }
            closeArray()
        case .object(let members):
            openObject(isSorted: false)
            for (name, value) in members {
                string(name)
                self.json(value)
            }
            closeObject()
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
