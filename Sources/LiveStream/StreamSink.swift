import Foundation
import Kernel
import RTP

/// Thread that sends encoded packets to the server, and reconnects when the connection is lost.
final class StreamSink: Sendable {
    private struct State {
        var queue: [EncodedPacket] = []
        /// Whether there is a connection, so that encoding is useful.
        var isOpen = false
        /// Whether the next picture must be a keyframe.
        var wantsKeyframe = false
        var isStopped = false
    }

    private let settings: StreamSettings
    private let encoder: StreamEncoder
    private let state = Locked(State())
    private let wake = DispatchSemaphore(value: 0)
    private let finished = DispatchSemaphore(value: 0)

    /// Packets queued for a slow server: about two seconds.
    ///
    /// Beyond the limit all are dropped, up to a keyframe.
    private static let queueLimit = 160
    /// Seconds between connection attempts; the last value is repeated.
    private static let pauses = [1, 2, 4]
    /// Shortest connection that counts as a success.
    ///
    /// A server that accepts and closes one connection after another thus counts as unreachable.
    private static let steadyMilliseconds: Int64 = 10_000

    init(_ settings: StreamSettings, _ encoder: StreamEncoder) {
        self.settings = settings
        self.encoder = encoder
    }

    func start() {
        let thread = Thread { @Sendable [self] in
            run()
            finished.signal()
        }
        thread.name = "sink"
        thread.stackSize = 1 << 20
        thread.start()
    }

    /// Stops the thread; waits up to `milliseconds` for a proper end at the server.
    func stop(milliseconds: Int) {
        state.withLock { $0.isStopped = true }
        wake.signal()
        _ = finished.wait(timeout: .now() + .milliseconds(milliseconds))
    }

    var isOpen: Bool { state.withLock { $0.isOpen } }

    /// Returns whether the next picture must be a keyframe, and clears the request.
    func takeKeyframeRequest() -> Bool {
        state.withLock { state in
            defer { state.wantsKeyframe = false }
            return state.wantsKeyframe
        }
    }

    func take(_ packets: [EncodedPacket]) {
        state.withLock { state in
            guard state.isOpen else { return }
            if state.queue.count > Self.queueLimit {
                state.queue = []
                state.wantsKeyframe = true
            }
            state.queue += packets
        }
        wake.signal()
    }

    /// Connects, sends, and reconnects, until it is stopped or the retry time is over.
    private func run() {
        var hasBeenUp = settings.hasBeenUp
        var attempts = 0
        var lostAt: Instant?
        while !isStopped {
            // A server may accept a connection and close it after reading the stream key.
            var cause = "refused"
            do throws(StreamOutput.Failure) {
                let output = try StreamOutput(settings, encoder)
                let begin = Instant.monotonic()
                if send(to: output) {
                    cause = "connection-lost"
                    hasBeenUp = true
                    if Instant.monotonic().milliseconds(since: begin) > Self.steadyMilliseconds {
                        attempts = 0
                        lostAt = nil
                    }
                }
            } catch {
                cause = error.cause
            }
            guard !isStopped else { return }
            guard hasBeenUp else { return Streamer.report(.ended(reason: cause)) }
            let now = Instant.monotonic()
            Streamer.report(.down(cause: cause))
            let lost = lostAt ?? now
            lostAt = lost
            guard now.milliseconds(since: lost) < Int64(settings.retrySeconds) * 1_000 else {
                return Streamer.report(.ended(reason: cause))
            }
            pause(Self.pauses[min(attempts, Self.pauses.count - 1)])
            attempts += 1
        }
    }

    private var isStopped: Bool { state.withLock { $0.isStopped } }

    private func pause(_ seconds: Int) {
        let end = Instant.monotonic().advanced(milliseconds: Int64(seconds) * 1_000)
        while !isStopped, Instant.monotonic() < end { Thread.sleep(forTimeInterval: 0.05) }
    }

    /// Sends packets until the connection is lost, or the stream is stopped.
    ///
    /// - Returns: whether the server has accepted any.
    private func send(to output: StreamOutput) -> Bool {
        state.withLock { state in
            state.queue = []
            state.isOpen = true
            state.wantsKeyframe = true
        }
        defer { state.withLock { $0.isOpen = false } }
        var begin: Int64?
        while !isStopped {
            _ = wake.wait(timeout: .now() + .milliseconds(100))
            let packets = state.withLock { state in
                defer { state.queue = [] }
                return state.queue
            }
            for packet in packets {
                if begin == nil, packet.isPicture, packet.isKeyframe {
                    begin = packet.milliseconds
                }
                // Each connection begins with a keyframe, at time 0.
                guard let begin, packet.milliseconds >= begin else { continue }
                let isFirst = packet.isPicture && packet.milliseconds == begin
                guard output.send(packet, milliseconds: packet.milliseconds - begin) else {
                    return !isFirst
                }
                if isFirst { Streamer.report(.up) }
            }
        }
        output.finish()
        return true
    }
}
