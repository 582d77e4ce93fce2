import JSON

/// Human-readable JSON: members sorted, two spaces a level, short containers on one line.
enum PrettyJSON {
    private static let width = 80

    static func text(_ json: JSON, indent: Int = 0) -> String {
        let short = String(decoding: JSON.encoded(json), as: UTF8.self)
        guard short.count + indent > width else { return short }
        let space = String(repeating: " ", count: indent + 2)
        let end = String(repeating: " ", count: indent)
        switch json {
        case .array(let elements):
            let lines = elements.map { space + text($0, indent: indent + 2) }
            return "[\n\(lines.joined(separator: ",\n"))\n\(end)]"
        case .object(let members):
            let lines = members.sorted { $0.key < $1.key }.map { key, value in
                let name = String(decoding: JSON.encoded(key), as: UTF8.self)
                return "\(space)\(name): \(text(value, indent: indent + 2))"
            }
            return "{\n\(lines.joined(separator: ",\n"))\n\(end)}"
        case .null, .bool, .integer, .number, .string: return short
        }
    }
}
