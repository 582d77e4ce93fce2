import Glibc
import RTP
import SFU
import WorkerInterface

/// Sender of one UDP socket: datagrams that the socket does not take wait in a queue.
struct SocketSender: ~Copyable {
    /// Reason why the queue is not sent now.
    enum Pause: Equatable {
        case none
        /// The socket's buffer is full (EAGAIN); epoll reports when it has room again.
        case untilWritable
        /// The kernel or interface is short of memory (ENOBUFS); nothing reports the end of that.
        case until(Instant)
    }

    private let socket: UDPSocket
    private(set) var queue: SendQueue
    private(set) var pause = Pause.none
    /// Limits of GSO, for the socket and for single paths.
    private var gsoLimits = GSOLimits()
    private var stamp = SendStamp()
    /// Runs of the call under way.
    private var runs: [SendRun] = []

    /// Datagrams that the kernel refused for other reasons than a full queue.
    private(set) var errors: UInt64 = 0
    private(set) var sendError: SendError?

    /// Error that an operator should know; the log limits how often it is reported.
    enum SendError: Equatable {
        case segmentsRefused(Int32, byPath: Bool)
        case refused(Int32)
    }

    init(_ socket: UDPSocket, limits: SendQueueLimits) {
        self.socket = socket
        queue = SendQueue(limits: limits)
        runs.reserveCapacity(UDPSocket.runsAtOnce)
    }

    mutating func takeSendError() -> SendError? {
        defer { sendError = nil }
        return sendError
    }

    mutating func takeStamp() -> SendStamp {
        defer { stamp = SendStamp() }
        return stamp
    }

    /// Sends, queues or drops datagrams of `batch` from `index` on; returns the next index.
    ///
    /// While the queue holds any, all are queued: none may overtake another to the same
    /// destination.
    mutating func send(
        _ batch: borrowing Batch,
        from index: Int,
        _ locals: borrowing LocalAddresses,
        at now: Instant
    ) -> Int {
        if queue.isEmpty, !queue.isWatching(at: now) {
            return sendAtOnce(batch, from: index, locals, at: now)
        }
        let path = batch.path(at: index)
        let local = locals[path.local]
        var run = batch.run(from: index, limit: gsoLimits.limit(path))
        if queue.isWatching(at: now) {
            let whole = wholeFrames(of: run, in: batch, at: now)
            guard whole > 0 else { return index + 1 }
            run.truncate(to: whole, of: batch)
        }
        guard queue.isEmpty else { return hold(run, of: batch, at: now) }
        switch transmit(run, of: batch, local, at: now) {
        case .gone: return run.end
        case .retry: return index
        case .wait: return hold(run, of: batch, at: now)
        }
    }

    /// Sends datagrams from `start` on, to whatever destinations, in one call; returns the next
    /// index.
    private mutating func sendAtOnce(
        _ batch: borrowing Batch,
        from start: Int,
        _ locals: borrowing LocalAddresses,
        at now: Instant
    ) -> Int {
        let own = locals[batch.path(at: start).local].socket
        runs.removeAll(keepingCapacity: true)
        var index = start
        while index < batch.count, runs.count < UDPSocket.runsAtOnce {
            let path = batch.path(at: index)
            guard path.local < Path.firstConnection else {
                index += 1
                continue
            }
            guard locals[path.local].socket == own else { break }
            let run = batch.run(from: index, limit: gsoLimits.limit(path))
            runs.append(run)
            index = run.end
        }
        let (sent, number) = socket.send(runs, of: batch, from: locals)
        for position in 0..<sent { stamp.note(batch.content(at: runs[position].start)) }
        guard sent < runs.count else { return index }
        let refused = runs[sent]
        switch note(number, refused, to: batch.path(at: refused.start), at: now) {
        case .gone: return refused.end
        case .retry: return refused.start
        case .wait: return hold(refused, of: batch, at: now)
        }
    }

