import Glibc
import RTP
import SFU
import WorkerInterface

/// One socket's way out: what it takes goes at once, what it does not take waits in a queue.
struct Lane: ~Copyable {
    /// Why what waits is not tried again now.
    enum Pause: Equatable {
        case none
        /// The socket's own buffer is full, and epoll tells when it is no more (EAGAIN).
        case untilWritable
        /// The kernel or the interface is short of memory: nothing tells the end of it (ENOBUFS).
        case until(Instant)
    }

    private let socket: UDPSocket
    private(set) var queue: SendQueue
    private(set) var pause = Pause.none
    /// What the socket and the ways from it do not take in one call.
    private var unsegmented = Unsegmented()
    private var stamp = SendStamp()

    /// Datagrams that the kernel refused for other reasons than a full queue.
    private(set) var errors: UInt64 = 0
    private(set) var trouble: Trouble?

    /// Something an operator should know; the log sees to it that it is not told too often.
    enum Trouble: Equatable {
        case segmentsRefused(Int32, byPath: Bool)
        case refused(Int32)
    }

    init(_ socket: UDPSocket, limits: SendQueueLimits) {
        self.socket = socket
        queue = SendQueue(limits: limits)
    }

    mutating func takeTrouble() -> Trouble? {
        defer { trouble = nil }
        return trouble
    }

    mutating func takeStamp() -> SendStamp {
        defer { stamp = SendStamp() }
        return stamp
    }

    /// Sends, queues or drops datagrams of `batch` from `index` on; returns where to go on.
    ///
    /// While any waits, all wait: none may overtake another to the same destination.
    mutating func send(
        _ batch: borrowing Batch,
        from index: Int,
        _ local: LocalAddresses.Entry,
        at now: Instant
    ) -> Int {
        let path = batch.path(at: index)
        var run = batch.run(from: index, limit: unsegmented.limit(path))
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

    /// Sends what waits, as far as the socket takes it.
    ///
    /// `staging` is an empty batch; what of it is sent lies there side by side, as a run must.
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
            let run = staging.run(from: 0, limit: unsegmented.limit(path))
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

    /// Whether what waits may be tried.
    func isReady(at now: Instant) -> Bool {
        guard !queue.isEmpty else { return false }
        switch pause {
        case .none: return true
        case .untilWritable: return false
        case .until(let end): return end <= now
        }
    }

    /// When `isReady` becomes true by itself, or something that waits gets too old.
    var deadline: Instant? {
        guard let stale = queue.deadline else { return nil }
        guard case .until(let end) = pause else { return stale }
        return min(end, stale)
    }

    mutating func expire(at now: Instant) { queue.expire(at: now) }

    mutating func withdraw(_ streams: [SSRC]) { queue.withdraw(streams) }

    /// How long after ENOBUFS it is tried again.
    static let retryMilliseconds: Int64 = 1
}

// One call, and what it says.
extension Lane {
    private enum Outcome {
        case gone
        /// The same once more, in smaller runs.
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

    /// Decides what follows from an errno.
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
        if run.count > 1, let byPath = unsegmented.learn(number, from: path) {
            trouble = .segmentsRefused(number, byPath: byPath)
            return .retry
        }
        errors &+= UInt64(run.count)
        trouble = .refused(number)
        return .gone
    }

    /// How long to wait where an errno says that there is no room now; `nil`: it says otherwise.
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

    /// How many at the beginning of `run` belong to frames of which no part was dropped.
    ///
    /// The first that does not is counted as dropped if there are none before it.
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
