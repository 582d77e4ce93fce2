import TestSupport
import Testing

@testable import Contract
@testable import JSON

@Suite struct CompactFormTests {
    static let values: [Row<String, JSON>] = [
        Row("null", "d90100 f6", .null),
        Row("true", "d90100 f5", true),
        Row("zero", "d90100 00", 0),
        Row("largest in the first byte", "d90100 17", 23),
        Row("one byte", "d90100 18 ff", 255),
        Row("two bytes", "d90100 19 0100", 256),
        Row("four bytes", "d90100 1a 00010000", 65_536),
        Row("eight bytes", "d90100 1b 7fffffffffffffff", .integer(.max)),
        Row("minus one", "d90100 20", -1),
        Row("smallest integer", "d90100 3b 7fffffffffffffff", .integer(.min)),
        Row("fraction", "d90100 fb 3ff8000000000000", .number(1.5)),
        Row("text", "d90100 62 c3a9", "é"),
        Row("array", "d90100 9f 01 02 ff", [1, 2]),
        Row("object", "d90100 bf 61 61 9f ff ff", ["a": []]),
        Row("the same text again", "d90100 9f 63 616263 d819 00 ff", ["abc", "abc"]),
        Row("too short to refer to", "d90100 9f 62 6162 62 6162 ff", ["ab", "ab"]),
    ]

    private static func bytes(_ hex: String) -> [UInt8] {
        let digits = Array(hex.replacing(" ", with: ""))
        return stride(from: 0, to: digits.count, by: 2).compactMap {
            UInt8(String(digits[$0...$0 + 1]), radix: 16)
        }
    }

    @Test(arguments: values)
    func `writes CBOR and reads it`(_ row: Row<String, JSON>) throws {
        let bytes = Self.bytes(row.input)
        #expect(JSON.compact(row.output) == bytes)
        #expect(try JSON(parsingCompact: bytes) == row.output)
    }

    static let refused: [Row<String, Int>] = [
        Row("nothing", "", 0),
        Row("no namespace", "00", 1),
        Row("another tag", "d90101 00", 3),
        Row("nothing in it", "d90100", 3),
        Row("two values", "d90100 00 00", 4),
        Row("open array", "d90100 9f 00", 5),
        Row("open object", "d90100 bf 6161 00", 7),
        Row("name without a value", "d90100 bf 6161 ff", 7),
        Row("name that is a number", "d90100 bf 00 00 ff", 5),
        Row("name twice", "d90100 bf 6161 00 6161 00 ff", 10),
        Row("text that ends early", "d90100 63 6162", 4),
        Row("text of 2^63 bytes", "d90100 7b 8000000000000000", 12),
        Row("bytes of 2^64 - 1", "d90100 5b ffffffffffffffff", 12),
        Row("no UTF-8", "d90100 61 ff", 4),
        Row("number that ends early", "d90100 19 01", 5),
        Row("reference to nothing", "d90100 d819 00", 6),
        Row("reference to bytes", "d90100 9f 43 010203 d819 00 ff", 11),
        Row("reference to 2^64 - 1", "d90100 d819 1b ffffffffffffffff", 14),
        Row("reference that is a text", "d90100 d819 6161", 6),
        Row("tag of a date", "d90100 c0 6161", 4),
        Row("integer below Int64", "d90100 3b 8000000000000000", 12),
        Row("array with a length", "d90100 81 00", 4),
        Row("undefined", "d90100 f7", 4),
        Row("length that is reserved", "d90100 1c", 4),
        Row("end of nothing", "d90100 ff", 4),
    ]

    @Test(arguments: refused)
    func `refuses what it does not write, and says where`(_ row: Row<String, Int>) {
        let bytes = Self.bytes(row.input)
        let error = #expect(throws: CompactSyntaxError.self) {
            _ = try JSON(parsingCompact: bytes)
        }
        #expect(error?.offset == row.output)
    }

    @Test func `takes 64 levels and no more`() throws {
        func nested(_ levels: Int) -> [UInt8] {
            Self.bytes("d90100") + Array(repeating: 0x9f, count: levels)
                + Array(repeating: 0xff, count: levels)
        }
        _ = try JSON(parsingCompact: nested(64))
        #expect(throws: CompactSyntaxError.self) { _ = try JSON(parsingCompact: nested(65)) }
        #expect(throws: CompactSyntaxError.self) { _ = try JSON(parsingCompact: nested(1 << 20)) }
    }

    /// Value with all that a saved record may hold.
    struct Sample: Codable, Equatable {
        enum Choice: Codable, Equatable {
            case none
            case pair(first: Int, second: String)
        }

        struct Part: Codable, Equatable {
            var identifier: UInt32
            var fingerprint: [UInt8]
            var choice: Choice
            var absent: String?
        }

        var parts: [Part]
        var counts: [Int: UInt8]
        var names: [String: Part]
        var set: Set<String>
        var exact: UInt64
        var custom: JSON
        var nothing: [Part]
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `restores what it wrote`(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        func number(_ range: ClosedRange<Int>) -> Int { .random(in: range, using: &random) }
        // Equal as Swift's strings, but of other bytes.
        let texts = ["main", "e\u{301}te\u{301}", "\u{e9}t\u{e9}", "", "K12", "\u{212a}12", "x"]
        func part() -> Sample.Part {
            Sample.Part(
                identifier: UInt32(number(0...Int(UInt32.max))),
                fingerprint: (0..<number(0...40)).map { _ in UInt8(number(0...255)) },
                choice: number(0...1) == 0
                    ? .none : .pair(first: number(-9...9), second: texts[number(0...6)]),
                absent: number(0...1) == 0 ? nil : texts[number(0...6)]
            )
        }
        // More than 256 different strings, so that all lengths of references are used.
        let names = (0..<300).map { "name \($0)" } + texts
        let sample = Sample(
            parts: (0..<number(0...5)).map { _ in part() },
            counts: [number(0...9): 7, 100: 255],
            names: Dictionary(uniqueKeysWithValues: names.prefix(300).map { ($0, part()) }),
            set: Set(names),
            exact: UInt64(number(0...Int.max)),
            custom: ["name": .array(names.map { .string($0) }), "number": .number(0.1)],
            nothing: []
        )
        let written = JSON.compact(sample)
        let restored = try JSON(parsingCompact: written).decode(Sample.self, isClosed: true)
        #expect(restored == sample)
        func bytes(of sample: Sample) -> [[UInt8]] {
            sample.parts.map { Array("\($0.absent ?? "-") \($0.choice)".utf8) }
        }
        #expect(bytes(of: restored) == bytes(of: sample))
        #expect(written.count < JSON.encoded(sample).count / 2)
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `mangled values never trap`(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        let original = JSON.compact(
            [
                "list": ["camera", "camera", -1, .number(1.5), ["name": "camera", "other": []]],
                "text": "e\u{301}",
                "large": .integer(.max),
            ] as JSON
        )
        for length in 0..<original.count {
            #expect(throws: CompactSyntaxError.self) {
                _ = try JSON(parsingCompact: Array(original[..<length]))
            }
        }
        for _ in 0..<20_000 {
            var bytes = original
            for _ in 0...Int.random(in: 0..<4, using: &random) {
                let place = Int.random(in: 0..<bytes.count, using: &random)
                bytes[place] = UInt8.random(in: 0...255, using: &random)
            }
            _ = try? JSON(parsingCompact: bytes)
        }
    }
}
