import Glibc

/// Error returned by the operating system.
package struct SystemError: Error, Equatable, CustomStringConvertible {
    /// Operation that failed, in words for an operator.
    package var operation: String
    /// Errno of the failure.
    package var number: Int32

    package init(operation: String, number: Int32) {
        self.operation = operation
        self.number = number
    }

    package var description: String { "\(operation): \(Self.text(number))" }

    package static func text(_ number: Int32) -> String { unsafe String(cString: strerror(number)) }

    /// Returns `result`, or throws the errno that its negative value stands for.
    package static func check(
        _ result: Int32,
        _ operation: @autoclosure () -> String
    ) throws(SystemError) -> Int32 {
        guard result < 0 else { return result }
        throw SystemError(operation: operation(), number: -result)
    }
}
