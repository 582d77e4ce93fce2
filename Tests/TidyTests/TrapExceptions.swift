import Foundation

/// The operations listed in `TrapExceptions.txt`, which could trap and do not, with their bounds.
///
///     Sources/SFU/
///       [slots] Int(slot)
///         = indices of our own tables
///     Sources/RTP/Packet.swift
///       Packet.payload: 1 arithmetic, 1 range, 1 slice
///         = the initializer has checked both lengths
///
/// Names in brackets apply to a whole folder or file: to subscripts of variables with that name,
/// and to their conversions. A bound applies to all lines since the previous bound.
struct TrapExceptions {
    struct Entry {
        var path: String
        var declaration: String
        var counts: [TrapKind: Int]
    }

    private(set) var entries: [Entry] = []
    /// Names by folder or file.
    private(set) var names: [String: Set<String>] = [:]
    /// Errors in the list itself.
    private(set) var problems: [String] = []

    static let path = "Tests/TidyTests/TrapExceptions.txt"

    init() {
        let file = URL(filePath: #filePath).deletingPathExtension().appendingPathExtension("txt")
        let text = try? String(contentsOf: file, encoding: .utf8)
        self.init(text ?? "")
    }

    init(_ text: String) {
        var path = ""
        var unbounded: String?
        for line in text.split(separator: "\n") where !line.hasPrefix("#") {
            let content = line.trimmingCharacters(in: .whitespaces)
            switch line.prefix(while: { $0 == " " }).count {
            case 0:
                if let unbounded { problems.append("\(unbounded) has no bound") }
                unbounded = nil
                path = content
            case 2:
                unbounded = content
                read(content, in: path)
            default:
                let words = content.split(separator: " ")
                if unbounded != nil, words.first != "=" || words.count < 4 {
                    problems.append("\(path) \(content): a bound is a sentence after an =")
                }
                unbounded = nil
            }
        }
        if let unbounded { problems.append("\(unbounded) has no bound") }
    }

    private mutating func read(_ line: String, in path: String) {
        guard let colon = line.firstIndex(of: ":") else {
            names[path, default: []].formUnion(line.split(separator: " ").map(String.init))
            return
        }
        let counts = line[line.index(after: colon)...].split(separator: ",").map { part in
            let words = part.split(separator: " ")
            return (words.last.flatMap { TrapKind(rawValue: String($0)) }, Int(words.first ?? ""))
        }
        var entry = Entry(path: path, declaration: String(line[..<colon]), counts: [:])
        for case (let kind?, let count?) in counts { entry.counts[kind] = count }
        if entry.counts.count != counts.count || counts.isEmpty {
            problems.append("\(path) \(line): not of the form declaration: 2 kind, 1 kind")
        }
        if entries.contains(where: { $0.path == path && $0.declaration == entry.declaration }) {
            problems.append("\(path) \(entry.declaration) is there twice")
        }
        entries.append(entry)
    }

    /// Returns the names that are valid in a file.
    func names(for path: String) -> Set<String> {
        names.filter { path == $0.key || $0.key.hasSuffix("/") && path.hasPrefix($0.key) }
            .reduce(into: []) { $0.formUnion($1.value) }
    }

    /// Returns the line of an exception for these operations.
    static func line(_ declaration: String, _ counts: [TrapKind: Int]) -> String {
        let parts = counts.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key.rawValue)" }
        return "  \(declaration): \(parts.joined(separator: ", "))"
    }
}
