package import RTP
package import SFU
package import WorkerInterface

/// Sender of a worker's UDP sockets: several datagrams a call (GSO) where possible, never blocking.
///
/// Datagrams that a socket does not take wait in a bounded queue and leave in order as soon as
/// possible. Safe: it owns its senders, one a socket, and an index is checked before it is used.
@safe
package struct UDPSender: ~Copyable {
    private let senders: UnsafeMutablePointer<SocketSender>
    private let count: Int
    private var staging = Batch(capacity: SendRun.maximumCount)

    /// Error that an operator should know; the log limits how often it is reported.
    package enum SendError: Equatable {
        /// GSO was refused: on one path only, for its MTU (`byPath`), or else by the socket.
        case segmentsRefused(socket: Int, number: Int32, byPath: Bool)
        case refused(number: Int32)
    }

    package init(_ sockets: [UDPSocket], limits: SendQueueLimits = SendQueueLimits()) {
        count = sockets.count
        unsafe senders = .allocate(capacity: sockets.count)
        for (index, socket) in sockets.enumerated() {
            unsafe (senders + index).initialize(to: SocketSender(socket, limits: limits))
        }
    }

    deinit {
        unsafe senders.deinitialize(count: count)
        unsafe senders.deallocate()
    }

    /// Sends, queues or drops all UDP datagrams of a batch, and empties it.
    ///
    /// It skips datagrams for TCP connections: `TCPConnections` sends those.
    package mutating func send(
        _ batch: inout Batch,
        from locals: borrowing LocalAddresses,
        at now: Instant
    ) {
        var index = 0
        while index < batch.count {
            let number = batch.path(at: index).local
            guard number < Path.firstConnection else {
                index += 1
                continue
            }
            let local = locals[number]
            precondition(local.socket < count, "a path leads out by one of our sockets")
            index = unsafe senders[local.socket].send(batch, from: index, locals, at: now)
        }
        batch.removeAll()
    }

    /// Sends queued datagrams where that may be tried now, and drops stale ones.
    package mutating func resume(from locals: borrowing LocalAddresses, at now: Instant) {
        for index in 0..<count {
            // A separate pointer, so that the staging batch can be changed meanwhile.
            let sender = unsafe senders + index
            if unsafe sender.pointee.isReady(at: now) {
                unsafe sender.pointee.drain(through: &staging, from: locals, at: now)
            } else if unsafe !sender.pointee.queue.isEmpty {
                unsafe sender.pointee.expire(at: now)
            }
        }
    }

    /// Records that a socket is writable again; `resume` then sends its queue.
    package mutating func noteWritable(socket: Int) {
        precondition(socket < count)
        unsafe senders[socket].noteWritable()
    }

    /// Whether the poller should report when a socket becomes writable.
    package func awaitsRoom(socket: Int) -> Bool {
        precondition(socket < count)
        return unsafe !senders[socket].queue.isEmpty && senders[socket].pause == .untilWritable
    }

    /// Time at which `resume` next has something to do, if any.
    package var deadline: Instant? {
        var earliest: Instant?
        for index in 0..<count {
            guard let own = unsafe senders[index].deadline else { continue }
            earliest = earliest.map { min($0, own) } ?? own
        }
        return earliest
    }

    /// Drops the queued media of streams that nobody may receive any more.
    package mutating func withdraw(_ streams: [SSRC]) {
        for index in 0..<count { unsafe senders[index].withdraw(streams) }
    }

    package mutating func takeSendError() -> SendError? {
        for index in 0..<count {
            switch unsafe senders[index].takeSendError() {
            case .segmentsRefused(let number, let byPath):
                return .segmentsRefused(socket: index, number: number, byPath: byPath)
            case .refused(let number): return .refused(number: number)
            case nil: break
            }
        }
        return nil
    }
}

// Figures for the worker and its metrics.
extension UDPSender {
    /// Returns the time of the first send call with media since the previous `takeStamp`.
    package mutating func takeStamp() -> SendStamp {
        var stamp = SendStamp()
        for index in 0..<count { stamp.join(unsafe senders[index].takeStamp()) }
        return stamp
    }

    /// Number of queued datagrams.
    package var waiting: Int {
        (0..<count).reduce(0) { unsafe $0 + senders[$1].queue.count }
    }

    /// Fill level of the fullest queue, 0 to 1.
    package var fill: Double {
        (0..<count).reduce(0) { max($0, unsafe senders[$1].queue.fill) }
    }

    /// Datagrams dropped by the queues.
    package var drops: SendDrops {
        (0..<count).reduce(into: SendDrops()) { unsafe $0 += senders[$1].queue.drops }
    }

    /// Datagrams that the kernel refused for other reasons than a full queue.
    package var errors: UInt64 {
        (0..<count).reduce(0) { unsafe $0 &+ senders[$1].errors }
    }
}
