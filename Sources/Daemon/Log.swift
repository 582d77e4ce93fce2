import CKernel
import ControlPlane
import Foundation
import Kernel
import RTP
import SFU

/// Structured lines on standard error: `time=… level=… msg="…" key=value`.
///
/// A line goes into a bounded queue that a thread of its own writes from, so that a slow, full
/// or closed standard error never holds anybody up; what does not fit is counted and told later.
/// Of one cause at most one line a second is written; the next says how many were held back.
final class Log: Sendable {
    private struct State {
        var queue: [String] = []
        var dropped: UInt64 = 0
        var limiter = LogLimiter()
        var stopped = false
    }

    private let level: LogLevel
    private let descriptor: Int32
    private let state = Locked(State())
    private let wake = DispatchSemaphore(value: 0)
    private let finished = DispatchSemaphore(value: 0)

    /// Writes lines of `level` and above to `descriptor`, standard error as a rule.
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

    /// Queues one line; `cause` tells apart lines of one message that are limited apart.
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

    /// Waits until all has been written, but no longer than `milliseconds`, and ends the thread.
    func finish(milliseconds: Int) {
        state.withLock { $0.stopped = true }
        wake.signal()
        _ = finished.wait(timeout: .now() + .milliseconds(milliseconds))
    }

    /// The thread: writes what is queued until `finish`.
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
        }
        finished.signal()
    }

    /// What the thread writes in one go.
    private struct Batch {
        var lines: [String] = []
        /// More will be due in a second, without a signal.
        var isHolding = false
        var isLast = false
    }

    private func take() -> Batch {
        let unix = kernel_unix_nanoseconds()
        return state.withLock { state in
            var lines: [String] = []
            swap(&lines, &state.queue)
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

    /// Writes one line; gives up on an error, for there is nowhere to tell of it.
    private func write(_ line: String) {
        let bytes = Array((line + "\n").utf8)
        var start = 0
        while start < bytes.count {
            let rest = bytes.span.extracting(start..<bytes.count)
            let written = kernel_write(descriptor, rest)
            if written == Int64(-EAGAIN) {
                // Somebody made it non-blocking: look again, this thread has nothing else to do.
                usleep(10_000)
                continue
            }
            guard written > 0 else { return }
            start += Int(written)
        }
    }

    /// Lines that wait to be written.
    private static let capacity = 1_024
}
