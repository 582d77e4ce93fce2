import Foundation
import Testing

/// `docs/reliability.md` has every row of the catalogue once, and names existing tests.
@Suite struct CatalogueTests {
    /// Number of rows by their letter.
    static let counts = [
        ("A", 9), ("B", 12), ("C", 17), ("D", 11), ("E", 17), ("F", 14), ("G", 15), ("H", 12),
        ("I", 14), ("J", 9), ("K", 9), ("L", 10), ("M", 6),
    ]

    struct Row: CustomTestStringConvertible, Sendable {
        var id: String
        var state: String
        var proof: String

        var testDescription: String { id }

        /// Tests named by a row: suite or file, and test name.
        var tests: [(suite: String, name: String)] {
            proof.matches(of: /`(\w+)` “([^”]+)”/).map { (String($0.1), String($0.2)) }
        }
    }

    static let rows: [Row] = {
        let page = Source.all(under: "docs", ending: "reliability.md").first?.text ?? ""
        return page.split(separator: "\n").compactMap { line in
            let cells = line.dropFirst(2).dropLast(2).components(separatedBy: " | ")
            guard line.hasPrefix("| "), cells.count == 4,
                cells[0].wholeMatch(of: /[A-M]\d+/) != nil
            else { return nil }
            return Row(id: cells[0], state: cells[2], proof: cells[3])
        }
    }()

    static let tests =
        Source.all(under: "Tests") + Source.all(under: "Tests", ending: ".py")

    @Test func `every row is there, once and in order`() {
        let ids = Self.counts.flatMap { letter, count in (1...count).map { "\(letter)\($0)" } }
        #expect(Self.rows.map(\.id) == ids)
    }

    @Test(arguments: rows)
    func `names existing tests`(row: Row) {
        for (suite, name) in row.tests {
            // Most rows have a file of their own; searching all files for the others takes time.
            let own = Self.tests.filter { file in
                file.path.hasSuffix("/\(suite).swift") || file.path.hasSuffix("/\(suite).py")
            }
            let isThere = (own.isEmpty ? Self.tests : own).contains { file in
                let isPython = file.path.hasSuffix(".py")
                return (!own.isEmpty || file.text.contains("struct \(suite) "))
                    && file.text.contains(isPython ? "def \(name)(" : "func `\(name)`")
            }
            #expect(isThere, "\(suite) has no test “\(name)”")
        }
        // Every quoted name belongs to some suite.
        #expect(row.tests.count == row.proof.count { $0 == "“" })
    }

    @Test(arguments: rows)
    func `says what it claims, and why not where it claims less`(row: Row) {
        switch row.state {
        case "yes": #expect(!row.tests.isEmpty || row.proof.contains("`make "))
        case "partly", "no": #expect(!row.proof.isEmpty)
        default: Issue.record("\(row.id) is \(row.state)")
        }
    }
}
