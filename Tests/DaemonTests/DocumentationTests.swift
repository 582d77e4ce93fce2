import Foundation
import Testing

@testable import Contract
@testable import Daemon

struct DocumentationTests {
    static func page(_ name: String) throws -> String {
        let root = URL(fileURLWithPath: #filePath)
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        return try String(
            contentsOf: root.appendingPathComponent("docs/\(name)"),
            encoding: .utf8
        )
    }

    /// Formats `1048576` as `1,048,576`.
    static func grouped(_ number: Int) -> String {
        var text = ""
        for (index, digit) in String(number).reversed().enumerated() {
            if index > 0, index % 3 == 0 { text = "," + text }
            text = "\(digit)" + text
        }
        return text
    }

    @Test
    func `limits.md has every limit with its default and range`() throws {
        let page = try Self.page("limits.md")
        let defaults = Configuration.Limits()
        for limit in ConfigurationLimit.all {
            let range = limit.range
            let row = """
                | `\(limit.name)` | \(Self.grouped(defaults[keyPath: limit.path])) | \
                \(Self.grouped(range.lowerBound)) to \(Self.grouped(range.upperBound)) |
                """
            #expect(page.contains(row), "\(row)")
        }
    }

    @Test
    func `operating.md has every flag and key`() throws {
        let page = try Self.page("operating.md")
        for key in ConfigurationKey.allCases {
            #expect(page.contains("| `--\(key.rawValue) \(key.placeholder)` | `\(key.camel)` |"))
        }
    }
}
