import CKernel
import Glibc
import Kernel
import RTP
import SFU
import Sockets
import WorkerInterface

/// Event loop of a worker's thread; lives on that thread's stack.
struct WorkerLoop: ~Copyable {
    let setup: Worker.Setup
    private let commands: Mailbox<WorkerCommand>
    private let events: Mailbox<WorkerEvent>
    var poller: Poller
    var core: Core
    var relays: WorkerRelays
    var output = Batch(capacity: Core.batchCapacity)
    private var udpSender: UDPSender
    /// Inbox for datagrams that arrive while a batch is sent; `nil` while in use, like
    /// `deferred`.
    var preemptionInbox: Inbox? = Inbox(capacity: preemptionInboxCapacity)
    var deferred: DeferredDatagrams? = DeferredDatagrams()
    var deferredCount = 0
    var streams: TCPConnections
    private var locals: LocalAddresses
    var counters: SocketCounters
    var forwarding = ForwardingDelayMeter()
    /// Datagrams received since the last flush.
    var taken = 0
    /// Whether the poller reports when a socket is writable, by socket.
    private var awaited: [Bool]
    private var load: LoadMeter
    private var meter: BusyMeter
    var stalls: StaleMediaDetector
    private var nextRefresh: Instant

    init(
        _ setup: Worker.Setup,
        _ poller: consuming Poller,
        _ commands: Mailbox<WorkerCommand>,
        _ events: Mailbox<WorkerEvent>
    ) {
        let now = Instant.monotonic()
        self.setup = setup
        self.poller = poller
        self.commands = commands
        self.events = events
        var generator = SystemRandomNumberGenerator()
        core = Core(
            limits: setup.limits,
            seed: generator.next(),
            secret: Digest.randomBytes(32),
            identity: setup.identity,
            engine: setup.engine
        )
        relays = WorkerRelays(setup.relays, worker: setup.index)
        udpSender = UDPSender(setup.sockets, limits: setup.sendQueue)
        streams = TCPConnections(setup.listeners, limits: setup.streams)
        locals = LocalAddresses(setup.sockets)
        counters = SocketCounters(sockets: setup.sockets.count)
        awaited = setup.sockets.map { _ in false }
        load = LoadMeter(at: now, cpu: kernel_thread_nanoseconds())
        meter = BusyMeter(at: now)
        stalls = StaleMediaDetector(at: now, cpu: kernel_thread_nanoseconds())
        nextRefresh = now
    }

    /// Creates the poller and registers the sockets, the mailbox, and the wake-up descriptor.
    static func poller(
        for setup: Worker.Setup,
        _ commands: Mailbox<WorkerCommand>
    ) throws(SystemError) -> Poller {
        let poller = try Poller()
        try poller.add(commands.descriptor, for: .readable, token: mailboxToken)
        if let bell = setup.relays?.wakeups[setup.index] {
            try poller.add(bell.descriptor, for: .readable, token: wakeupToken)
        }
        for (index, socket) in setup.sockets.enumerated() {
            try poller.add(socket.descriptor, for: .readable, token: UInt64(index))
        }
        try TCPConnections.watch(setup.listeners, with: poller)
        return poller
    }

    /// Runs until the mailbox is closed.
    mutating func run() {
        var inbox = Inbox()
        var frames = RFC4571Deframer()
        var now = Instant.monotonic()
        while true {
            refresh(at: now)
            let mayRest = relays.rest() && deferredCount == 0
            let deadline = mayRest ? deadline : now
            let rest = Instant.monotonic()
            stalls.worked(
                since: now,
                until: rest,
                cpu: kernel_thread_nanoseconds,
                wall: wallClock
            )
            let ready = poller.wait(until: deadline, at: rest)
            relays.didWake()
            now = .monotonic()
            meter.slept(now.nanoseconds(since: rest))
            let rounds =
                stalls.slept(since: rest, until: now, wall: wallClock)
                ? Self.roundsAfterStall : Self.rounds
            receiveDeferred(at: now)
            var hasCommands = false
            for index in 0..<ready {
                let found = poller[index]
                switch found.token {
                case Self.mailboxToken:
                    hasCommands = true
                    continue
                case Self.wakeupToken:
                    relays.resetWakeup()
                    continue
                default: break
                }
                if let subject = TCPConnections.Subject(token: found.token) {
                    serve(subject, found, rounds, through: &frames, at: now)
                    continue
                }
                if found.writable { udpSender.noteWritable(socket: Int(found.token)) }
                guard found.readable || found.hungUp else { continue }
                receive(socket: Int(found.token), rounds, into: &inbox, at: now)
            }
            // Queued datagrams are older than this batch, so send them first.
            udpSender.resume(from: locals, at: now)
            flush(at: now)
            receiveRelayed(at: now)
            let open = !hasCommands || takeCommands()
            expire(at: now)
            flush(at: now)
            expireStreams(at: now)
            watchSockets()
            reportLoad(at: now)
            postEvents()
            guard open else { return }
        }
    }

