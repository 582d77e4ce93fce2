/// Limits of a process, as `/proc/PID/limits` has them.
package enum ProcessLimits {
    /// Returns the number of files that the process may have open; `nil` without a limit or if
    /// `text` does not name one.
    package static func openFiles(_ text: String) -> Int? {
        let name = "Max open files"
        for line in text.split(separator: "\n") where line.hasPrefix(name) {
            // Soft limit, hard limit, unit.
            return line.dropFirst(name.count).split(separator: " ").first.flatMap { Int($0) }
        }
        return nil
    }
}
