package import RTP
package import SFU
import Sockets
import WorkerInterface

/// Order of a worker's round, and the state that lasts from one round to the next.
///
/// It opens no socket and reads no clock itself: a `WorkerPort` does. So the simulator drives the
/// same round as the worker's thread.
package struct WorkerRound: ~Copyable {
    package var core: Core
    var output = Batch(capacity: Core.batchCapacity)
    /// Datagrams to receive before any others, because they arrived while a batch was sent.
    var deferred = DeferredDatagrams()
    /// DTLS records of known peers, to process in turns between which media is sent.
    var handshakes = DeferredDatagrams()
    var stalls: StaleMediaDetector
    var delay = ForwardingDelayMeter()
    /// Time of sending after which the sockets are checked for datagrams that may preempt the
    /// batch, in nanoseconds.
    let turnNanoseconds: Int64
    private var busy: BusyMeter
    private var coalescer: BatchCoalescer
    private var quiet: QuietRest
    var rush = HandshakeRush()
    /// Datagrams received since the last flush.
    var taken = 0
    /// Datagrams received from the sockets in this round.
    private var received = 0
    /// Whether relayed packets came in the last round: their home has waited with them already.
    private var hasRelayed = false
    /// Time when the last sleep ended.
    private var wakeTime: Instant
    private var nextRefresh: Instant

    package init(
        core: consuming Core,
        at now: Instant,
        cpu: Int64,
        turnNanoseconds: Int64 = 500_000,
        coalescing: BatchCoalescer.Limits = BatchCoalescer.Limits()
    ) {
        self.core = core
        wakeTime = now
        coalescer = BatchCoalescer(coalescing, at: now)
        quiet = QuietRest(at: now)
        self.turnNanoseconds = turnNanoseconds
        stalls = StaleMediaDetector(at: now, cpu: cpu)
        busy = BusyMeter(at: now)
        nextRefresh = now
    }

    /// Runs one round: sleeps until something is due, and does it; returns `false` when there will
    /// be no more commands.
    package mutating func run(through port: inout some WorkerPort & ~Copyable) -> Bool {
        refreshWallClock(through: port)
        let (ready, reads) = sleep(through: &port)
        guard !core.isResuming else { return resume(fromReady: ready, through: &port) }
        let now = wakeTime
        if core.hasLeases { reviewLeases(at: now, through: &port) }
        receiveDeferred(at: now, through: &port)
        let hasCommands = receive(fromReady: ready, reads, at: now, through: &port)
        coalescer.noteRound(received: received, at: now)
        received = 0
        // Queued datagrams are older than this batch, so send them first.
        port.resumeSending(at: now)
        flush(at: now, through: &port)
        processHandshakes(at: now, through: &port)
        if rush.hasEnded(at: now) { port.hurry(false) }
        receiveRelayed(at: now, through: &port)
        let isOpen = !hasCommands || takeCommands(through: &port)
        expire(at: now, through: &port)
        flush(at: now, through: &port)
        port.expireConnections(of: &core, at: now)
        port.watchBlockedSockets()
        reportLoad(at: now, through: port)
        postEvents(through: &port)
        return isOpen
    }

    /// Runs a round in which transports of an earlier process are resumed: it takes commands alone.
    ///
    /// Nothing is received, because it would be from strangers, and nothing is sent before all
    /// workers are done.
    private mutating func resume(
        fromReady ready: Int,
        through port: inout some WorkerPort & ~Copyable
    ) -> Bool {
        var hasCommands = false
        for index in 0..<ready {
            if case .commands = port.takeReady(index, at: wakeTime) { hasCommands = true }
        }
        let isOpen = !hasCommands || takeCommands(through: &port)
        postEvents(through: &port)
        return isOpen
    }

    /// Number of datagrams that are left for the next round.
    package var deferredCount: Int { deferred.count + handshakes.count }

    /// Time when the next round has something to do, besides the port's own.
    package var deadline: Instant {
        let own = min(core.deadline ?? nextRefresh, nextRefresh)
        return min(own, core.loadSampleDeadline ?? own)
    }

    /// Updates the core's wall clock offset, as the clock may have been set.
    private mutating func refreshWallClock(through port: borrowing some WorkerPort & ~Copyable) {
        guard wakeTime >= nextRefresh else { return }
        core.setWallClock(offsetNanoseconds: port.wallClockOffset())
        nextRefresh = wakeTime.advanced(milliseconds: Self.refreshMilliseconds)
    }

    /// Sleeps, unless something is due; returns the number of ready sources, and the receive calls
    /// that each of them is served with.
    private mutating func sleep(
        through port: inout some WorkerPort & ~Copyable
    ) -> (ready: Int, reads: Int) {
        let rest = port.monotonic()
        stalls.worked(since: wakeTime, until: rest) {
            port.cpuTime()
        } wall: {
            port.wallClock()
        }
        let now = pause(at: rest, through: &port)
        let mayRest = port.prepareToSleep() && deferredCount == 0
        let due = mayRest ? deadline(with: port) : wakeTime
        let ready = port.sleep(until: due, at: now)
        wakeTime = port.monotonic()
        busy.slept(wakeTime.nanoseconds(since: rest))
        let wasStalled = stalls.slept(since: rest, until: wakeTime) { port.wallClock() }
        return (ready, wasStalled ? Self.readsAfterStall : Self.reads)
    }

    /// Time until which the next round leaves all sources alone, so that its batch is larger, or so
    /// that a worker without media wakes up more rarely; `nil` if it does not.
    ///
    /// Whoever drives rounds in virtual time begins none earlier.
    package var pauseEnd: Instant? {
        guard deferredCount == 0, !hasRelayed, !core.isResuming else { return nil }
        return quiet.end(after: wakeTime) ?? coalescer.pauseEnd(after: wakeTime)
    }

    /// Lets datagrams gather, if that is worthwhile; returns the time after it.
    private func pause(
        at now: Instant,
        through port: inout some WorkerPort & ~Copyable
    ) -> Instant {
        guard let end = pauseEnd, end > now, port.backlog == 0 else { return now }
        port.rest(until: end)
        return port.monotonic()
    }

    private func deadline(with port: borrowing some WorkerPort & ~Copyable) -> Instant {
        port.deadline.map { min($0, deadline) } ?? deadline
    }

    /// Takes packets relayed by other workers, for a bounded number of batches.
    private mutating func receiveRelayed(
        at now: Instant,
        through port: inout some WorkerPort & ~Copyable
    ) {
        hasRelayed = false
        for _ in 0..<Self.relayedBatches where port.receiveRelayed(into: &core, at: now) {
            hasRelayed = true
            quiet.noteWork(at: now)
            flush(at: now, through: &port)
        }
    }

    /// Applies the control plane's commands; returns `false` when the mailbox is closed.
    private mutating func takeCommands(through port: inout some WorkerPort & ~Copyable) -> Bool {
        let (messages, closed) = port.drainCommands()
        // Read the clock after the drain, so that an opened gate passes only media that arrives
        // after the command was posted.
        let now = port.monotonic()
        for command in messages {
            if !command.isQuestion { quiet.noteWork(at: now) }
            if output.free < Core.replyCapacity { flush(at: now, through: &port) }
            core.apply(command, at: now, into: &output)
        }
        // Earlier batches were sent under the old permissions, and may still be queued: withdraw
        // the datagrams that the commands have revoked.
        port.withdraw(core.takeRevokedSSRCs())
        return !closed
    }

    /// Closes the gates under leases that are over, before anything else leaves.
    private mutating func reviewLeases(
        at now: Instant,
        through port: inout some WorkerPort & ~Copyable
    ) {
        core.reviewLeases(at: now) { port.leaseEnd(of: $0) }
        port.withdraw(core.takeRevokedSSRCs())
    }

    /// Reports the thread's load to the core, which sheds load when it is too high.
    private mutating func reportLoad(
        at now: Instant,
        through port: borrowing some WorkerPort & ~Copyable
    ) {
        guard core.needsLoadSample(at: now) else { return }
        let sample = LoadSample(
            busy: busy.takeBusy(at: port.monotonic()),
            leastLagMilliseconds: delay.takeLeastLag(),
            backlog: port.backlog,
            discardedVideo: stalls.takeDiscardedVideo()
        )
        core.noteLoad(sample, at: now)
    }

    /// Posts events; called after `flush`, so that a fence returns when everything has been sent.
    private mutating func postEvents(through port: inout some WorkerPort & ~Copyable) {
        var events: [WorkerEvent] = []
        while let event = core.takeEvent() {
            guard case .statistics(let token, var statistics) = event else {
                events.append(event)
                continue
            }
            statistics.firstCopies = delay.first
            statistics.lastCopies = delay.last
            port.complete(&statistics)
            events.append(.statistics(token: token, statistics))
        }
        port.post(events)
    }

    private static let relayedBatches = 4
    /// Receive calls in a row on one socket before other sockets are served.
    private static let reads = 8
    /// The same after a possible stall.
    ///
    /// It is large enough to drain the queue; otherwise peers whose packets are still in it would
    /// be considered silent.
    private static let readsAfterStall = 256
    private static let refreshMilliseconds: Int64 = 10_000
}

