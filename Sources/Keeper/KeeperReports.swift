import CKernel
import Kernel

/// Log of the keeper on standard error, in the daemon's format.
enum KeeperLog {
    enum Level: String { case info, warning, error }

    /// Writes one line; characters of values that could end it are replaced.
    static func write(_ level: Level, _ message: String, _ fields: [(String, String)] = []) {
        var text = "level=\(level.rawValue) msg=\"\(message)\""
        for (key, value) in fields {
            let isPlain = !value.isEmpty && value.utf8.allSatisfy(isWordByte)
            text += isPlain ? " \(key)=\(value)" : " \(key)=\"\(safe(value))\""
        }
        _ = kernel_write(2, Array("time=\(timestamp()) \(text)\n".utf8).span)
    }

    private static func timestamp() -> String {
        var text = [UInt8](repeating: 0, count: 32)
        var places = text.mutableSpan
        let count = kernel_format_time(kernel_unix_nanoseconds(), &places)
        return String(decoding: text.prefix(Int(max(0, count))), as: UTF8.self)
    }

    private static func isWordByte(_ byte: UInt8) -> Bool {
        (0x21...0x7e).contains(byte) && !"\"\\=".utf8.contains(byte)
    }

    private static func safe(_ value: String) -> String {
        let bytes = value.utf8.map { $0 == 0x20 || isWordByte($0) ? $0 : UInt8(ascii: "?") }
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// Service manager above the keeper, if there is one.
struct UpperManager {
    private let descriptor: Int32?
    /// Time within which it expects the watchdog to be fed, in microseconds.
    let watchdogMicroseconds: Int64?

    /// Reads `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `WATCHDOG_PID`.
    init(processID: Int32) {
        descriptor = ProcessEnvironment["NOTIFY_SOCKET"].flatMap { path in
            let descriptor = unsafe kernel_notify_connect(path)
            return descriptor >= 0 ? descriptor : nil
        }
        let isForUs = ProcessEnvironment["WATCHDOG_PID"].map { $0 == "\(processID)" } ?? true
        watchdogMicroseconds =
            isForUs ? ProcessEnvironment["WATCHDOG_USEC"].flatMap { Int64($0) } : nil
    }

    /// Sends lines and ignores errors, so that a stuck manager never blocks the keeper.
    func notify(_ lines: [String]) {
        guard let descriptor, !lines.isEmpty else { return }
        _ = kernel_notify_send(descriptor, Array(lines.joined(separator: "\n").utf8).span, -1, 0)
    }
}
