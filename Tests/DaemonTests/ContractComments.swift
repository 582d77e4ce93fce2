import Foundation

/// Doc comments of the contract's types and members, read from the sources.
///
/// A program cannot read its own comments, so `ContractTexts` has them as a table; a test holds it
/// against these.
struct ContractComments {
    /// Comments by the Swift name of what they stand at, as in `RoomInfo.seq`.
    private(set) var texts: [String: String] = [:]

    private var types: [(name: String, indentation: Int)] = []
    private var comment: [Substring] = []

    /// Reads the comments of all files under `folder`.
    init(under folder: URL) {
        let files = FileManager.default.enumerator(atPath: folder.path)
        for name in (files?.compactMap { $0 as? String } ?? []).sorted() {
            guard name.hasSuffix(".swift"), !name.hasPrefix("Schema/"),
                let text = try? String(contentsOf: folder.appending(path: name), encoding: .utf8)
            else { continue }
            types = []
            for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
                read(line)
            }
        }
    }

    private mutating func read(_ line: Substring) {
        let indentation = line.prefix { $0 == " " }.count
        let code = line.dropFirst(indentation)
        if code.hasPrefix("///") {
            return comment.append(code.dropFirst(3).drop { $0 == " " })
        }
        defer { comment = [] }
        if code.hasPrefix("}"), indentation == types.last?.indentation {
            types.removeLast()
            return
        }
        let declared =
            /(?:(?:public|package|private|indirect) )*(struct|enum|extension|protocol) ([\w.]+)/
        if let match = code.prefixMatch(of: declared) {
            return enter(String(match.2), at: indentation, code)
        }
        if let match = code.firstMatch(of: /typealias \w+ = (Identifier<.+>)/) {
            return keep(String(match.1))
        }
        guard let type = types.last, indentation == type.indentation + 4 else { return }
        if let match = code.prefixMatch(of: /(?:public |package )?(?:var|let) (\w+)/) {
            keep("\(type.name).\(match.1)")
        } else if let match = code.prefixMatch(of: /case (\w+)(?: = "(.+)")?$/) {
            keep("\(type.name).\(match.2 ?? match.1)")
        }
    }

    private mutating func enter(_ name: String, at indentation: Int, _ code: Substring) {
        let outer = types.last.map { "\($0.name)." } ?? ""
        if !code.contains("extension ") { keep(outer + name) }
        let opened = code.count { $0 == "{" }
        guard opened == 0 || opened != code.count(where: { $0 == "}" }) else { return }
        types.append((outer + name, indentation))
    }

    /// Keeps the comment just read; what Swift calls `nil` is absent from JSON.
    private mutating func keep(_ name: String) {
        guard !comment.isEmpty, !comment.contains(where: { $0.hasPrefix("- Throws") }) else {
            return
        }
        let text = comment.filter { !$0.isEmpty }.joined(separator: " ")
            .replacing("`nil`", with: "absent")
        texts[name] = text.prefix(1).uppercased() + text.dropFirst()
    }

    /// The table's source: types, and below each its members with a space before.
    var source: String {
        var lines: [String] = []
        for (name, text) in texts.sorted(by: { $0.key < $1.key }) {
            lines += Self.wrapped("\(name): \(text)")
        }
        return """
            // Written by `make bindings`: change the comments there, not the texts here.

            extension ContractTexts {
                /// Doc comments of the contract's types and members, by their Swift names.
                static let table = #\"""
            \(lines.map { "        \($0)" }.joined(separator: "\n"))
                    \"""#
            }

            """
    }

    /// Cuts an entry into lines; all but the first begin with spaces.
    private static func wrapped(_ entry: String) -> [String] {
        var lines: [String] = []
        for word in entry.split(separator: " ") {
            if let line = lines.last, line.count + 1 + word.count <= 90 {
                lines[lines.count - 1] = "\(line) \(word)"
            } else {
                lines.append(lines.isEmpty ? String(word) : "    \(word)")
            }
        }
        return lines
    }
}
