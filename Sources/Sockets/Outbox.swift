package import RTP
package import SFU
package import WorkerInterface

/// Sends batches, several datagrams a call where they allow it; never blocks.
///
/// What a socket does not take waits in a bounded queue and leaves, in order, as soon as it can.
/// Safe: it owns its lanes, one a socket, and an index is looked at before it is used.
@safe
package struct Outbox: ~Copyable {
    private let lanes: UnsafeMutablePointer<Lane>
    private let count: Int
    private var staging = Batch(capacity: SendRun.maximumCount)

    /// Something an operator should know; the log sees to it that it is not told too often.
    package enum Trouble: Equatable {
        /// `byPath`: on one way only, for its MTU; else by the socket.
        case segmentsRefused(socket: Int, number: Int32, byPath: Bool)
        case refused(number: Int32)
    }

    package init(_ sockets: [UDPSocket], limits: SendQueueLimits = SendQueueLimits()) {
        count = sockets.count
        unsafe lanes = .allocate(capacity: sockets.count)
        for (index, socket) in sockets.enumerated() {
            unsafe (lanes + index).initialize(to: Lane(socket, limits: limits))
        }
    }

    deinit {
        unsafe lanes.deinitialize(count: count)
        unsafe lanes.deallocate()
    }

    /// Sends or queues all of a batch, or drops what finds no room, and empties it.
    ///
    /// What goes by connections is left out: `Streams` sends it.
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
            index = unsafe lanes[local.socket].send(batch, from: index, local, at: now)
        }
        batch.removeAll()
    }

    /// Sends what waits where that may be tried now, and drops what is too old.
    package mutating func resume(from locals: borrowing LocalAddresses, at now: Instant) {
        for index in 0..<count {
            // A pointer of its own, so that the staging batch can be changed meanwhile.
            let lane = unsafe lanes + index
            if unsafe lane.pointee.isReady(at: now) {
                unsafe lane.pointee.drain(through: &staging, from: locals, at: now)
            } else if unsafe !lane.pointee.queue.isEmpty {
                unsafe lane.pointee.expire(at: now)
            }
        }
    }

    /// Says that a socket takes datagrams again; `resume` then sends them.
    package mutating func noteWritable(socket: Int) {
        precondition(socket < count)
        unsafe lanes[socket].noteWritable()
    }

    /// Whether the poller should tell when a socket is writable.
    package func awaitsRoom(socket: Int) -> Bool {
        precondition(socket < count)
        return unsafe !lanes[socket].queue.isEmpty && lanes[socket].pause == .untilWritable
    }

    /// When `resume` next has something to do, if ever.
    package var deadline: Instant? {
        var earliest: Instant?
        for index in 0..<count {
            guard let own = unsafe lanes[index].deadline else { continue }
            earliest = earliest.map { min($0, own) } ?? own
        }
        return earliest
    }

    /// Drops what waits of streams that nobody has a right to any more.
    package mutating func withdraw(_ streams: [SSRC]) {
        for index in 0..<count { unsafe lanes[index].withdraw(streams) }
    }

    package mutating func takeTrouble() -> Trouble? {
        for index in 0..<count {
            switch unsafe lanes[index].takeTrouble() {
            case .segmentsRefused(let number, let byPath):
                return .segmentsRefused(socket: index, number: number, byPath: byPath)
            case .refused(let number): return .refused(number: number)
            case nil: break
            }
        }
        return nil
    }
}

// What it has to tell.
extension Outbox {
    /// When the first call since the last look that sent media has returned.
    package mutating func takeStamp() -> SendStamp {
        var stamp = SendStamp()
        for index in 0..<count { stamp.join(unsafe lanes[index].takeStamp()) }
        return stamp
    }

    /// Datagrams that wait.
    package var waiting: Int {
        (0..<count).reduce(0) { unsafe $0 + lanes[$1].queue.count }
    }

    /// The fullest queue's part that is taken, 0 to 1.
    package var fill: Double {
        (0..<count).reduce(0) { max($0, unsafe lanes[$1].queue.fill) }
    }

    /// Datagrams that left neither at once nor later.
    package var drops: SendDrops {
        (0..<count).reduce(into: SendDrops()) { unsafe $0 += lanes[$1].queue.drops }
    }

    /// Datagrams that the kernel refused for other reasons than a full queue.
    package var errors: UInt64 {
        (0..<count).reduce(0) { unsafe $0 &+ lanes[$1].errors }
    }
}
