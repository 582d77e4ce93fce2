import Testing

/// The planted bugs of the simulator: a patch that no longer fits plants nothing.
@Suite struct PlantPatchTests {
    static let patches = Source.all(under: "Tests/SimulatorTests/Plants", ending: ".patch")
    static let sources = Dictionary(
        uniqueKeysWithValues: TidyTests.sources.map { ($0.path, Self.lines($0.text)) }
    )

    /// A run of lines that a patch expects in a file.
    struct Hunk {
        var path: String
        var expected: [Substring] = []
    }

    @Test func `there are patches to look at`() {
        #expect(Self.patches.count >= 12)
    }

    @Test(arguments: patches)
    func `every hunk finds its lines once in the file that it names`(patch: Source) throws {
        let hunks = Self.hunks(of: patch)
        #expect(!hunks.isEmpty)
        for hunk in hunks {
            let lines = try #require(Self.sources[hunk.path], "no file \(hunk.path)")
            #expect(!hunk.expected.isEmpty)
            let places = lines.indices.filter { lines[$0...].starts(with: hunk.expected) }
            #expect(places.count == 1, "in \(hunk.path): \(hunk.expected.joined(separator: "\n"))")
        }
    }

    @Test(arguments: patches)
    func `every bug waits to be switched on by the name of its file`(patch: Source) throws {
        let name = try #require(patch.path.split(separator: "/").last).dropLast(".patch".count)
        let added = Self.lines(patch.text).filter { $0.hasPrefix("+") && !$0.hasPrefix("+++") }
        #expect(added.contains { $0.contains("isPlanted(\"\(name)\")") })
    }

    private static func lines(_ text: String) -> [Substring] {
        text.split(separator: "\n", omittingEmptySubsequences: false)
    }

    /// Reads the context and the removed lines of a unified diff.
    private static func hunks(of patch: Source) -> [Hunk] {
        var hunks: [Hunk] = []
        var path: String?
        for line in lines(patch.text) {
            if line.hasPrefix("--- a/") {
                path = String(line.dropFirst(6))
            } else if line.hasPrefix("@@"), let path {
                hunks.append(Hunk(path: path))
            } else if line.hasPrefix("diff ") {
                path = nil
            } else if path != nil, !hunks.isEmpty, line.hasPrefix(" ") || line.hasPrefix("-") {
                hunks[hunks.count - 1].expected.append(line.dropFirst())
            }
        }
        return hunks
    }
}
