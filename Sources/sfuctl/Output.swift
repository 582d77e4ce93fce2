import Foundation
import SFUClient

/// Exit status of the program.
enum Outcome: Int32 {
    case done = 0
    /// sfud refused the call, or the requested result is impossible.
    case refused = 1
    /// The command line is invalid.
    case usage = 2
    /// No daemon answers (EX_UNAVAILABLE of sysexits.h).
    case unavailable = 69
    /// Stopped by a signal, in a resumable state (128 plus the number of SIGINT).
    case interrupted = 130

    init(_ error: ClientError) {
        switch error {
        case .refused, .limit: self = .refused
        case .unreachable, .connectionLost, .timeout, .cancelled, .protocolViolation:
            self = .unavailable
        }
    }

    func exit() -> Never { Foundation.exit(rawValue) }
}

/// Unbuffered standard streams, so that `watch` in a pipe shows an event at once.
enum Output {
    static func text(_ text: String) { write(text, to: .standardOutput) }

    static func error(_ text: String) { write(text, to: .standardError) }

    private static func write(_ text: String, to file: FileHandle) {
        do {
            try file.write(contentsOf: Data((text.hasSuffix("\n") ? text : text + "\n").utf8))
        } catch {
            // The reader of the pipe is gone.
            Outcome.done.exit()
        }
    }
}
