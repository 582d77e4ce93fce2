import CKernel
import Contract
import Foundation
import JSON
import Kernel
import RTP
import Sockets
import Synchronization

/// Reader of all events on an IPC connection of its own, as a signalling server is; it counts them
/// and their bytes.
final class EventMeter: Sendable {
    struct Tally: Sendable {
        /// Number and longest line of events, by name.
        var counts: [String: Int] = [:]
        var longest: [String: Int] = [:]
        var error: String?
    }

    private let tally = Mutex(Tally())
    private let isEnding = Atomic(false)
    private let hasEnded = Atomic(false)

    /// Subscribes to the events with these names and starts to read.
    init(path: String, names: [String]) {
        let subscribe = IPCRequest(
            id: .integer(1),
            method: "events.subscribe",
            params: ["events": .array(names.map { .string($0) })]
        )
        let thread = Thread { @Sendable [self] in
            do throws(SystemError) {
                let socket = try SystemError.check(unsafe kernel_unix_connect(path), "ipc")
                var poller = try Poller()
                try poller.add(socket, for: .readable, token: 0)
                _ = kernel_write(socket, (subscribe.encoded() + [UInt8(ascii: "\n")]).span)
                var lines = EventLines(names)
                while !isEnding.load(ordering: .relaxed), lines.read(socket) {
                    tally.withLock { $0 = lines.tally }
                    let now = Instant.monotonic()
                    _ = poller.wait(until: now.advanced(milliseconds: 20), at: now)
                }
                tally.withLock { $0 = lines.tally }
                kernel_close(socket)
            } catch {
                tally.withLock { $0.error = "\(error)" }
            }
            hasEnded.store(true, ordering: .releasing)
        }
        thread.name = "events"
        thread.start()
    }

    /// Counts until now.
    var present: Tally { tally.withLock { $0 } }

    /// Stops reading.
    func end() async {
        isEnding.store(true, ordering: .relaxed)
        while !hasEnded.load(ordering: .acquiring) {
            try? await Task.sleep(for: .milliseconds(5))
        }
    }
}

/// State of the reading thread.
private struct EventLines {
    /// Events by the text that tells them from others.
    private let marks: [(name: String, text: String)]
    private var buffer = [UInt8](repeating: 0, count: 1 << 18)
    /// Start of the present line, and its length.
    private var head: [UInt8] = []
    private var length = 0
    var tally = EventMeter.Tally()

    private static let headBytes = 256

    init(_ names: [String]) { marks = names.map { ($0, "\"event\":\"\($0)\"") } }

    /// Reads all that has arrived; returns `false` if the connection has ended.
    mutating func read(_ socket: Int32) -> Bool {
        while true {
            var places = buffer.mutableSpan
            let count = kernel_read(socket, &places)
            guard count > 0 else {
                if count == Int64(-EAGAIN) { return true }
                tally.error = "the connection has ended"
                return false
            }
            for byte in buffer[..<Int(count)] { take(byte) }
        }
    }

    private mutating func take(_ byte: UInt8) {
        guard byte == UInt8(ascii: "\n") else {
            length += 1
            if head.count < Self.headBytes { head.append(byte) }
            return
        }
        let text = String(decoding: head, as: UTF8.self)
        if let event = marks.first(where: { text.contains($0.text) })?.name {
            tally.counts[event, default: 0] += 1
            tally.longest[event] = max(tally.longest[event] ?? 0, length)
        }
        head.removeAll(keepingCapacity: true)
        length = 0
    }
}
