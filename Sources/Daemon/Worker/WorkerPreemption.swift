import Kernel
import RTP
import SFU
import Sockets

/// Preemption of a large batch: small rooms' packets are sent while it is under way.
extension WorkerLoop {
    /// Nanoseconds of sending after which the sockets are checked for preempting datagrams.
    static let turnNanoseconds: Int64 = 500_000
    /// Datagrams read per receive call after each turn; few, so that few are deferred and checked
    /// again.
    static let preemptionInboxCapacity = 32

    /// Receives datagrams that arrived during the current batch, and sends at once those that may
    /// preempt it; the others are deferred in order.
    mutating func preemptBatch(at now: Instant) {
        guard var inbox = preemptionInbox.take(), var deferred = deferred.take() else {
            preconditionFailure("one batch is let out at a time")
        }
        core.preempt()
        var overtaking = 0
        var socket = 0
        while socket < setup.sockets.count, deferred.free >= inbox.capacity,
            overtaking + inbox.capacity <= Core.batchCapacity
        {
            guard inbox.receive(from: setup.sockets[socket]) == nil else {
                socket += 1
                continue
            }
            counters.note(queueDrops: inbox.queueDrops, socket: socket)
            for index in 0..<inbox.count {
                guard !inbox.isTruncated(index) else {
                    counters.noteOversized(bytes: inbox.length(index))
                    continue
                }
                let path = path(of: index, of: inbox, socket: socket)
                if core.mayOvertake(inbox[index], on: path) {
                    if output.free < Core.replyCapacity { send(at: now) }
                    if case .rtp = Datagram(inbox[index]) {
                        forwarding.noteOvertaking(inbox.arrival(index))
                    }
                    let staleMedia = stalls.staleMedia(inbox.arrival(index))
                    core.receive(
                        inbox[index],
                        on: path,
                        at: now,
                        staleMedia: staleMedia,
                        into: &output
                    )
                    overtaking += 1
                } else if !deferred.append(
                    inbox[index],
                    on: path,
                    arrival: inbox.arrival(index)
                ) {
                    counters.noteOversized(bytes: inbox.length(index))
                }
            }
            // After a full read, the socket may hold more datagrams that may preempt.
            if inbox.count < inbox.capacity { socket += 1 }
        }
        if overtaking > 0 {
            relays.send(from: &core, at: now)
            while core.flush(into: &output, at: now) { send(at: now) }
            send(at: now)
            forwarding.settleOvertaking(takeStamp())
        }
        core.resumePreempted()
        deferredCount = deferred.count
        preemptionInbox = consume inbox
        self.deferred = consume deferred
    }

    /// Runs the core's timers, in turns between which other packets may preempt.
    ///
    /// A round has a bounded number of calls, so that timers do not delay received packets.
    mutating func expire(at now: Instant) {
        var now = now
        var turn = now
        for _ in 0..<Self.expiriesOfRound {
            guard core.expire(at: now, into: &output) else { return }
            let time = Instant.monotonic()
            guard time.nanoseconds(since: turn) >= Self.turnNanoseconds else { continue }
            now = time
            preemptBatch(at: now)
            turn = .monotonic()
        }
    }

    /// Calls of `Core.expire` in one round, of `Core.timersAtOnce` timers each.
    private static let expiriesOfRound = 32

    /// Passes deferred datagrams to the core, before any that arrived later.
    mutating func receiveDeferred(at now: Instant) {
        guard deferredCount > 0 else { return }
        guard var deferred = deferred.take() else {
            preconditionFailure("no batch is being let out")
        }
        let first = deferred.arrival(0)
        stalls.received(deferred.count, first: first, at: now, wall: wallClock)
        for index in 0..<deferred.count {
            if output.free < Core.replyCapacity { send(at: now) }
            if case .rtp = Datagram(deferred[index]) {
                forwarding.noteArrival(deferred.arrival(index))
            }
            core.receive(
                deferred[index],
                on: deferred.path(index),
                at: now,
                staleMedia: stalls.staleMedia(deferred.arrival(index)),
                into: &output
            )
        }
        taken += deferredCount
        deferredCount = 0
        deferred.removeAll()
        self.deferred = consume deferred
    }
}
