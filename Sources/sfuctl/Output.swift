import Foundation
import SFUClient

/// What a caller of the program can tell by its exit status.
enum Outcome: Int32 {
    case done = 0
    /// sfud refused the call, or what was asked for cannot be made.
    case refused = 1
    /// The command line is wrong.
    case usage = 2
    /// There is no daemon, or it gave no answer (EX_UNAVAILABLE of sysexits.h).
    case unavailable = 69
    /// Stopped by a signal, in a state from which it can go on (128 and the number of SIGINT).
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

/// The standard streams, without buffers between: a watcher in a pipe sees an event at once.
enum Output {
    static func text(_ text: String) { write(text, to: .standardOutput) }

    static func error(_ text: String) { write(text, to: .standardError) }

    private static func write(_ text: String, to file: FileHandle) {
        do {
            try file.write(contentsOf: Data((text.hasSuffix("\n") ? text : text + "\n").utf8))
        } catch {
            // Nobody reads any more: there is nothing left to do.
            Outcome.done.exit()
        }
    }
}
