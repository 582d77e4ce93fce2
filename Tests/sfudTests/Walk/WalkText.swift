import SFUClient

// How calls and answers stand in a report of a disagreement.
extension JSON {
    /// One line, members in the order of their names.
    var text: String {
        switch self {
        case .null: return "null"
        case .bool(let value): return "\(value)"
        case .integer(let value): return "\(value)"
        case .number(let value): return "\(value)"
        case .string(let value): return "\"\(value)\""
        case .array(let list): return "[\(list.map(\.text).joined(separator: ","))]"
        case .object(let members):
            let sorted = members.sorted { $0.key < $1.key }
            return "{\(sorted.map { "\($0.key):\($0.value.text)" }.joined(separator: ","))}"
        }
    }

    /// The members in which two answers differ, each with both.
    static func difference(_ wanted: JSON, _ came: JSON, at path: String = "") -> String {
        guard case .object(let left) = wanted, case .object(let right) = came else {
            return "\(path) wanted \(wanted.text), got \(came.text)"
        }
        var parts: [String] = []
        for key in Set(left.keys).union(right.keys).sorted() where left[key] != right[key] {
            if left[key]?.word?.hasPrefix("$") == true { continue }
            let (left, right) = (left[key] ?? "(none)", right[key] ?? "(none)")
            parts.append(difference(left, right, at: "\(path).\(key)"))
        }
        return parts.joined(separator: "\n")
    }
}
