import CKernel
import Glibc

/// Bounds of live streams, and whom they trust; each is a configuration key.
package struct StreamingLimits: Hashable, Sendable {
    /// How long a server that is gone is tried again; past it the stream ends.
    package var retrySeconds = 60
    /// Bytes that wait for the process that encodes; past them pictures and sound are left out.
    package var waitingBytes = 4 << 20
    /// A file of certificates: one of them has to have signed that of an `rtmps` server.
    ///
    /// `nil`: those of the system.
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

/// The process that decodes, composes, encodes and sends one live stream.
///
/// It is this program once more, started with `--streamer`: decoders that meet what strangers
/// encoded, and servers that hang, have a process of their own. What it is to do, the key in the
/// URL included, goes through a socket, so that no list of processes shows it.
///
/// Safe: strings are lent for the length of a call.
package final class StreamerProcess {
    package static let argument = "--streamer"
    /// Buffers of reports that are read at a time: a process that talks without end holds nobody
    /// up.
    private static let readLimit = 16

    let pid: Int32
    private let descriptor: Int32
    private let waitingLimit: Int
    private var queue: [[UInt8]] = []
    private var first = 0
    /// Of the first message, what has gone already.
    private var written = 0
    private var waiting = 0
    private var input = StreamInput()
    /// The process is gone, or has said that it goes.
    private(set) var hasEnded = false

    /// Returns `nil` where the system starts no process.
    init?(waitingLimit: Int) {
        let child = unsafe kernel_spawn("/proc/self/exe", "sfud", Self.argument)
        guard child.pid > 0 else { return nil }
        pid = child.pid
        descriptor = child.descriptor
        self.waitingLimit = waitingLimit
    }

    deinit { kernel_close(descriptor) }

    /// Puts a message behind those that wait.
    ///
    /// - Returns: `false` where it does not fit, and is left out. Messages that are no frames
    ///   always fit.
    func send(_ message: StreamMessage) -> Bool {
        let bytes = StreamCoding.encoded(message)
        if case .frame = message, waiting + bytes.count > waitingLimit { return false }
        queue.append(bytes)
        waiting += bytes.count
        flush()
        return true
    }

    /// Hands over as much as the process takes.
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

    /// What the process has told since the last call.
    func reports() -> [StreamReport] {
        var buffer = [UInt8](repeating: 0, count: 1_024)
        for _ in 0..<Self.readLimit where !hasEnded {
            var places = buffer.mutableSpan
            let count = Int(kernel_read(descriptor, &places))
            if count > 0 { input.append(buffer[..<count]) }
            // A message is short: there is no more to be had now.
            if count == 0 || (count < 0 && count != -Int(EAGAIN)) { hasEnded = true }
            guard count == buffer.count else { break }
        }
        // A process that says what cannot be read is no longer ours.
        if input.isBroken { hasEnded = true }
        var reports: [StreamReport] = []
        while let body = input.next() {
            guard let report = StreamCoding.report(body) else { continue }
            reports.append(report)
        }
        return reports
    }
}

/// The sandbox of the process that meets strangers' media.
///
/// Safe: a string is lent for the length of a call.
enum StreamerSandbox {
    /// Bytes of addresses; libraries and the stacks of threads take most of what is used.
    static let memoryBytes: Int64 = 4 << 30

    /// Gives up for good what decoding, encoding and sending do not need.
    ///
    /// - Parameter authority: a file of certificates that has to be read later; may be empty.
    /// - Returns: the parts that this system has not.
    static func enter(authority: String) -> [String] {
        let missing = Int(unsafe kernel_confine(memoryBytes, authority))
        let parts: [(Int, String)] = [
            (KERNEL_UNCONFINED_ORDER, "oom-score"),
            (KERNEL_UNCONFINED_MEMORY, "memory-limit"),
            (KERNEL_UNCONFINED_PRIVILEGES, "no-new-privileges"),
            (KERNEL_UNCONFINED_FILES, "landlock"),
            (KERNEL_UNCONFINED_CALLS, "seccomp"),
        ]
        return parts.filter { missing & $0.0 != 0 }.map(\.1)
    }
}
