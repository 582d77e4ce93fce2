import CKernel
import ControlPlane
import Foundation
import Kernel
import RTP
import SFU

/// Structured log on standard error: `time=… level=… msg="…" key=value`.
///
/// A dedicated thread writes lines from a bounded queue, so that a slow, full or closed standard
/// error never blocks a caller. Lines that do not fit are counted, and the count is logged later.
/// Each cause is limited to one line a second; the next line says how many were suppressed.
final class Log: Sendable {
    private struct State {
        var queue: [String] = []
        var dropped: UInt64 = 0
        var limiter = LogLimiter()
        var stopped = false
        /// Whether the thread writes lines that it has taken from the queue.
        var isWriting = false
    }

    private let level: LogLevel
    private let descriptor: Int32
    private let state = Locked(State())
    private let wake = DispatchSemaphore(value: 0)
    private let finished = DispatchSemaphore(value: 0)

    /// Writes lines of `level` and above to `descriptor`, by default standard error.
    init(level: LogLevel, descriptor: Int32 = 2) {
        self.level = level
        self.descriptor = descriptor
        let thread = Thread { @Sendable [self] in write() }
        thread.name = "log"
        thread.stackSize = 1 << 18
        thread.start()
    }

    func debug(_ message: String, _ fields: [(String, String)] = []) {
        log(.debug, message, fields)
    }

    func info(_ message: String, _ fields: [(String, String)] = []) {
        log(.info, message, fields)
    }

    func warning(_ message: String, cause: String = "", _ fields: [(String, String)] = []) {
        log(.warning, message, cause: cause, fields)
    }

    func error(_ message: String, cause: String = "", _ fields: [(String, String)] = []) {
        log(.error, message, cause: cause, fields)
    }

    /// Queues one line; lines with the same message but another `cause` are rate-limited
    /// separately.
    func log(
        _ level: LogLevel,
        _ message: String,
        cause: String = "",
        _ fields: [(String, String)]
    ) {
        guard level >= self.level else { return }
        let now = Instant.monotonic()
        let unix = kernel_unix_nanoseconds()
        let wakes = state.withLock { state in
            let key = LogLimiter.Key(level: level, message: message, cause: cause)
            let wasHolding = state.limiter.isHolding
            guard let held = state.limiter.admit(key, at: now) else { return !wasHolding }
            guard state.queue.count < Self.capacity else {
                state.dropped += 1
                return false
            }
            let extra = held > 0 ? [("suppressed", "\(held)")] : []
            state.queue.append(
                LogLine(unixNanoseconds: unix, level: level, message: message).text(fields + extra)
            )
            return true
        }
        if wakes { wake.signal() }
    }

    /// Stops the thread; waits up to `milliseconds` for queued lines to be written.
    func finish(milliseconds: Int) {
        state.withLock { $0.stopped = true }
        wake.signal()
        _ = finished.wait(timeout: .now() + .milliseconds(milliseconds))
    }

    /// Waits up to `milliseconds` until all queued lines are written.
    func flush(milliseconds: Int) {
        wake.signal()
        for _ in 0..<milliseconds {
            if state.withLock({ $0.queue.isEmpty && !$0.isWriting }) { return }
            usleep(1_000)
        }
    }

    /// Thread body: writes queued lines until `finish`.
    private func write() {
        var batch = Batch()
        while !batch.isLast {
            if batch.isHolding {
                _ = wake.wait(timeout: .now() + .seconds(1))
            } else {
                wake.wait()
            }
            batch = take()
            for line in batch.lines { write(line) }
            state.withLock { $0.isWriting = false }
        }
        finished.signal()
    }

    /// Lines that the thread writes at once.
    private struct Batch {
        var lines: [String] = []
        /// Whether suppressed lines must be reported within a second, without a signal.
        var isHolding = false
        var isLast = false
    }

    private func take() -> Batch {
        let unix = kernel_unix_nanoseconds()
        return state.withLock { state in
            var lines: [String] = []
            swap(&lines, &state.queue)
            state.isWriting = true
            for (key, held) in state.limiter.takeHeld(at: .monotonic()) {
                let line = LogLine(unixNanoseconds: unix, level: key.level, message: key.message)
                lines.append(line.text([("suppressed", "\(held)")]))
            }
            if state.dropped > 0 {
                let line = LogLine(
                    unixNanoseconds: unix,
                    level: .warning,
                    message: "log lines dropped"
                )
                lines.append(line.text([("count", "\(state.dropped)")]))
                state.dropped = 0
            }
            return Batch(
                lines: lines,
                isHolding: state.limiter.isHolding,
                isLast: state.stopped
            )
        }
    }

    /// Writes one line; ignores errors, as there is nowhere to report them.
    private func write(_ line: String) {
        let bytes = Array((line + "\n").utf8)
        var start = 0
        while start < bytes.count {
            let rest = bytes.span.extracting(start..<bytes.count)
            let written = kernel_write(descriptor, rest)
            if written == Int64(-EAGAIN) {
                // Standard error may be non-blocking: retry, as this thread has no other work.
                usleep(10_000)
                continue
            }
            guard written > 0 else { return }
            start += Int(written)
        }
    }

    /// Largest number of queued lines.
    private static let capacity = 1_024
}