// Receiving.
extension WorkerRound {
    /// Reads all ready sources; returns whether there are commands.
    private mutating func receive(
        fromReady ready: Int,
        _ reads: Int,
        at now: Instant,
        through port: inout some WorkerPort & ~Copyable
    ) -> Bool {
        var hasCommands = false
        for index in 0..<ready {
            switch port.takeReady(index, at: now) {
            case .commands: hasCommands = true
            case .socket(let socket): receive(socket: socket, reads, at: now, through: &port)
            case .connection(let number):
                for _ in 0..<reads {
                    guard receive(connection: number, at: now, through: &port) else { break }
                }
            case .served: break
            }
        }
        return hasCommands
    }

    /// Reads a socket for a bounded number of calls, so that no socket starves another.
    ///
    /// Datagrams of all sockets form one batch, as far as there is room, so that all packets for a
    /// subscriber are sent together, whichever call received them.
    private mutating func receive(
        socket: Int,
        _ reads: Int,
        at now: Instant,
        through port: inout some WorkerPort & ~Copyable
    ) {
        let capacity = port.capacity(of: .batch)
        for _ in 0..<reads {
            if taken + deferred.count + capacity > Core.batchCapacity {
                flush(at: now, through: &port)
                reportLoad(at: port.monotonic(), through: port)
            }
            receiveDeferred(at: now, through: &port)
            // Deferred datagrams may fill a batch; then the socket is read after them.
            guard taken + capacity <= Core.batchCapacity,
                let count = port.receive(from: socket, into: .batch)
            else { return }
            taken += count
            received += count
            let first = count > 0 ? port.arrival(0, of: .batch) : 0
            stalls.received(count, first: first, at: now) { port.wallClock() }
            for index in 0..<count { receive(index, from: socket, at: now, through: &port) }
            guard count == capacity else { return }
        }
    }

