import CKernel
import Foundation

/// A refusal by the operating system.
struct SystemError: Error, Equatable, CustomStringConvertible {
    /// What was tried, as an operator would say it.
    var operation: String
    /// An errno.
    var number: Int32

    var description: String { "\(operation): \(Self.text(number))" }

    static func text(_ number: Int32) -> String { unsafe String(cString: strerror(number)) }

    /// Returns `result`, or throws what its negative value stands for.
    static func check(
        _ result: Int32,
        _ operation: @autoclosure () -> String
    ) throws(SystemError) -> Int32 {
        guard result < 0 else { return result }
        throw SystemError(operation: operation(), number: -result)
    }
}
