import Foundation

/// Progress display on standard error: one updated line on a terminal, else a line every 10 %.
final class ProgressDisplay {
    private var progress: ComposeProgress
    private let begin = ContinuousClock.now
    private let isTerminal = isatty(STDERR_FILENO) != 0
    /// Percentage of the last line, if standard error is not a terminal.
    private var shown: Int?
    private var width = 0

    /// Percent between two lines if standard error is not a terminal.
    private static let step = 10

    init(_ progress: ComposeProgress) {
        self.progress = progress
        show(done: 0)
    }

    /// Shows the progress, including the finished part of the current step's cost.
    func show(done: Double) {
        var now = progress
        now.done += done
        let line = now.line(elapsed: elapsed)
        if isTerminal {
            let padding = String(repeating: " ", count: max(0, width - line.count))
            width = line.count
            FileHandle.standardError.write(Data("\r\(line)\(padding)".utf8))
        } else if shown.map({ now.percent / Self.step > $0 / Self.step }) ?? true {
            shown = now.percent
            Output.error(line)
        }
    }

    /// Adds the cost of a finished step.
    func finish(_ cost: Double) {
        progress.done += cost
        show(done: 0)
    }

    /// Ends the line on a terminal.
    func close() {
        if isTerminal { FileHandle.standardError.write(Data("\n".utf8)) }
    }

    private var elapsed: Double {
        let duration = ContinuousClock.now - begin
        return Double(duration.components.seconds) + Double(duration.components.attoseconds) / 1e18
    }
}