    private mutating func receive(
        _ index: Int,
        from socket: Int,
        at now: Instant,
        through port: inout some WorkerPort & ~Copyable
    ) {
        guard let origin = port.origin(of: index, in: .batch, socket: socket) else { return }
        switch Datagram(port.datagram(index, of: .batch)) {
        case .rtp:
            delay.noteArrival(origin.arrival)
            quiet.noteWork(at: now)
        case .dtls(let record):
            quiet.noteWork(at: now)
            let isAside =
                core.isValidated(origin.path)
                && handshakes.append(record, on: origin.path, arrival: origin.arrival)
            if isAside { return }
        case .stun, .rtcp, nil: break
        }
        if output.free < Core.replyCapacity { port.send(&output, at: now) }
        core.receive(
            port.datagram(index, of: .batch),
            on: origin.path,
            at: now,
            staleMedia: stalls.staleMedia(origin.arrival),
            into: &output
        )
    }

    /// Reads once from a TCP connection; returns whether there may be more.
    private mutating func receive(
        connection number: UInt16,
        at now: Instant,
        through port: inout some WorkerPort & ~Copyable
    ) -> Bool {
        guard let path = port.read(connection: number) else { return false }
        quiet.noteWork(at: now)
        while let frame = port.nextFrame(of: number, at: now) {
            if taken >= Core.batchCapacity { flush(at: now, through: &port) }
            if output.free < Core.replyCapacity { port.send(&output, at: now) }
            taken += 1
            let before = output.count
            let isUnchecked = port.isUnchecked(number)
            core.receive(port.frame(frame), on: path, at: now, into: &output)
            guard isUnchecked else { continue }
            port.noteValidation(
                number,
                isValidated: core.isValidated(path),
                isAnswered: output.count > before
            )
        }
        return port.mayHaveMoreFrames
    }
}

// Sending.
extension WorkerRound {
    /// Sends all pending output of the core.
    mutating func flush(at now: Instant, through port: inout some WorkerPort & ~Copyable) {
        port.relay(from: &core, at: now)
        delay.begin { port.wallClock() }
        var stamp = SendStamp()
        var now = now
        var turn = now
        while core.flush(into: &output, at: now) {
            port.send(&output, at: now)
            let time = port.monotonic()
            guard time.nanoseconds(since: turn) >= turnNanoseconds else { continue }
            stamp.join(port.takeStamp())
            now = time
            preemptBatch(at: now, through: &port)
            turn = port.monotonic()
        }
        port.send(&output, at: now)
        taken = 0
        stamp.join(port.takeStamp())
        delay.settle(stamp) { port.wallClock() }
        port.reportSendErrors()
    }
}