    private var deadline: Instant {
        var own = min(core.deadline ?? nextRefresh, nextRefresh)
        own = min(own, streams.deadline ?? own)
        own = min(own, core.loadSampleDeadline ?? own)
        return udpSender.deadline.map { min($0, own) } ?? own
    }

    /// Reads a socket for a bounded number of rounds, so that no socket starves another.
    ///
    /// Datagrams of all sockets form one batch, as far as there is room, so that all packets for a
    /// subscriber are sent together, whichever call received them.
    private mutating func receive(
        socket: Int,
        _ rounds: Int,
        into inbox: inout Inbox,
        at now: Instant
    ) {
        for _ in 0..<rounds {
            if taken + deferredCount + inbox.capacity > Core.batchCapacity {
                flush(at: now)
                reportLoad(at: .monotonic())
            }
            receiveDeferred(at: now)
            // Deferred datagrams may fill a batch; then the socket is read after them.
            guard taken + inbox.capacity <= Core.batchCapacity else { return }
            if let error = inbox.receive(from: setup.sockets[socket]) {
                if error != EAGAIN && error != EINTR { receiveFailed(error) }
                return
            }
            counters.note(queueDrops: inbox.queueDrops, socket: socket)
            taken += inbox.count
            let first = inbox.count > 0 ? inbox.arrival(0) : 0
            stalls.received(inbox.count, first: first, at: now, wall: wallClock)
            for index in 0..<inbox.count {
                receive(index, of: inbox, socket: socket, at: now)
            }
            guard inbox.count == inbox.capacity else { return }
        }
    }

    private mutating func receive(
        _ index: Int,
        of inbox: borrowing Inbox,
        socket: Int,
        at now: Instant
    ) {
        guard !inbox.isTruncated(index) else {
            return counters.noteOversized(bytes: inbox.length(index))
        }
        if output.free < Core.replyCapacity { send(at: now) }
        if case .rtp = Datagram(inbox[index]) { forwarding.noteArrival(inbox.arrival(index)) }
        let path = path(of: index, of: inbox, socket: socket)
        let staleMedia = stalls.staleMedia(inbox.arrival(index))
        core.receive(inbox[index], on: path, at: now, staleMedia: staleMedia, into: &output)
    }

    /// Returns the path (remote and local address) of a datagram.
    mutating func path(of index: Int, of inbox: borrowing Inbox, socket: Int) -> Path {
        let local = inbox.local(index)
        let number = locals.number(
            socket: socket,
            address: local.address,
            interface: local.interface
        )
        return Path(remote: inbox.remote(index), local: number)
    }

    /// Takes packets relayed by other workers, for a bounded number of batches.
    private mutating func receiveRelayed(at now: Instant) {
        for _ in 0..<Self.relayRounds where relays.receive(into: &core, at: now) {
            flush(at: now)
        }
    }

    /// Logs a receive error and sleeps 1 ms, so that a persistent error does not make the loop
    /// spin.
    private func receiveFailed(_ number: Int32) {
        setup.log.warning(
            "receiving fails",
            [("worker", "\(setup.index)"), ("cause", SystemError.text(number))]
        )
        usleep(1_000)
    }

    /// Applies the control plane's commands; returns `false` when the mailbox is closed.
    private mutating func takeCommands() -> Bool {
        let (messages, closed) = commands.drain()
        // Read the clock after the drain, so that an opened gate passes only media that arrives
        // after the command was posted.
        let now = Instant.monotonic()
        for command in messages {
            if output.free < Core.replyCapacity { flush(at: now) }
            core.apply(command, at: now, into: &output)
        }
        // Earlier batches were sent under the old permissions, and may still be queued: withdraw
        // the datagrams that the commands have revoked.
        let lost = core.takeRevokedSSRCs()
        udpSender.withdraw(lost)
        streams.withdraw(lost)
        return !closed
    }

