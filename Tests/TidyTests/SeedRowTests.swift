import Foundation
import Testing

/// Every row of the five vendors' documents has a test with its id, and `docs/seeds.md` names
/// existing tests.
@Suite struct SeedRowTests {
    /// Number of rows by their letter: A0, VideoSDK, 100ms, Sendbird, EnableX, Vonage.
    static let counts = [("A0", 6), ("V", 15), ("R", 10), ("L", 15), ("E", 37), ("O", 13)]

    static let ids = counts.flatMap { letter, count in (1...count).map { "\(letter)-\($0)" } }

    /// Rows without a test, with the reason.
    static let exempt = [
        "L-4": "one daemon holds no 30,000: what it holds is measured by sfu-bench"
    ]

    /// A file of tests, and the ids at the beginning of its test names.
    struct Tests {
        var path: String
        var text: String
        var ids: Set<String>

        /// The file's name without folder and extension, as `docs/seeds.md` names it.
        var name: String { URL(filePath: path).deletingPathExtension().lastPathComponent }
    }

    static let files =
        Source.all(under: "Tests").map { file in
            Tests(path: file.path, text: file.text, ids: Self.ids(inSwift: file.text))
        }
        + Source.all(under: "Tests", ending: ".py").map { file in
            Tests(path: file.path, text: file.text, ids: Self.ids(inPython: file.text))
        }

    @Test(arguments: ids)
    func `a test bears the id of the row`(_ id: String) {
        let isProved = Self.files.contains { $0.ids.contains(id) }
        #expect(isProved == (Self.exempt[id] == nil), "\(id) has no test, or is said to have none")
    }

    @Test func `only existing rows are exempt from a test`() {
        #expect(Set(Self.exempt.keys).isSubset(of: Self.ids))
    }

    @Test func `docs/seeds.md has every row, and names tests that prove it`() throws {
        let page = try #require(Source.all(under: "docs", ending: "seeds.md").first)
        var seen: Set<String> = []
        for row in page.text.split(separator: "\n") where row.hasPrefix("| ") {
            let cells = row.dropFirst(2).dropLast(2).components(separatedBy: " | ")
            let ids = Self.rows(named: cells[0])
            seen.formUnion(ids)
            guard !ids.isEmpty, let last = cells.last else { continue }
            let proofs = Self.proofs(last)
            #expect(!proofs.isEmpty || ids.allSatisfy { Self.exempt[$0] != nil }, "\(row)")
            let isExempt = ids.contains { Self.exempt[$0] != nil }
            #expect(cells.dropLast().last == (isExempt ? "not yet" : "works"), "\(row)")
            for id in ids where Self.ids.contains(id) && Self.exempt[id] == nil {
                let bearers = proofs.flatMap { proof in
                    Self.files.filter { $0.path.hasPrefix(proof) || $0.name == proof }
                }
                #expect(bearers.contains { $0.ids.contains(id) }, "\(id): \(last) has no such test")
            }
        }
        #expect(Self.ids.filter { !seen.contains($0) } == [] && Self.ids.count == 96)
    }

    @Test func `every test that docs/seeds.md names exists`() throws {
        let page = try #require(Source.all(under: "docs", ending: "seeds.md").first)
        let names = page.text.split(separator: "`").filter { word in
            (word.hasSuffix("Tests") || word.hasPrefix("Tests/")) && !word.contains(" ")
        }
        #expect(names.count > 50)
        for name in Set(names) {
            let isThere = Self.files.contains { file in
                file.path.hasPrefix(name)
                    || (file.name == name && file.text.contains("struct \(name)"))
            }
            #expect(isThere, "\(name)")
        }
    }
}

extension SeedRowTests {
    /// Expands `E-8, E-9` and `E-1 to E-3`; empty where the cell names no row.
    static func rows(named cell: String) -> [String] {
        var rows: [String] = []
        for part in cell.components(separatedBy: ", ") {
            guard part.wholeMatch(of: /(A0|[VRLEO])-\d+/) != nil else { return [] }
            rows.append(part)
        }
        return rows
    }

    private static func proofs(_ cell: String) -> [String] {
        cell.split(separator: "`").map(String.init)
            .filter { $0.hasSuffix("Tests") || $0.hasPrefix("Tests/") }
    }

    /// Returns the ids at the beginning of test names and of their rows' names.
    static func ids(inSwift text: String) -> Set<String> {
        var ids: Set<String> = []
        for name in text.matches(of: /["`]((?:(?:A0|[VRLEO])-\d+ )+)/) {
            ids.formUnion(name.1.split(separator: " ").map(String.init))
        }
        return ids
    }

    /// Returns the ids in Python test names: `test_e11_to_e28_lock` proves E-11 and E-28.
    static func ids(inPython text: String) -> Set<String> {
        var ids: Set<String> = []
        for name in text.matches(of: /def (test_\w+)/) {
            for word in name.1.split(separator: "_") {
                guard let part = word.wholeMatch(of: /(a0|[vrleo])(\d+)/) else { continue }
                ids.insert("\(part.1.uppercased())-\(part.2)")
            }
        }
        return ids
    }

    /// `docs/reliability.md` numbers its rows by letters too, and some of these are the seeds'.
    @Test(arguments: CatalogueTests.rows)
    func `a test of a fault has no name that looks like a seed's row`(_ row: CatalogueTests.Row) {
        let id = "\(row.id.prefix(1))-\(row.id.dropFirst())"
        guard Self.ids.contains(id) else { return }
        for test in row.tests where test.suite.hasPrefix("test_") {
            let claimed = Self.ids(inPython: "def \(test.name)(")
            #expect(!claimed.contains(id), "\(test.name)")
        }
    }

    @Test func `ids are found where names begin with them`() {
        let swift = "func `E-4 A0-1 a room`() {}\nRow(\"R-9 words\")\n// see V-1 and \"so L-2\""
        #expect(Self.ids(inSwift: swift) == ["E-4", "A0-1", "R-9"])
        #expect(Self.ids(inPython: "async def test_e11_to_e28_lock(x):") == ["E-11", "E-28"])
    }
}