    /// Sends the queue, as far as the socket takes it.
    ///
    /// `staging` is an empty batch: datagrams of one call must lie in it side by side.
    mutating func drain(
        through staging: inout Batch,
        from locals: borrowing LocalAddresses,
        at now: Instant
    ) {
        pause = .none
        queue.expire(at: now)
        while !queue.isEmpty {
            defer { staging.removeAll() }
            _ = queue.stage(into: &staging, limit: SendRun.maximumCount)
            let path = staging.path(at: 0)
            let run = staging.run(from: 0, limit: gsoLimits.limit(path))
            switch transmit(run, of: staging, locals[path.local], at: now) {
            case .gone: queue.removeFirst(run.count)
            case .retry: break
            case .wait: return
            }
        }
    }

    mutating func noteWritable() {
        if pause == .untilWritable { pause = .none }
    }

    /// Whether the queue may be sent now.
    func isReady(at now: Instant) -> Bool {
        guard !queue.isEmpty else { return false }
        switch pause {
        case .none: return true
        case .untilWritable: return false
        case .until(let end): return end <= now
        }
    }

    /// Time at which `isReady` becomes true by itself, or a queued datagram becomes stale.
    var deadline: Instant? {
        guard let stale = queue.deadline else { return nil }
        guard case .until(let end) = pause else { return stale }
        return min(end, stale)
    }

    mutating func expire(at now: Instant) { queue.expire(at: now) }

    mutating func withdraw(_ streams: [SSRC]) { queue.withdraw(streams) }

    /// Delay after ENOBUFS before the next attempt.
    static let retryMilliseconds: Int64 = 1
}

// A single send call, and the handling of its errno.
extension SocketSender {
    private enum Outcome {
        case gone
        /// Send the same datagrams again, in smaller runs.
        case retry
        case wait
    }

    private mutating func transmit(
        _ run: SendRun,
        of batch: borrowing Batch,
        _ local: LocalAddresses.Entry,
        at now: Instant
    ) -> Outcome {
        let number = socket.send(
            run,
            of: batch,
            source: local.source,
            interface: local.interface
        )
        guard number != 0 else {
            stamp.note(batch.content(at: run.start))
            return .gone
        }
        return note(number, run, to: batch.path(at: run.start), at: now)
    }

    /// Decides from an errno how to continue.
    private mutating func note(
        _ number: Int32,
        _ run: SendRun,
        to path: Path,
        at now: Instant
    ) -> Outcome {
        if let pause = Self.pause(after: number, at: now) {
            self.pause = pause
            return .wait
        }
        if run.count > 1, let byPath = gsoLimits.learn(number, from: path) {
            sendError = .segmentsRefused(number, byPath: byPath)
            return .retry
        }
        errors &+= UInt64(run.count)
        sendError = .refused(number)
        return .gone
    }

    /// Returns the pause for an errno that means "no room now", or `nil` for any other errno.
    static func pause(after number: Int32, at now: Instant) -> Pause? {
        switch number {
        case EAGAIN: .untilWritable
        case ENOBUFS: .until(now.advanced(milliseconds: retryMilliseconds))
        default: nil
        }
    }

    private mutating func hold(
        _ run: SendRun,
        of batch: borrowing Batch,
        at now: Instant
    ) -> Int {
        for index in run.start..<run.end {
            queue.append(
                batch[index],
                to: batch.path(at: index),
                as: batch.content(at: index),
                at: now
            )
        }
        return run.end
    }

    /// Returns the number of datagrams at the start of `run` whose frames lost no part.
    ///
    /// If the first one belongs to a damaged frame, it is counted as dropped.
    private mutating func wholeFrames(
        of run: SendRun,
        in batch: borrowing Batch,
        at now: Instant
    ) -> Int {
        for index in run.start..<run.end {
            let isBroken = queue.isBroken(
                batch[index],
                to: batch.path(at: index),
                as: batch.content(at: index),
                at: now
            )
            guard isBroken else { continue }
            if index == run.start { queue.countBroken(batch.content(at: index)) }
            return index - run.start
        }
        return run.count
    }
}
