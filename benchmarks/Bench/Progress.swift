import Foundation

/// A progress line on the terminal that is overwritten; nothing without a terminal.
final class Progress: @unchecked Sendable {
    // The prefix is set between loads, by the task that shows the rest.
    var prefix = ""
    private let isTerminal = isatty(2) == 1

    func show(_ text: String) { write("\r\(prefix)\(text)\u{1b}[K") }

    /// Erases the line.
    func clear() { write("\r\u{1b}[K") }

    private func write(_ text: String) {
        guard isTerminal else { return }
        FileHandle.standardError.write(Data(text.utf8))
    }
}
