import Foundation
import JSON

/// Settings of a running daemon, from its command line and its configuration file.
struct DaemonSettings: Hashable {
    /// Values of each setting, by the flag's name without dashes.
    private var values: [String: [String]] = [:]
    /// Why the configuration file could not be read.
    private(set) var trouble: String?
    /// Directory that relative paths start from; `nil` if it is not known.
    private let directory: String?

    /// Reads the arguments after the program's name; `file` returns a file's content.
    init(arguments: [String], directory: String?, file: (String) -> [UInt8]?) {
        self.directory = directory
        var flags: [String: [String]] = [:]
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            guard argument.hasPrefix("--") else { continue }
            let parts = argument.dropFirst(2).split(separator: "=", maxSplits: 1).map(String.init)
            guard let name = parts.first else { continue }
            if parts.count == 2 {
                flags[name, default: []].append(parts[1])
            } else if let value = rest.first, !value.hasPrefix("--") {
                flags[name, default: []].append(value)
                rest = rest.dropFirst()
            }
        }
        if let path = flags["config"]?.last {
            read(path, file)
        }
        // Flags override the file.
        values.merge(flags) { $1 }
    }

    /// Returns all values of a setting; empty if it has its default.
    subscript(name: String) -> [String] { values[name] ?? [] }

    /// Absolute path of the directory for recordings; `nil` if it is not known.
    var recordings: String? { absolute(self["recordings"].last ?? "recordings") }

    private mutating func read(_ path: String, _ file: (String) -> [UInt8]?) {
        guard let bytes = absolute(path).flatMap(file) else {
            trouble = "\(path) cannot be read"
            return
        }
        guard case .object(let members)? = try? JSON(parsingJSON5: bytes) else {
            trouble = "\(path) is not JSON5"
            return
        }
        for (key, value) in members {
            let texts: [String]
            switch value {
            case .string(let text): texts = [text]
            case .array(let items):
                texts = items.compactMap { if case .string(let text) = $0 { text } else { nil } }
            case .null, .bool, .integer, .number, .object: continue
            }
            values[key] = texts
        }
    }

    private func absolute(_ path: String) -> String? {
        path.hasPrefix("/")
            ? path : directory.map { URL(filePath: $0).appending(path: path).path }
    }
}
