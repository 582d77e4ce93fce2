import CKernel
import Contract
import Foundation
import Kernel
import RTP
import Sockets
import Synchronization

/// Load of thousands of calls a second over one IPC connection, at an even rate.
///
/// It runs on its own thread and writes without waiting for replies, as a signalling server of many
/// rooms does. All calls are about one room, whose replies keep their order, so that the next reply
/// always belongs to the oldest call.
final class CallLoad: Sendable {
    /// Results of the calls.
    struct Tally: Sendable {
        var sent = 0
        var answered = 0
        var refused = 0
        /// Time from a call's write to its reply.
        var latency = LatencyHistogram()
        /// First error.
        var firstError: String?
    }

    private let tally = Mutex(Tally())
    private let isEnding = Atomic(false)
    private let hasEnded = Atomic(false)

    /// Starts calling; `calls` are repeated in order until `end`.
    init(path: String, calls: [IPCRequest], perSecond: Int) {
        let lines = calls.map { $0.encoded() + [UInt8(ascii: "\n")] }
        let thread = Thread { @Sendable [self] in
            do throws(SystemError) {
                let poller = try Poller()
                let socket = try SystemError.check(unsafe kernel_unix_connect(path), "ipc")
                try poller.add(socket, for: .readable, token: 0)
                var loop = CallLoop(socket, poller, lines, perSecond)
                while !isEnding.load(ordering: .relaxed), loop.turn() {
                    tally.withLock { $0 = loop.tally }
                }
                tally.withLock { $0 = loop.tally }
                loop.close()
            } catch {
                tally.withLock { $0.firstError = "\(error)" }
            }
            hasEnded.store(true, ordering: .releasing)
        }
        thread.name = "calls"
        thread.start()
    }

    /// Results until now.
    var present: Tally { tally.withLock { $0 } }

    /// Stops calling.
    func end() async {
        isEnding.store(true, ordering: .relaxed)
        while !hasEnded.load(ordering: .acquiring) {
            try? await Task.sleep(for: .milliseconds(5))
        }
    }
}

/// State of the calling thread.
private struct CallLoop: ~Copyable {
    private let descriptor: Int32
    private let lines: [[UInt8]]
    private let interval: Int64
    private var poller: Poller
    private let start = Instant.monotonic()
    /// Bytes that the socket has not accepted yet.
    private var waiting: [UInt8] = []
    /// Write times of calls, oldest first, and the number of those already answered.
    private var written: [Instant] = []
    private var settled = 0
    private var buffer = [UInt8](repeating: 0, count: 1 << 16)
    /// Start of the current reply line, as far as it is needed to classify it.
    private var head: [UInt8] = []
    var tally = CallLoad.Tally()

    /// Most calls that a late thread may catch up with in one turn.
    private static let burst = 200
    private static let headBytes = 64

    /// Takes ownership of `descriptor`, a connected socket that `poller` watches.
    init(
        _ descriptor: Int32,
        _ poller: consuming Poller,
        _ lines: [[UInt8]],
        _ perSecond: Int
    ) {
        self.descriptor = descriptor
        self.poller = poller
        self.lines = lines
        interval = 1_000_000_000 / Int64(perSecond)
    }

    consuming func close() { kernel_close(descriptor) }

    /// Writes due calls and reads replies; returns `false` if the connection has ended.
    mutating func turn() -> Bool {
        var now = Instant.monotonic()
        let due = Int(now.nanoseconds(since: start) / interval)
        let most = min(due, tally.sent + Self.burst)
        while tally.sent < most, waiting.count < 1 << 16, written.count - settled < 10_000 {
            waiting += lines[tally.sent % lines.count]
            tally.sent += 1
            written.append(now)
        }
        if !waiting.isEmpty {
            let count = kernel_write(descriptor, waiting.span)
            if count > 0 { waiting.removeFirst(Int(count)) }
        }
        let next = Instant(nanoseconds: start.nanoseconds + Int64(tally.sent + 1) * interval)
        now = .monotonic()
        let soon = now.advanced(milliseconds: 1)
        _ = poller.wait(until: max(min(next, soon), now), at: now)
        return read()
    }

    private mutating func read() -> Bool {
        let socket = descriptor
        while true {
            var places = buffer.mutableSpan
            let count = kernel_read(socket, &places)
            guard count > 0 else {
                if count == Int64(-EAGAIN) { return true }
                tally.firstError = "the connection has ended"
                return false
            }
            let now = Instant.monotonic()
            for byte in buffer[..<Int(count)] {
                if byte == UInt8(ascii: "\n") {
                    settle(at: now)
                } else if head.count < Self.headBytes {
                    head.append(byte)
                }
            }
        }
    }

    private mutating func settle(at now: Instant) {
        let text = String(decoding: head, as: UTF8.self)
        head.removeAll(keepingCapacity: true)
        guard settled < written.count else { return }
        tally.latency.note(nanoseconds: now.nanoseconds(since: written[settled]))
        settled += 1
        tally.answered += 1
        if !text.contains("\"result\"") {
            tally.refused += 1
            tally.firstError = tally.firstError ?? text
        }
        if settled > 10_000 {
            written.removeFirst(settled)
            settled = 0
        }
    }
}
