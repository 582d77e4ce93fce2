import ControlPlane
import Foundation

/// Log line without its fields.
struct LogLine {
    var unixNanoseconds: Int64
    var level: LogLevel
    var message: String

    /// Returns the line without its newline; fields are escaped, so none can split or forge a line.
    func text(_ fields: [(String, String)]) -> String {
        var line = "time=\(Self.timestamp(unixNanoseconds)) level=\(level.rawValue)"
        line += " msg=\(Self.quoted(message))"
        for (key, value) in fields {
            line += " \(key)=\(Self.isPlain(value) ? value : Self.quoted(value))"
        }
        return line
    }

    /// Returns the time in RFC 3339 format, in UTC with milliseconds.
    static func timestamp(_ unixNanoseconds: Int64) -> String {
        let seconds = unixNanoseconds / 1_000_000_000
        let milliseconds = unixNanoseconds / 1_000_000 % 1_000
        let date = Date(timeIntervalSince1970: Double(seconds)).formatted(.iso8601)
        return "\(date.dropLast()).\(String(1_000 + milliseconds).dropFirst())Z"
    }

    private static func isPlain(_ value: String) -> Bool {
        !value.isEmpty
            && value.utf8.allSatisfy { byte in
                (0x21...0x7e).contains(byte) && byte != UInt8(ascii: "\"")
                    && byte != UInt8(ascii: "=") && byte != UInt8(ascii: "\\")
            }
    }

    private static func quoted(_ value: String) -> String {
        var text = "\""
        for scalar in value.unicodeScalars.prefix(maximumScalars) {
            switch scalar {
            case "\"", "\\": text += "\\\(scalar)"
            case "\n": text += "\\n"
            case _ where scalar.properties.generalCategory == .control:
                text += "\\u{\(String(scalar.value, radix: 16))}"
            default: text.unicodeScalars.append(scalar)
            }
        }
        return text + "\""
    }

    /// Longest logged value in Unicode scalars; longer ones come from outside and are cut.
    private static let maximumScalars = 1_024
}
