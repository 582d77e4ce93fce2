import CKernel
import Glibc
import RTP
import SFU
import WorkerInterface

/// One connection's way out: what it takes goes at once, what it does not take waits in a queue of
/// its own, so that a slow peer delays nobody else.
///
/// A frame of which a part has gone goes on whatever happens, or the peer would lose the thread.
struct StreamLane: ~Copyable {
    private let limits: SendQueueLimits
    /// There is one only while something waits, or shortly after.
    private var queue: SendQueue?
    /// What has not gone of the frame under way, and from where on.
    private var rest: [UInt8] = []
    private var restStart = 0
    /// Whether the connection is given nothing until the poller says so.
    private(set) var isBlocked = false
    /// The errno after which nothing can be sent any more.
    private(set) var failure: Int32?
    /// Of queues that were given back.
    private var formerDrops = SendDrops()

    init(limits: SendQueueLimits) { self.limits = limits }

    /// Datagrams that wait, the one under way left out.
    var count: Int {
        switch queue {
        case .some(let queue): queue.count
        case .none: 0
        }
    }

    /// Whether anything waits.
    var isWaiting: Bool { restStart < rest.count || count > 0 }

    /// Datagrams that did not leave.
    var drops: SendDrops {
        switch queue {
        case .some(let queue):
            var sum = formerDrops
            sum += queue.drops
            return sum
        case .none: return formerDrops
        }
    }

    /// When something that waits gets too old.
    var deadline: Instant? {
        switch queue {
        case .some(let queue): queue.deadline
        case .none: nil
        }
    }

    /// Sends, queues or drops the datagrams at `range` of `batch`, which all go here.
    mutating func send(
        _ batch: borrowing Batch,
        _ range: Range<Int>,
        on descriptor: Int32,
        through output: inout FramedOutput,
        at now: Instant
    ) {
        var index = range.lowerBound
        while index < range.upperBound, failure == nil {
            if isBroken(batch, index, at: now) {
                queue?.countBroken(batch.content(at: index))
                index += 1
            } else if isBlocked || isWaiting {
                hold(batch, index, at: now)
                index += 1
            } else {
                var end = index + 1
                while end < range.upperBound, !isBroken(batch, end, at: now) { end += 1 }
                index = transmit(batch, index..<end, on: descriptor, through: &output)
            }
        }
    }

    /// Sends what waits, as far as the connection takes it; `staging` is an empty batch.
    mutating func drain(
        through staging: inout Batch,
        on descriptor: Int32,
        through output: inout FramedOutput,
        at now: Instant
    ) {
        isBlocked = false
        queue?.expire(at: now)
        sendRest(on: descriptor)
        while !isBlocked, failure == nil, count > 0 {
            // One at a time: the kernel may have enough after each.
            let staged = queue?.stage(into: &staging, limit: 1) ?? 0
            let gone = transmit(staging, 0..<staged, on: descriptor, through: &output)
            queue?.removeFirst(gone)
            staging.removeAll()
        }
    }

    /// Drops what has waited for too long.
    mutating func expire(at now: Instant) { queue?.expire(at: now) }

    mutating func withdraw(_ streams: [SSRC]) { queue?.withdraw(streams) }

    /// Gives the queue's memory back where nothing has waited of late.
    mutating func release(at now: Instant) {
        guard queue?.isIdle(at: now) == true else { return }
        formerDrops = drops
        queue = nil
    }

    /// Counts what still waits as dropped: the connection ends.
    mutating func abandon() { queue?.expire(at: Instant(nanoseconds: .max)) }
}

extension StreamLane {
    private func isBroken(_ batch: borrowing Batch, _ index: Int, at now: Instant) -> Bool {
        switch queue {
        case .some(let queue):
            queue.isBroken(
                batch[index],
                to: batch.path(at: index),
                as: batch.content(at: index),
                at: now
            )
        case .none: false
        }
    }

    private mutating func hold(_ batch: borrowing Batch, _ index: Int, at now: Instant) {
        if queue?.count == nil {
            queue = SendQueue(limits: limits, order: .importance, brokenFrames: 64)
        }
        queue?.append(
            batch[index],
            to: batch.path(at: index),
            as: batch.content(at: index),
            at: now
        )
    }

    /// Gives datagrams to the connection; returns the index of the first that it did not take.
    ///
    /// A few at a time, and only while the kernel has nothing to speak of that waits: it would
    /// take many times more, and on a slow way that is seconds that audio comes late.
    private mutating func transmit(
        _ batch: borrowing Batch,
        _ range: Range<Int>,
        on descriptor: Int32,
        through output: inout FramedOutput
    ) -> Int {
        output.removeAll()
        var end = range.lowerBound
        while end < range.upperBound, end - range.lowerBound < Self.datagramsPerWrite,
            output.append(batch[end])
        {
            end += 1
        }
        let written = write(output.span, to: descriptor)
        var gone = range.lowerBound
        var position = 0
        while gone < end, position < written {
            position += StreamFrames.headerLength + batch.length(at: gone)
            gone += 1
        }
        if kernel_tcp_unsent(descriptor) >= TCPListener.unsentBytes / 2 { isBlocked = true }
        if position > written {
            rest = output.copy(written..<position)
            restStart = 0
        }
        return gone
    }

    static let datagramsPerWrite = 2

    private mutating func sendRest(on descriptor: Int32) {
        guard restStart < rest.count else { return }
        let unsent = rest
        restStart += write(unsent.span.extracting(restStart..<unsent.count), to: descriptor)
        if restStart == rest.count { rest.removeAll(keepingCapacity: true) }
        if rest.isEmpty { restStart = 0 }
    }

    /// Writes what it can, and returns how many bytes that was.
    private mutating func write(_ bytes: Span<UInt8>, to descriptor: Int32) -> Int {
        let written = kernel_write(descriptor, bytes)
        guard written >= 0 else {
            if written == Int64(-EAGAIN) {
                isBlocked = true
            } else {
                failure = Int32(truncatingIfNeeded: -written)
            }
            return 0
        }
        if written < bytes.count { isBlocked = true }
        return Int(written)
    }
}
