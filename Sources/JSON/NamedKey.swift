/// A coding key made at run time.
package struct NamedKey: CodingKey {
    package let stringValue: String
    package let intValue: Int?

    package init(_ name: String) {
        stringValue = name
        intValue = nil
    }

    package init(stringValue: String) { self.init(stringValue) }

    package init(intValue: Int) {
        stringValue = "\(intValue)"
        self.intValue = intValue
    }
}

extension Decoder {
    /// Path from the params object to this value, as in `settings.roles[0].name`.
    package var parameter: String { codingPath.parameter }

    /// Returns an error for the parameter being decoded.
    package func refusal(_ message: String) -> JSONMismatch { codingPath.refusal(message) }
}

extension [any CodingKey] {
    package var parameter: String {
        reduce(into: "") { path, key in
            if let index = key.intValue {
                path += "[\(index)]"
            } else {
                path += path.isEmpty ? key.stringValue : ".\(key.stringValue)"
            }
        }
    }

    package func refusal(_ message: String) -> JSONMismatch {
        guard !isEmpty else { return JSONMismatch(path: "", message: "params \(message)") }
        return JSONMismatch(
            path: parameter,
            message: "parameter \"\(parameter)\" \(message)"
        )
    }
}
