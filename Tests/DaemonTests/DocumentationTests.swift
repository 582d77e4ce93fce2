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

    /// A metric as its row in metrics.md or its samples tell it.
    private struct Shown: Hashable {
        var name: String
        var type: String
        var labels: Set<String>
    }

    @Test
    func `metrics.md has every metric with its type and labels, and no other`() throws {
        var listed: Set<Shown> = []
        for line in try Self.page("metrics.md").split(separator: "\n") {
            let cells = line.split(separator: "|", omittingEmptySubsequences: false)
                .map { $0.trimmingCharacters(in: .whitespaces) }
            guard cells.count == 6, cells[1].hasPrefix("`") else { continue }
            let labels = cells[3].split(separator: ", ").map { $0.filter { $0 != "`" } }
            let name = cells[1].filter { $0 != "`" }
            #expect(!cells[4].isEmpty, "\(name) has no meaning")
            let row = Shown(name: name, type: cells[2], labels: Set(labels))
            #expect(listed.insert(row).inserted, "\(name) is listed twice")
        }
        let exposed = Self.exposed(MetricsTests.full.text)
        for metric in exposed.subtracting(listed) { Issue.record("not listed: \(metric)") }
        for metric in listed.subtracting(exposed) { Issue.record("not exposed: \(metric)") }
    }

    private static func exposed(_ text: String) -> Set<Shown> {
        var types: [String: String] = [:]
        var labels: [String: Set<String>] = [:]
        var order: [String] = []
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ").map(String.init)
            if words[1] == "TYPE" {
                types[words[2]] = words[3]
                order.append(words[2])
            } else if !line.hasPrefix("#"), let name = order.last {
                let inside = line.split(separator: "{").dropFirst().first ?? ""
                let found = inside.split(separator: "\",").map {
                    String($0.prefix { $0 != "=" })
                }
                labels[name, default: []].formUnion(found.filter { $0 != "le" })
            }
        }
        return Set(
            order.map { Shown(name: $0, type: types[$0] ?? "", labels: labels[$0] ?? []) }
        )
    }
}
