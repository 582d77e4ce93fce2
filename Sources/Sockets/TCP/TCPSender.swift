import CKernel
import Glibc
import RTP
import SFU
import WorkerInterface

/// Sender of one TCP connection: datagrams that the connection does not take wait in a queue.
///
/// Each connection has its own queue, so that a slow peer delays nobody else. A partly written
/// frame is always completed, or the peer would lose the framing.
struct TCPSender: ~Copyable {
    private let limits: SendQueueLimits
    /// Queue, present only while datagrams wait or shortly after.
    private var queue: SendQueue?
    /// Unwritten part of a partly written frame, and the position reached in it.
    private var rest: [UInt8] = []
    private var restStart = 0
    /// Whether nothing is written until the poller reports the connection writable.
    private(set) var isBlocked = false
    /// Errno after which the connection can send nothing more.
    private(set) var failure: Int32?
    /// Drops counted by queues that were freed.
    private var formerDrops = SendDrops()

    init(limits: SendQueueLimits) { self.limits = limits }

    /// Number of queued datagrams, without the one partly written.
    var count: Int {
        switch queue {
        case .some(let queue): queue.count
        case .none: 0
        }
    }

    /// Whether any bytes or datagrams wait.
    var isWaiting: Bool { restStart < rest.count || count > 0 }

    /// Datagrams that were dropped.
    var drops: SendDrops {
        switch queue {
        case .some(let queue):
            var sum = formerDrops
            sum += queue.drops
            return sum
        case .none: return formerDrops
        }
    }

    /// Time at which a queued datagram becomes stale.
    var deadline: Instant? {
        switch queue {
        case .some(let queue): queue.deadline
        case .none: nil
        }
    }

    /// Sends, queues or drops the datagrams at `range` of `batch`, which all go to this peer.
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

    /// Sends the queue as far as the connection takes it; `staging` is an empty batch.
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
            // One at a time: each may fill the kernel's buffer.
            let staged = queue?.stage(into: &staging, limit: 1) ?? 0
            let gone = transmit(staging, 0..<staged, on: descriptor, through: &output)
            queue?.removeFirst(gone)
            staging.removeAll()
        }
    }

    /// Drops stale datagrams.
    mutating func expire(at now: Instant) { queue?.expire(at: now) }

    mutating func withdraw(_ streams: [SSRC]) { queue?.withdraw(streams) }

    /// Frees the queue's memory if it is idle.
    mutating func release(at now: Instant) {
        guard queue?.isIdle(at: now) == true else { return }
        formerDrops = drops
        queue = nil
    }

    /// Counts the queued datagrams as dropped, when the connection ends.
    mutating func abandon() { queue?.expire(at: Instant(nanoseconds: .max)) }
}

extension TCPSender {
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

    /// Writes datagrams to the connection; returns the index of the first one not written.
    ///
    /// It writes a few at a time, and only while the kernel holds few unsent bytes. The kernel
    /// would take many times more, which on a slow connection delays audio by seconds.
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
            position += RFC4571Deframer.headerLength + batch.length(at: gone)
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

    /// Writes as much as the kernel takes; returns the number of bytes.
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
