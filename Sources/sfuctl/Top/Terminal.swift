import CKernel
import Foundation
import Kernel

/// The terminal that standard input and output are.
final class Terminal: Sendable {
    private struct State {
        var before = kernel_terminal()
        var isOn = false
        var sources: [any DispatchSourceSignal] = []
    }

    private let state = Locked(State())

    /// The terminal, unless input or output is something else.
    static let current: Terminal? =
        isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0 ? Terminal() : nil

    private init() {}

    /// Rows and columns; 24 by 80 if they are unknown.
    var size: (rows: Int, columns: Int) {
        let size = kernel_terminal_measure(STDOUT_FILENO)
        return size.rows > 0 && size.columns > 0
            ? (Int(size.rows), Int(size.columns)) : (24, 80)
    }

    /// Takes the whole screen, and passes on each key; `ended` is called when a signal asks this
    /// process to end, or when there are no more keys.
    func begin(
        _ key: @escaping @Sendable (UInt8) -> Void,
        ended: @escaping @Sendable () -> Void
    ) {
        let sources = [SIGTERM, SIGHUP, SIGINT].map { number in
            // The default action would leave the terminal as it is.
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler(handler: ended)
            source.activate()
            return source
        }
        state.withLock { state in
            state.before = kernel_terminal_begin(STDIN_FILENO)
            state.isOn = true
            state.sources = sources
        }
        // Another screen, so that what was on this one stays; no cursor.
        Self.write("\u{1b}[?1049h\u{1b}[?25l")
        Thread {
            while true {
                var byte: [UInt8] = [0]
                var place = byte.mutableSpan
                guard kernel_read(STDIN_FILENO, &place) == 1 else { return ended() }
                key(byte[0])
            }
        }.start()
    }

    /// Shows these lines in place of what was shown before.
    func draw(_ lines: [String]) {
        // From the upper left corner; each line and the rest of the screen is cleared.
        Self.write(
            "\u{1b}[H" + lines.map { "\($0)\u{1b}[K" }.joined(separator: "\r\n") + "\u{1b}[J"
        )
    }

    /// Leaves the screen as it was before.
    func end() {
        let before = state.withLock { state -> kernel_terminal? in
            guard state.isOn else { return nil }
            state.isOn = false
            return state.before
        }
        guard let before else { return }
        Self.write("\u{1b}[?25h\u{1b}[?1049l")
        kernel_terminal_end(STDIN_FILENO, before)
    }

    private static func write(_ text: String) {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = kernel_write(STDOUT_FILENO, Array(rest).span)
            guard count > 0 else { return }
            rest = rest.dropFirst(Int(count))
        }
    }
}
