import TestSupport
import Testing

@testable import Contract
@testable import JSON

@Suite struct JSONTests {
    static let accepted: [Row<String, JSON>] = [
        Row("null", "null", .null),
        Row("space around", " \t\r\ntrue\n", true),
        Row("zero", "0", 0),
        Row("minus zero", "-0", 0),
        Row("largest integer", "9223372036854775807", .integer(.max)),
        Row("smallest integer", "-9223372036854775808", .integer(.min)),
        Row("beyond Int64", "9223372036854775808", .number(9_223_372_036_854_775_808)),
        Row("fraction", "1.5", .number(1.5)),
        Row("exponent", "1E+2", .number(100)),
        Row("smaller than any Double", "1e-999", .number(0)),
        Row("empty containers", "[{},[]]", [[:], []]),
        Row("nested", #"{"a":[1,{"b":"c"}]}"#, ["a": [1, ["b": "c"]]]),
        Row("escapes", #""\"\\\/\b\f\n\r\t""#, .string("\"\\/\u{8}\u{c}\n\r\t")),
        Row("escaped NUL", #""\u0000""#, "\0"),
        Row("surrogate pair", #""\ud83d\ude00""#, "😀"),
        Row("UTF-8", "\"é😀\"", "é😀"),
    ]

    @Test(arguments: accepted)
    func `reads JSON`(_ row: Row<String, JSON>) throws {
        #expect(try JSON(parsing: row.input.bytes) == row.output)
        let written = JSON.encoded(row.output)
        #expect(try JSON(parsing: written) == row.output, "written as \(written.text)")
    }

    static let refused: [Row<[UInt8], Int>] = [
        Row("nothing", [], 0),
        Row("space only", "  ".bytes, 2),
        Row("two values", "1 2".bytes, 2),
        Row("byte order mark", [0xef, 0xbb, 0xbf] + "{}".bytes, 0),
        Row("NaN", "NaN".bytes, 0),
        Row("Infinity", "-Infinity".bytes, 1),
        Row("leading zero", "01".bytes, 1),
        Row("plus sign", "+1".bytes, 0),
        Row("bare point", "1.".bytes, 2),
        Row("bare exponent", "1e".bytes, 2),
        Row("out of range", "[1e999]".bytes, 1),
        Row("key twice", #"{"a":1,"a":1}"#.bytes, 7),
        Row("key twice by escape", #"{"a":1,"\u0061":1}"#.bytes, 7),
        Row("trailing comma", "[1,]".bytes, 3),
        Row("trailing comma in object", #"{"a":1,}"#.bytes, 7),
        Row("key without quotes", "{a:1}".bytes, 1),
        Row("comment", "/**/1".bytes, 0),
        Row("single quotes", "'a'".bytes, 0),
        Row("string without end", "\"a".bytes, 2),
        Row("newline in string", "\"a\nb\"".bytes, 2),
        Row("no such escape", #""\x""#.bytes, 2),
        Row("short escape", #""\u12""#.bytes, 5),
        Row("lone high surrogate", #""\ud800""#.bytes, 3),
        Row("lone low surrogate", #""\udc00""#.bytes, 3),
        Row("high surrogate and letter", #""\ud800\u0041""#.bytes, 3),
        Row("surrogate in UTF-8", [0x22, 0xed, 0xa0, 0x80, 0x22], 1),
        Row("overlong UTF-8", [0x22, 0xc0, 0x80, 0x22], 1),
        Row("cut UTF-8", [0x22, 0xe2, 0x82, 0x22], 1),
        Row("65 levels", Array(repeating: UInt8(ascii: "["), count: 65), 64),
        Row("a million levels", Array(repeating: UInt8(ascii: "["), count: 1_000_000), 64),
    ]

    @Test(arguments: refused)
    func `refuses what is not JSON, and says where`(_ row: Row<[UInt8], Int>) {
        let error = #expect(throws: JSONSyntaxError.self) { _ = try JSON(parsing: row.input) }
        #expect(error?.offset == row.output)
    }

    @Test func `takes 64 levels`() throws {
        let text = String(repeating: "[", count: 64) + String(repeating: "]", count: 64)
        _ = try JSON(parsing: text.bytes)
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `mangled requests never trap`(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        let request =
            #"{"jsonrpc":"2.0","id":"\ud83d\ude00","method":"room.create","#
            + #""params":{"room":"r1","settings":{"maxParticipants":-1.5e+3,"roles":[]}}}"#
        let original = request.bytes
        for length in 0..<original.count {
            #expect(throws: JSONSyntaxError.self) {
                _ = try JSON(parsing: Array(original[..<length]))
            }
        }
        for _ in 0..<20_000 {
            var bytes = original
            for _ in 0...Int.random(in: 0..<4, using: &random) {
                let place = Int.random(in: 0..<bytes.count, using: &random)
                bytes[place] = UInt8.random(in: 0...255, using: &random)
            }
            if let request = try? IPCRequest(line: bytes) {
                _ = try? request.params(RoomCreate.Params.self)
            }
        }
    }

    @Test func `writes members as declared, dictionaries sorted, and no NaN`() {
        var stats = EncodingStats(rid: "h", ssrc: .max, active: true)
        stats.packets = .max
        stats.jitter = .nan
        let text = JSON.encoded(stats).text
        #expect(text.hasPrefix(#"{"rid":"h","ssrc":4294967295,"active":true,"width":0"#))
        #expect(text.contains(#""packets":18446744073709551615"#))
        #expect(text.contains(#""jitter":null"#))
        #expect(JSON.encoded(["b": 1, "a": 2, "c": 3]).text == #"{"a":2,"b":1,"c":3}"#)
        #expect(JSON.encoded("\u{1}\u{1f}/\u{7f}").text == "\"\\u0001\\u001f/\u{7f}\"")
    }
}
