import Foundation
import Testing

/// Each reason of a refused call belongs to one condition, and `docs/ipc.md` documents all.
@Suite struct ErrorReasonTests {
    /// Places in which a reason may be written once: the rooms, and what stands above them.
    static let places = [
        ["Sources/Rooms/"],
        [
            "Sources/Contract/IPC/", "Sources/ControlPlane/", "Sources/Daemon/IPC/IPCServer.swift",
            "Sources/Nodes/ClusterTypes.swift",
        ],
    ]

    /// Ways of writing an error's reason.
    ///
    /// Reasons of events are constants of `EndReason` and the like, and are not found.
    private static func reasons(in text: String) -> [String] {
        let patterns = [
            /reason: "([a-z-]+)"/, /conflict\(\s*"([a-z-]+)"/, /"reason":"([a-z-]+)"/,
            /[rR]eason = "([a-z-]+)"/,
        ]
        return patterns.flatMap { text.matches(of: $0).map { String($0.1) } }
    }

    private static func written(in folders: [String]) -> [String] {
        TidyTests.sources.filter { source in folders.contains { source.path.hasPrefix($0) } }
            .flatMap { source in
                reasons(in: source.code.map { String($0.line) }.joined(separator: "\n"))
            }
            // Neither is an error's: a reply without reason, and the end of a connection.
            .filter { !["unknown", "shutdown"].contains($0) }
    }

    /// Pairs of code and reason in the tables of errors.
    static let documented: [String] = {
        let page = Source.all(under: "docs", ending: "ipc.md").first?.text ?? ""
        let errors = page.components(separatedBy: "\n## Errors\n").dropFirst().first ?? ""
        let rows = (errors.components(separatedBy: "\n## ").first ?? "").split(separator: "\n")
        return rows.flatMap { row -> [String] in
            let cells = row.dropFirst(2).components(separatedBy: " | ")
            let codes = cells[0].components(separatedBy: ", ").compactMap { Int($0) }
            guard cells.count > 2, !codes.isEmpty else { return [] }
            let words = cells[1].matches(of: /`([a-z-]+)`/).map { String($0.1) }
            // Several of both are told one by one.
            guard codes.count == 1 || words.count == 1 else {
                return zip(codes, words).map { "\($0) \($1)" }
            }
            return codes.flatMap { code in words.map { "\(code) \($0)" } }
        }
    }()

    @Test(arguments: places)
    func `each reason is written at one place`(_ folders: [String]) {
        let written = Self.written(in: folders)
        let twice = Dictionary(grouping: written) { $0 }.filter { $0.value.count > 1 }.keys
        #expect(twice.sorted() == [])
        #expect(written.count > 10)
    }

    @Test func `each documented pair of code and reason has one row`() {
        let pairs = Dictionary(grouping: Self.documented) { $0 }.mapValues(\.count)
        // One vendor number stands for several methods, which have rows of their own.
        #expect(pairs.filter { $0.value > 1 }.keys.sorted() == [])
    }

    @Test func `the documented reasons are those of the sources`() {
        let documented = Set(Self.documented.compactMap { $0.split(separator: " ").last })
        let written = Set(Self.places.flatMap(Self.written))
        #expect(Set(documented.map(String.init)) == written)
    }

    @Test func `reasons are found however they are written`() {
        let text = """
            Self(code: 1, reason: "a-b") conflict("c") conflict(
                "d") "reason":"e" existsReason = "f" .left(x, reason: EndReason.left)
            """
        #expect(Self.reasons(in: text).sorted() == ["a-b", "c", "d", "e", "f"])
    }
}
