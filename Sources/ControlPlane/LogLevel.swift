/// Severity of a log line; a configured level includes all above it.
package enum LogLevel: String, CaseIterable, Comparable, Sendable {
    case debug, info, warning, error

    package static func < (left: Self, right: Self) -> Bool { left.rank < right.rank }

    private var rank: Int {
        switch self {
        case .debug: 0
        case .info: 1
        case .warning: 2
        case .error: 3
        }
    }
}
