import CKernel
import Glibc
import Kernel
import RTP
import SFU
import Sockets
import WorkerInterface

/// What a worker's thread does, round after round; lives on that thread's stack.
struct WorkerLoop: ~Copyable {
    let setup: Worker.Setup
    private let commands: Mailbox<WorkerCommand>
    private let events: Mailbox<WorkerEvent>
    var poller: Poller
    var core: Core
    var relays: WorkerRelays
    var output = Batch(capacity: Core.batchCapacity)
    private var outbox: Outbox
    /// For what comes while a batch is let out; `nil` while they are in use.
    var besides: Inbox? = Inbox(capacity: besidesCapacity)
    var latecomers: Latecomers? = Latecomers()
    var lateCount = 0
    var streams: Streams
    private var locals: LocalAddresses
    var counters: SocketCounters
    var forwarding = ForwardingClock()
    /// Datagrams taken since the last flush.
    var taken = 0
    /// Whether the poller tells when a socket is writable, by socket.
    private var awaited: [Bool]
    private var load: LoadMeter
    private var meter: PressureMeter
    var stalls: StallWatch
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
        outbox = Outbox(setup.sockets, limits: setup.sendQueue)
        streams = Streams(setup.listeners, limits: setup.streams)
        locals = LocalAddresses(setup.sockets)
        counters = SocketCounters(sockets: setup.sockets.count)
        awaited = setup.sockets.map { _ in false }
        load = LoadMeter(at: now, cpu: kernel_thread_nanoseconds())
        meter = PressureMeter(at: now)
        stalls = StallWatch(at: now, cpu: kernel_thread_nanoseconds())
        nextRefresh = now
    }

    /// Watches the sockets and the mailbox, as the loop expects it.
    static func poller(
        for setup: Worker.Setup,
        _ commands: Mailbox<WorkerCommand>
    ) throws(SystemError) -> Poller {
        let poller = try Poller()
        try poller.add(commands.descriptor, for: .readable, token: mailboxToken)
        if let bell = setup.relays?.bells[setup.index] {
            try poller.add(bell.descriptor, for: .readable, token: bellToken)
        }
        for (index, socket) in setup.sockets.enumerated() {
            try poller.add(socket.descriptor, for: .readable, token: UInt64(index))
        }
        try Streams.watch(setup.listeners, with: poller)
        return poller
    }

    /// Runs until the mailbox is closed.
    mutating func run() {
        var inbox = Inbox()
        var frames = StreamFrames()
        var now = Instant.monotonic()
        while true {
            refresh(at: now)
            let mayRest = relays.rest() && lateCount == 0
            let deadline = mayRest ? deadline : now
            let rest = Instant.monotonic()
            stalls.worked(
                since: now,
                until: rest,
                cpu: kernel_thread_nanoseconds,
                wall: wallClock
            )
            let ready = poller.wait(until: deadline, at: rest)
            relays.rise()
            now = .monotonic()
            meter.slept(now.nanoseconds(since: rest))
            let rounds =
                stalls.slept(since: rest, until: now, wall: wallClock)
                ? Self.roundsAfterStall : Self.rounds
            takeLatecomers(at: now)
            var hasCommands = false
            for index in 0..<ready {
                let found = poller[index]
                switch found.token {
                case Self.mailboxToken:
                    hasCommands = true
                    continue
                case Self.bellToken:
                    relays.silence()
                    continue
                default: break
                }
                if let subject = Streams.Subject(token: found.token) {
                    serve(subject, found, rounds, through: &frames, at: now)
                    continue
                }
                if found.writable { outbox.noteWritable(socket: Int(found.token)) }
                guard found.readable || found.hungUp else { continue }
                receive(socket: Int(found.token), rounds, into: &inbox, at: now)
            }
            // What waits has been waiting for longer than this batch.
            outbox.resume(from: locals, at: now)
            flush(at: now)
            receiveRelayed(at: now)
            let open = !hasCommands || takeCommands()
            expire(at: now)
            flush(at: now)
            expireStreams(at: now)
            watchSockets()
            weigh(at: now)
            tell()
            guard open else { return }
        }
    }

    private var deadline: Instant {
        var own = min(core.deadline ?? nextRefresh, nextRefresh)
        own = min(own, streams.deadline ?? own)
        own = min(own, core.pressureDeadline ?? own)
        return outbox.deadline.map { min($0, own) } ?? own
    }

    /// Takes what has come to a socket, a bounded number of rounds so that none starves others.
    ///
    /// What came to all sockets is one batch, as far as a batch has room: one viewer's packets
    /// then lie together, whatever call they came with.
    private mutating func receive(
        socket: Int,
        _ rounds: Int,
        into inbox: inout Inbox,
        at now: Instant
    ) {
        for _ in 0..<rounds {
            if taken + lateCount + inbox.capacity > Core.batchCapacity {
                flush(at: now)
                weigh(at: .monotonic())
            }
            takeLatecomers(at: now)
            // They may be a batch of their own: what is in the socket has its turn after them.
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
        let leaving = stalls.leaving(inbox.arrival(index))
        core.receive(inbox[index], on: path, at: now, leaving: leaving, into: &output)
    }

    /// Between which addresses a datagram has come.
    mutating func path(of index: Int, of inbox: borrowing Inbox, socket: Int) -> Path {
        let local = inbox.local(index)
        let number = locals.number(
            socket: socket,
            address: local.address,
            interface: local.interface
        )
        return Path(remote: inbox.remote(index), local: number)
    }

    /// Takes what other workers hand on, a bounded number of batches like a socket's.
    private mutating func receiveRelayed(at now: Instant) {
        for _ in 0..<Self.relayRounds where relays.receive(into: &core, at: now) {
            flush(at: now)
        }
    }

    /// An error that stays must not make the loop spin: a millisecond is nothing to media.
    private func receiveFailed(_ number: Int32) {
        setup.log.warning(
            "receiving fails",
            [("worker", "\(setup.index)"), ("cause", SystemError.text(number))]
        )
        usleep(1_000)
    }

    /// Carries out what the control plane wants; returns `false` when that is to end.
    private mutating func takeCommands() -> Bool {
        let (messages, closed) = commands.drain()
        // After the drain: a gate that opens lets through what came after it was told to.
        let now = Instant.monotonic()
        for command in messages {
            if output.free < Core.replyCapacity { flush(at: now) }
            core.apply(command, at: now, into: &output)
        }
        // The batches before went out under the old rights, and may still wait for a socket.
        let lost = core.takeLostStreams()
        outbox.withdraw(lost)
        streams.withdraw(lost)
        return !closed
    }

    /// Sends all that the core has to say.
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
            letOvertake(at: now)
            turn = .monotonic()
        }
        send(at: now)
        taken = 0
        stamp.join(takeStamp())
        forwarding.settle(stamp)
        if let trouble = outbox.takeTrouble() { report(trouble) }
    }

    /// When the sends since the last call began to return.
    mutating func takeStamp() -> SendStamp {
        var stamp = outbox.takeStamp()
        stamp.join(streams.takeStamp())
        return stamp
    }

    /// Gives to the sockets what the core has written for them.
    mutating func send(at now: Instant) {
        if !streams.isEmpty { streams.send(output, with: poller, at: now) }
        outbox.send(&output, from: locals, at: now)
    }

    /// Tells the core how the thread gets on, which may give something up for it.
    private mutating func weigh(at now: Instant) {
        guard core.wantsPressure(at: now) else { return }
        let sample = PressureSample(
            busy: meter.takeBusy(at: .monotonic()),
            leastLagMilliseconds: forwarding.takeLeastLag(),
            backlog: outbox.fill,
            leftOut: stalls.takeLeftOut()
        )
        core.notePressure(sample, at: now)
    }

    /// Has the poller tell of room in the sockets that something waits for, and in no others.
    private mutating func watchSockets() {
        for socket in awaited.indices where outbox.awaitsRoom(socket: socket) != awaited[socket] {
            awaited[socket].toggle()
            poller.change(
                setup.sockets[socket].descriptor,
                to: awaited[socket] ? [.readable, .writable] : .readable,
                token: UInt64(socket)
            )
        }
    }

    /// Passes events on; after `flush`, so that a fence comes back when all has been sent.
    private mutating func tell() {
        var told: [WorkerEvent] = []
        while let event = core.takeEvent() {
            guard case .statistics(let token, var statistics) = event else {
                told.append(event)
                continue
            }
            counters.add(to: &statistics, outbox, streams)
            statistics.firstCopies = forwarding.first
            statistics.lastCopies = forwarding.last
            statistics.cpuNanoseconds = UInt64(max(0, kernel_thread_nanoseconds()))
            statistics.load = load.share(at: .monotonic(), cpu: kernel_thread_nanoseconds())
            told.append(.statistics(token: token, statistics))
        }
        events.post(told)
    }

    /// Follows the wall clock, which may have been set.
    private mutating func refresh(at now: Instant) {
        guard now >= nextRefresh else { return }
        core.setWallClock(offsetNanoseconds: wallClockOffset())
        nextRefresh = now.advanced(milliseconds: Self.refreshMilliseconds)
    }

    private func report(_ trouble: Outbox.Trouble) {
        let worker = ("worker", "\(setup.index)")
        switch trouble {
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
    private static let bellToken = UInt64.max - 1
    private static let relayRounds = 4
    /// Receive calls in a row on one socket before others have their turn.
    private static let rounds = 8
    /// The same after the process may have stood still: all that waits is taken, or peers whose
    /// packets lie in the socket's queue would be taken for silent.
    private static let roundsAfterStall = 256
    private static let refreshMilliseconds: Int64 = 10_000
}