    /// Sends all pending output of the core.
    mutating func flush(at now: Instant) {
        relays.send(from: &core, at: now)
        forwarding.begin()
        var stamp = SendStamp()
        var now = now
        var turn = now
        while core.flush(into: &output, at: now) {
            send(at: now)
            let time = Instant.monotonic()
            guard time.nanoseconds(since: turn) >= Self.turnNanoseconds else { continue }
            stamp.join(takeStamp())
            now = time
            preemptBatch(at: now)
            turn = .monotonic()
        }
        send(at: now)
        taken = 0
        stamp.join(takeStamp())
        forwarding.settle(stamp)
        if let sendError = udpSender.takeSendError() { report(sendError) }
    }

    /// Returns when the first media send since the last call returned, over UDP and TCP.
    mutating func takeStamp() -> SendStamp {
        var stamp = udpSender.takeStamp()
        stamp.join(streams.takeStamp())
        return stamp
    }

    /// Passes the core's output to the UDP and TCP senders.
    mutating func send(at now: Instant) {
        if !streams.isEmpty { streams.send(output, with: poller, at: now) }
        udpSender.send(&output, from: locals, at: now)
    }

    /// Reports the thread's load to the core, which sheds load when it is too high.
    private mutating func reportLoad(at now: Instant) {
        guard core.needsLoadSample(at: now) else { return }
        let sample = LoadSample(
            busy: meter.takeBusy(at: .monotonic()),
            leastLagMilliseconds: forwarding.takeLeastLag(),
            backlog: udpSender.fill,
            discardedVideo: stalls.takeDiscardedVideo()
        )
        core.noteLoad(sample, at: now)
    }

    /// Makes the poller report writability of exactly those sockets that have queued datagrams.
    private mutating func watchSockets() {
        for socket in awaited.indices where udpSender.awaitsRoom(socket: socket) != awaited[socket]
        {
            awaited[socket].toggle()
            poller.change(
                setup.sockets[socket].descriptor,
                to: awaited[socket] ? [.readable, .writable] : .readable,
                token: UInt64(socket)
            )
        }
    }

    /// Posts events; called after `flush`, so that a fence returns when everything has been sent.
    private mutating func postEvents() {
        var told: [WorkerEvent] = []
        while let event = core.takeEvent() {
            guard case .statistics(let token, var statistics) = event else {
                told.append(event)
                continue
            }
            counters.add(to: &statistics, udpSender, streams)
            statistics.firstCopies = forwarding.first
            statistics.lastCopies = forwarding.last
            statistics.cpuNanoseconds = UInt64(max(0, kernel_thread_nanoseconds()))
            statistics.load = load.share(at: .monotonic(), cpu: kernel_thread_nanoseconds())
            told.append(.statistics(token: token, statistics))
        }
        events.post(told)
    }

    /// Updates the core's wall clock offset, as the clock may have been set.
    private mutating func refresh(at now: Instant) {
        guard now >= nextRefresh else { return }
        core.setWallClock(offsetNanoseconds: wallClockOffset())
        nextRefresh = now.advanced(milliseconds: Self.refreshMilliseconds)
    }

    private func report(_ sendError: UDPSender.SendError) {
        let worker = ("worker", "\(setup.index)")
        switch sendError {
        case .segmentsRefused(let socket, let number, let byPath):
            let fields = [
                worker, ("socket", setup.sockets[socket].address.endpointText),
                ("scope", byPath ? "one peer" : "the socket"),
                ("cause", SystemError.text(number)),
            ]
            setup.log.warning("segmented sends refused, sending one by one", fields)
        case .refused(let number):
            let cause = SystemError.text(number)
            setup.log.warning("sending fails", cause: cause, [worker, ("cause", cause)])
        }
    }

    private static let mailboxToken = UInt64.max
    private static let wakeupToken = UInt64.max - 1
    private static let relayRounds = 4
    /// Receive calls in a row on one socket before other sockets are served.
    private static let rounds = 8
    /// The same after a possible stall.
    ///
    /// It is large enough to drain the queue; otherwise peers whose packets are still in it would
    /// be considered silent.
    private static let roundsAfterStall = 256
    private static let refreshMilliseconds: Int64 = 10_000
}
