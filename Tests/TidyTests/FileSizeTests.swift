import Foundation
import Testing

/// Files are short enough to read at once, and long enough to be worth opening.
@Suite struct FileSizeTests {
    static let longest = 400
    static let shortest = 40

    /// Short files with a single user that stay apart, with the reason.
    static let apart = [
        "Sources/ControlPlane/Methods/ServerMethods.swift": "a group of the table of methods",
        "Sources/sfuctl/Compose/Rename.swift": "the only call of sfuctl that needs `unsafe`",
    ]

    /// Files that a program writes, and nobody reads from end to end.
    static let generated = ["Sources/Contract/Schema/ContractTexts.swift"]

    static let sources = Source.all(under: "Sources")

    @Test(arguments: sources + Source.all(under: "Tests") + Source.all(under: "benchmarks"))
    func `files have at most 400 lines`(_ source: Source) {
        guard !Self.generated.contains(source.path) else { return }
        #expect(source.lineCount <= Self.longest, "\(source.path): cut it by subject")
    }

    /// A short file whose declarations one other file alone uses only makes the reader look it up.
    @Test func `a file of less than 40 lines has more than one user`() {
        let words = Self.sources.map { ($0.path, $0.words) }
        for source in Self.sources where source.lineCount < Self.shortest {
            guard Self.apart[source.path] == nil else { continue }
            let declared = source.declaredNames
            let users = words.filter { path, words in
                path != source.path && !words.isDisjoint(with: declared)
            }
            // The user in another module cannot take it in.
            guard users.count == 1, let user = users.first?.0,
                Self.module(user) == Self.module(source.path)
            else { continue }
            Issue.record("\(source.path) has \(user) as its only user: move it there")
        }
    }

    @Test func `only existing files are exempt`() {
        let short = Self.sources.filter { $0.lineCount < Self.shortest }.map(\.path)
        #expect(Set(Self.apart.keys).isSubset(of: short))
    }

    /// Returns the folder below `Sources`.
    private static func module(_ path: String) -> Substring {
        path.split(separator: "/")[1]
    }
}

extension Source {
    var lineCount: Int { text.utf8.count { $0 == UInt8(ascii: "\n") } }

    /// All identifiers and keywords of the text, including those in comments.
    fileprivate var words: Set<String> {
        Set(text.utf8.split { !Self.isOfWord($0) }.map { String(Substring($0)) })
    }

    /// Names of the types, functions and values that the file declares for others; members of the
    /// extended types if it has only extensions.
    fileprivate var declaredNames: Set<String> {
        let names = declaredNames(indentation: 0)
        return names.isEmpty ? declaredNames(indentation: 4) : names
    }

    private func declaredNames(indentation: Int) -> Set<String> {
        let kinds: Set<Substring> = [
            "struct", "enum", "class", "actor", "protocol", "typealias", "func", "let", "var",
        ]
        var names: Set<String> = []
        for (_, line) in code where line.prefix(while: { $0 == " " }).count == indentation {
            let parts = line.split { !$0.isLetter && !$0.isNumber && $0 != "_" }
            guard !parts.contains("extension"), let kind = parts.firstIndex(where: kinds.contains),
                kind + 1 < parts.count
            else { continue }
            names.insert(String(parts[kind + 1]))
        }
        return names
    }

    private static func isOfWord(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), 0x80...:
            true
        default: false
        }
    }
}
