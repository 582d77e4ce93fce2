import Foundation

/// Shows progress on standard error: one line that changes on a terminal, else a line now and then.
final class ComposeMeter {
    private var progress: ComposeProgress
    private let begin = ContinuousClock.now
    private let isTerminal = isatty(STDERR_FILENO) != 0
    private var shown = -1
    private var width = 0

    /// Percent between two lines where there is no terminal.
    private static let step = 10

    init(_ progress: ComposeProgress) {
        self.progress = progress
        show(done: 0)
    }

    /// Shows the progress with what the present step has done of its cost.
    func show(done: Double) {
        var now = progress
        now.done += done
        let line = now.line(elapsed: elapsed)
        if isTerminal {
            let padding = String(repeating: " ", count: max(0, width - line.count))
            width = line.count
            FileHandle.standardError.write(Data("\r\(line)\(padding)".utf8))
        } else if shown < 0 || now.percent / Self.step > shown / Self.step {
            shown = now.percent
            Output.error(line)
        }
    }

    /// A step is done that cost as much.
    func finish(_ cost: Double) {
        progress.done += cost
        show(done: 0)
    }

    /// Leaves the line.
    func close() {
        if isTerminal { FileHandle.standardError.write(Data("\n".utf8)) }
    }

    private var elapsed: Double {
        let duration = ContinuousClock.now - begin
        return Double(duration.components.seconds) + Double(duration.components.attoseconds) / 1e18
    }
}
