import Foundation
import JSON
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
    /// The output could not be written (EX_IOERR).
    case unwritten = 74
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
    static func text(_ text: String) {
        do {
            try write(text, to: .standardOutput)
        } catch {
            let cause = (error as NSError).userInfo[NSUnderlyingErrorKey] as? NSError
            // A reader that has read enough is no fault.
            if cause?.code == Int(POSIXErrorCode.EPIPE.rawValue) { Outcome.done.exit() }
            Self.error("sfuctl: cannot write: \((cause ?? error as NSError).localizedDescription)")
            Outcome.unwritten.exit()
        }
    }

    static func error(_ text: String) {
        // If that fails too, the exit status is all that can tell it.
        try? write(text, to: .standardError)
    }

    private static func write(_ text: String, to file: FileHandle) throws {
        try file.write(contentsOf: Data((text.hasSuffix("\n") ? text : text + "\n").utf8))
    }
}

/// Human-readable JSON: members sorted, two spaces a level, short containers on one line.
enum PrettyJSON {
    private static let width = 80

    static func text(_ json: JSON, indent: Int = 0) -> String {
        let short = String(decoding: JSON.encoded(json), as: UTF8.self)
        guard short.count + indent > width else { return short }
        let space = String(repeating: " ", count: indent + 2)
        let end = String(repeating: " ", count: indent)
        switch json {
        case .array(let elements):
            let lines = elements.map { space + text($0, indent: indent + 2) }
            return "[\n\(lines.joined(separator: ",\n"))\n\(end)]"
        case .object(let members):
            let lines = members.sorted { $0.key < $1.key }.map { key, value in
                let name = String(decoding: JSON.encoded(key), as: UTF8.self)
                return "\(space)\(name): \(text(value, indent: indent + 2))"
            }
            return "{\n\(lines.joined(separator: ",\n"))\n\(end)}"
        case .null, .bool, .integer, .number, .string: return short
        }
    }
}
