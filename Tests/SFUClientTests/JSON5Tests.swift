import TestSupport
import Testing

@testable import JSON

@Suite struct JSON5Tests {
    static let accepted: [Row<String, JSON>] = [
        Row(
            "JSON",
            #" {"a": [1, -2.5, "b", true, null]} "#,
            ["a": [1, .number(-2.5), "b", true, .null]]
        ),
        Row("comments", "// a\n/* b * / \n**/1// c", 1),
        Row("comment to each end of a line", "//a\r1//b", 1),
        Row("comment to a line separator", "//a\u{2028}1//b\u{2029}//c", 1),
        Row("space of every kind", "\u{feff}\t\u{b}\u{c} \u{a0}\u{3000}\u{2028}1\u{1680}", 1),
        Row("comments between all", "{/**/a/**/:/**/1/**/,/**/}/**/", ["a": 1]),
        Row("trailing commas", "{a:[1,],}", ["a": [1]]),
        Row(
            "names",
            "{$a_1:1,é\u{301}:2,_:3,true:4}",
            ["$a_1": 1, "é\u{301}": 2, "_": 3, "true": 4]
        ),
        Row("name with escapes", #"{\u0061b\u0031:1}"#, ["ab1": 1]),
        Row("name with a joiner", "{a\u{200c}:1}", ["a\u{200c}": 1]),
        Row("both quotes", #"["it's", 'say "a"', 'it\'s']"#, ["it's", #"say "a""#, "it's"]),
        Row("key in single quotes", "{'log-level':'a'}", ["log-level": "a"]),
        Row(
            "escapes of JSON",
            #"'\"\\\/\b\f\n\r\té\ud83d\ude00'"#,
            .string("\"\\/\u{8}\u{c}\n\r\té😀")
        ),
        Row("escapes of JSON5", #"'\v\0\x41\xe9\a\é\😀\-'"#, .string("\u{b}\0Aéaé😀-")),
        Row("lines go on", "'a\\\nb\\\r\nc\\\rd\\\u{2028}e'", "abcde"),
        Row("tab and line separator in a string", "'\t\u{2028}'", "\t\u{2028}"),
        Row("plus", "+1", 1),
        Row("leading point", "-.5", .number(-0.5)),
        Row("trailing point", "+5.", .number(5)),
        Row("point before exponent", "5.e-1", .number(0.5)),
        Row("hexadecimal", "[0xFf, -0X10, +0x0]", [255, -16, 0]),
        Row("largest hexadecimal", "0x7fffffffffffffff", .integer(.max)),
        Row("smallest hexadecimal", "-0x8000000000000000", .integer(.min)),
        Row("a key twice in two objects", "[{a:1},{a:2}]", [["a": 1], ["a": 2]]),
    ]

    @Test(arguments: accepted)
    func `reads JSON5`(_ row: Row<String, JSON>) throws {
        #expect(try JSON(parsingJSON5: row.input.bytes) == row.output)
    }

    /// Rejected inputs, and the byte offset of the error.
    static let refused: [Row<[UInt8], Int>] = [
        Row("nothing", [], 0),
        Row("comment only", "//a".bytes, 3),
        Row("comment without end", "1/*".bytes, 1),
        Row("comment that ends at its own star", "/*/1".bytes, 0),
        Row("half a comment", "{/a:1}".bytes, 1),
        Row("slash at the end", "1/".bytes, 1),
        Row("two values", "1 2".bytes, 2),
        Row("two values behind a carriage return", "//\r11\r1".bytes, 6),
        Row("half an exponent", "4E-".bytes, 3),
        Row("half an exponent in an object", "{a:4E-,b:1}".bytes, 6),
        Row("exponent without digits", "1e".bytes, 2),
        Row("point only", ".".bytes, 1),
        Row("sign only", "+".bytes, 1),
        Row("two signs", "+-1".bytes, 1),
        Row("leading zero", "01".bytes, 1),
        Row("number and letter", "1a".bytes, 1),
        Row("hexadecimal without digits", "0x".bytes, 2),
        Row("hexadecimal with a point", "0x1.5".bytes, 3),
        Row("hexadecimal beyond Int64", "[0x8000000000000000]".bytes, 1),
        Row("Infinity", "Infinity".bytes, 0),
        Row("minus Infinity", "-Infinity".bytes, 1),
        Row("NaN", "NaN".bytes, 0),
        Row("out of range", "[1e999]".bytes, 1),
        Row("comma only", "[,]".bytes, 1),
        Row("two commas", "[1,,]".bytes, 3),
        Row("comma only in an object", "{,}".bytes, 1),
        Row("number as key", "{1:1}".bytes, 1),
        Row("name with a hyphen", "{log-level:1}".bytes, 4),
        Row("name that begins with an escaped digit", #"{\u0031:1}"#.bytes, 1),
        Row("name with an escaped space", #"{a\u0020:1}"#.bytes, 2),
        Row("name with half an escape", #"{a\n:1}"#.bytes, 3),
        Row("name with a surrogate", #"{\ud800:1}"#.bytes, 3),
        Row("key twice", "{a:1,'a':1}".bytes, 5),
        Row("key twice by escape", #"{a:1,\u0061:1}"#.bytes, 5),
        Row("word as value", "{a:b}".bytes, 3),
        Row("string without end", "'a\"".bytes, 3),
        Row("line feed in a string", "'a\nb'".bytes, 2),
        Row("carriage return in a string", "'a\rb'".bytes, 2),
        Row("backslash at the end", #"'\"#.bytes, 2),
        Row("escaped digit", #"'\1'"#.bytes, 2),
        Row("octal escape", #"'\01'"#.bytes, 2),
        Row("short hexadecimal escape", #"'\x4'"#.bytes, 4),
        Row("lone surrogate", #"'\ud800'"#.bytes, 3),
        Row("not UTF-8 between values", [0x5b, 0xff, 0x5d], 1),
        Row("not UTF-8 in a name", [0x7b, 0x61, 0xc3, 0x3a], 2),
        Row("not UTF-8 in a comment", [0x2f, 0x2f, 0xed, 0xa0, 0x80], 2),
        Row("not UTF-8 in a string", [0x27, 0xf0, 0x9f, 0x27], 1),
        Row("not UTF-8 behind a backslash", [0x27, 0x5c, 0xff, 0x27], 2),
        Row("65 levels", Array(repeating: UInt8(ascii: "["), count: 65), 64),
    ]

    @Test(arguments: refused)
    func `refuses what is not JSON5, and says where`(_ row: Row<[UInt8], Int>) {
        let error = #expect(throws: JSONSyntaxError.self) { _ = try JSON(parsingJSON5: row.input) }
        #expect(error?.offset == row.output)
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `mangled texts never trap`(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        let original = """
            {// é\r
             udp: ['\\x31\\u0030\\\n', "[::]",], \\u0061b_$: +.5e-1, /* ' */ limits: {a: 0xfF,},}
            """.bytes
        for length in 0..<original.count {
            #expect(throws: JSONSyntaxError.self) {
                _ = try JSON(parsingJSON5: Array(original[..<length]))
            }
        }
        for _ in 0..<20_000 {
            var bytes = original
            for _ in 0...Int.random(in: 0..<4, using: &random) {
                let place = Int.random(in: 0..<bytes.count, using: &random)
                bytes[place] = UInt8.random(in: 0...255, using: &random)
            }
            if let read = try? JSON(parsingJSON5: bytes) {
                _ = try JSON(parsing: JSON.encoded(read))
            }
        }
    }
}
