import CKernel
import Glibc

/// Limits of live streams, and their trusted certificates; each is a configuration key.
package struct StreamingLimits: Hashable, Sendable {
    /// Seconds for which an unreachable server is retried before the stream ends.
    package var retrySeconds = 60
    /// Bytes queued for the encoding process; beyond them frames are dropped.
    package var waitingBytes = 4 << 20
    /// Path of a PEM file of CA certificates trusted for `rtmps`; `nil` uses the system's.
    package var authority: String?

    package init(
        retrySeconds: Int = 60,
        waitingBytes: Int = 4 << 20,
        authority: String? = nil
    ) {
        self.retrySeconds = retrySeconds
        self.waitingBytes = waitingBytes
        self.authority = authority
    }
}

/// Child process that decodes, composes, encodes and sends one live stream.
///
/// It runs this program again with `--streamer`, so that decoders of untrusted media and
/// connections to stuck servers are isolated in a process of their own. Its settings, including the
/// stream key in the URL, are sent over a socket, so that no process listing shows them.
///
/// Safe: strings are lent for the length of a call.
package final class StreamerProcess {
    package static let argument = "--streamer"
    /// Buffers of reports read at a time, so that a process that never stops writing does not block
    /// the thread.
    private static let readLimit = 16

    let pid: Int32
    private let descriptor: Int32
    private let waitingLimit: Int
    private var queue: [[UInt8]] = []
    private var first = 0
    /// Bytes of the first message that have been written.
    private var written = 0
    private var waiting = 0
    private var input = StreamDeframer()
    /// Whether the process is gone or has broken the protocol.
    private(set) var hasEnded = false

    /// Returns `nil` if the system cannot start a process.
    init?(waitingLimit: Int) {
        let child = unsafe kernel_spawn("/proc/self/exe", "sfud", Self.argument)
        guard child.pid > 0 else { return nil }
        pid = child.pid
        descriptor = child.descriptor
        self.waitingLimit = waitingLimit
    }

    deinit { kernel_close(descriptor) }

    /// Queues a message.
    ///
    /// - Returns: `false` if it is a frame that does not fit, which is dropped. Other messages
    ///   always fit.
    func send(_ message: StreamMessage) -> Bool {
        let bytes = StreamWireFormat.encoded(message)
        if case .frame = message, waiting + bytes.count > waitingLimit { return false }
        queue.append(bytes)
        waiting += bytes.count
        flush()
        return true
    }

    /// Writes as much as the socket accepts.
    func flush() {
        while first < queue.count, !hasEnded {
            let bytes = queue[first]
            let count = Int(kernel_write(descriptor, bytes.span.extracting(written..<bytes.count)))
            guard count > 0 else { break }
            written += count
            waiting -= count
            guard written == bytes.count else { continue }
            queue[first] = []
            first += 1
            written = 0
        }
        if first == queue.count || first > 256 {
            queue.removeFirst(first)
            first = 0
        }
    }

    /// Returns the process's reports since the last call.
    func reports() -> [StreamReport] {
        var buffer = [UInt8](repeating: 0, count: 1_024)
        for _ in 0..<Self.readLimit where !hasEnded {
            var places = buffer.mutableSpan
            let count = Int(kernel_read(descriptor, &places))
            if count > 0 { input.append(buffer[..<count]) }
            // A read that does not fill the buffer was the last one for now.
            if count == 0 || (count < 0 && count != -Int(EAGAIN)) { hasEnded = true }
            guard count == buffer.count else { break }
        }
        // A process that violates the protocol is treated as ended.
        if input.isBroken { hasEnded = true }
        var reports: [StreamReport] = []
        while let body = input.next() {
            guard let report = StreamWireFormat.report(body) else { continue }
            reports.append(report)
        }
        return reports
    }
}

/// Sandbox of the process that decodes untrusted media.
///
/// Safe: a string is lent for the length of a call.
enum StreamerSandbox {
    /// Limit of the address space in bytes; libraries and thread stacks take most of it.
    static let memoryBytes: Int64 = 4 << 30

    /// Permanently restricts this process to what decoding, encoding and sending need.
    ///
    /// - Parameter authority: path of a certificate file that must stay readable; may be empty.
    /// - Returns: the parts that this system does not support.
    static func enter(authority: String) -> [String] {
        let missing = Int(unsafe kernel_confine(memoryBytes, authority))
        let parts: [(Int, String)] = [
            (KERNEL_UNCONFINED_OOM, "oom-score"),
            (KERNEL_UNCONFINED_MEMORY, "memory-limit"),
            (KERNEL_UNCONFINED_PRIVILEGES, "no-new-privileges"),
            (KERNEL_UNCONFINED_FILES, "landlock"),
            (KERNEL_UNCONFINED_CALLS, "seccomp"),
        ]
        return parts.filter { missing & $0.0 != 0 }.map(\.1)
    }
}
