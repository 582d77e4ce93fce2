import RTP
import SFU
import Sockets

/// Preemption of a large batch: small rooms' packets are sent while it is under way.
extension WorkerRound {
    /// Receives datagrams that arrived during the current batch, and sends at once those that may
    /// preempt it; the others are deferred in order.
    mutating func preemptBatch(at now: Instant, through port: inout some WorkerPort & ~Copyable) {
        core.preempt()
        let capacity = port.capacity(of: .preemption)
        var preempting = 0
        var socket = 0
        while socket < port.socketCount, deferred.free >= capacity,
            preempting + capacity <= Core.batchCapacity
        {
            guard let count = port.receive(from: socket, into: .preemption) else {
                socket += 1
                continue
            }
            for index in 0..<count {
                let isFirst = receivePreempting(index, from: socket, at: now, through: &port)
                if isFirst { preempting += 1 }
            }
            // After a full read, the socket may hold more datagrams that may preempt.
            if count < capacity { socket += 1 }
        }
        if preempting > 0 { sendPreempting(at: now, through: &port) }
        core.resumePreempted()
    }

    /// Passes a datagram to the core if it may preempt the batch, or else defers it; returns
    /// whether it may.
    private mutating func receivePreempting(
        _ index: Int,
        from socket: Int,
        at now: Instant,
        through port: inout some WorkerPort & ~Copyable
    ) -> Bool {
        guard let origin = port.origin(of: index, in: .preemption, socket: socket) else {
            return false
        }
        guard core.mayOvertake(port.datagram(index, of: .preemption), on: origin.path) else {
            let length = port.datagram(index, of: .preemption).count
            let isKept = deferred.append(
                port.datagram(index, of: .preemption),
                on: origin.path,
                arrival: origin.arrival
            )
            if !isKept { port.noteOversized(bytes: length) }
            return false
        }
        if output.free < Core.replyCapacity { port.send(&output, at: now) }
        if case .rtp = Datagram(port.datagram(index, of: .preemption)) {
            delay.notePreempting(origin.arrival)
        }
        core.receive(
            port.datagram(index, of: .preemption),
            on: origin.path,
            at: now,
            staleMedia: stalls.staleMedia(origin.arrival),
            into: &output
        )
        return true
    }

    private mutating func sendPreempting(
        at now: Instant,
        through port: inout some WorkerPort & ~Copyable
    ) {
        port.relay(from: &core, at: now)
        while core.flush(into: &output, at: now) { port.send(&output, at: now) }
        port.send(&output, at: now)
        delay.settlePreempting(port.takeStamp()) { port.wallClock() }
    }

    /// Runs the core's timers, in turns between which other packets may preempt.
    ///
    /// A round has a bounded number of calls, so that timers do not delay received packets.
    mutating func expire(at now: Instant, through port: inout some WorkerPort & ~Copyable) {
        var now = now
        var turn = now
        for _ in 0..<Self.expiriesOfRound {
            guard core.expire(at: now, into: &output) else { return }
            let time = port.monotonic()
            guard time.nanoseconds(since: turn) >= turnNanoseconds else { continue }
            now = time
            preemptBatch(at: now, through: &port)
            turn = port.monotonic()
        }
    }

    /// Calls of `Core.expire` in one round, of `Core.timersAtOnce` timers each.
    private static let expiriesOfRound = 32
}
