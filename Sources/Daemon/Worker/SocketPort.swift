import CKernel
import Glibc
import Kernel
import RTP
import SFU
import Sockets
import WorkerInterface

/// Port of a worker's thread: its sockets, its poller, its relay rings and its mailboxes.
struct SocketPort: ~Copyable, WorkerPort {
    let setup: Worker.Setup
    let commands: Mailbox<WorkerCommand>
    let events: Mailbox<WorkerEvent>
    var poller: Poller
    var relays: WorkerRelays
    private let leases: LeaseTable?
    var udpSender: UDPSender
    private var inbox = Inbox()
    /// Buffer for datagrams that arrive while a batch is sent; small, so that few are deferred and
    /// checked again.
    private var preemptionInbox = Inbox(capacity: 32)
    var streams: TCPConnections
    var frames = RFC4571Deframer()
    private var locals: LocalAddresses
    var counters: SocketCounters
    var load: LoadMeter
    /// Whether the poller reports when a socket is writable, by socket.
    private var awaited: [Bool]
    private var share = ProcessorShare()

    init(
        _ setup: Worker.Setup,
        _ poller: consuming Poller,
        _ commands: Mailbox<WorkerCommand>,
        _ events: Mailbox<WorkerEvent>
    ) {
        self.setup = setup
        self.poller = poller
        self.commands = commands
        self.events = events
        relays = WorkerRelays(setup.relays, worker: setup.index)
        leases = setup.leases
        udpSender = UDPSender(setup.sockets, limits: setup.sendQueue)
        streams = TCPConnections(setup.listeners, limits: setup.streams)
        locals = LocalAddresses(setup.sockets)
        counters = SocketCounters(sockets: setup.sockets.count)
        load = LoadMeter(at: .monotonic(), cpu: kernel_thread_nanoseconds())
        awaited = setup.sockets.map { _ in false }
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

    private static let mailboxToken = UInt64.max
    private static let wakeupToken = UInt64.max - 1
}

// Clocks and sleeping.
extension SocketPort {
    func monotonic() -> Instant { .monotonic() }
    func wallClock() -> Int64 { Kernel::wallClock() }
    func wallClockOffset() -> Int64 { Kernel::wallClockOffset() }
    func cpuTime() -> Int64 { kernel_thread_nanoseconds() }

    mutating func hurry(_ isHurried: Bool) { share.hurry(isHurried) }

    mutating func rest(until end: Instant) { kernel_sleep_until(end.nanoseconds) }

    func leaseEnd(of home: Int) -> Instant { leases?.end(of: home) ?? .init(nanoseconds: 0) }

    mutating func prepareToSleep() -> Bool { relays.rest() }

    mutating func sleep(until deadline: Instant, at now: Instant) -> Int {
        let ready = poller.wait(until: deadline, at: now)
        relays.didWake()
        return ready
    }

    var deadline: Instant? {
        guard let streams = streams.deadline else { return udpSender.deadline }
        return udpSender.deadline.map { min($0, streams) } ?? streams
    }

    mutating func takeReady(_ index: Int, at now: Instant) -> ReadySource {
        let found = poller[index]
        switch found.token {
        case Self.mailboxToken: return .commands
        case Self.wakeupToken:
            relays.resetWakeup()
            return .served
        default: break
        }
        if let subject = TCPConnections.Subject(token: found.token) {
            return takeReady(subject, found, at: now)
        }
        let socket = Int(found.token)
        if found.writable { udpSender.noteWritable(socket: socket) }
        return found.readable || found.hungUp ? .socket(socket) : .served
    }
}

// Receiving.
extension SocketPort {
    var socketCount: Int { setup.sockets.count }

    func capacity(of inbox: WorkerInbox) -> Int {
        switch inbox {
        case .batch: self.inbox.capacity
        case .preemption: preemptionInbox.capacity
        }
    }

    mutating func receive(from socket: Int, into inbox: WorkerInbox) -> Int? {
        switch inbox {
        case .batch:
            if let error = self.inbox.receive(from: setup.sockets[socket]) {
                if error != EAGAIN && error != EINTR { receiveFailed(error) }
                return nil
            }
            counters.note(queueDrops: self.inbox.queueDrops, socket: socket)
            return self.inbox.count
        case .preemption:
            guard preemptionInbox.receive(from: setup.sockets[socket]) == nil else { return nil }
            counters.note(queueDrops: preemptionInbox.queueDrops, socket: socket)
            return preemptionInbox.count
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

    mutating func origin(of index: Int, in inbox: WorkerInbox, socket: Int) -> DatagramOrigin? {
        switch inbox {
        case .batch:
            Self.origin(of: index, in: self.inbox, socket: socket, &locals, &counters)
        case .preemption:
            Self.origin(of: index, in: preemptionInbox, socket: socket, &locals, &counters)
        }
    }

    private static func origin(
        of index: Int,
        in inbox: borrowing Inbox,
        socket: Int,
        _ locals: inout LocalAddresses,
        _ counters: inout SocketCounters
    ) -> DatagramOrigin? {
        guard !inbox.isTruncated(index) else {
            counters.noteOversized(bytes: inbox.length(index))
            return nil
        }
        let local = inbox.local(index)
        let number = locals.number(
            socket: socket,
            address: local.address,
            interface: local.interface
        )
        let path = Path(remote: inbox.remote(index), local: number)
        return DatagramOrigin(path: path, arrival: inbox.arrival(index))
    }

    @_lifetime(borrow self)
    func datagram(_ index: Int, of inbox: WorkerInbox) -> Span<UInt8> {
        switch inbox {
        case .batch: self.inbox[index]
        case .preemption: preemptionInbox[index]
        }
    }

    func arrival(_ index: Int, of inbox: WorkerInbox) -> Int64 {
        switch inbox {
        case .batch: self.inbox.arrival(index)
        case .preemption: preemptionInbox.arrival(index)
        }
    }

    mutating func noteOversized(bytes: Int) { counters.noteOversized(bytes: bytes) }
}

// Sending and relaying.
extension SocketPort {
    mutating func send(_ output: inout Batch, at now: Instant) {
        if !streams.isEmpty { streams.send(output, with: poller, at: now) }
        udpSender.send(&output, from: locals, at: now)
    }

    mutating func resumeSending(at now: Instant) { udpSender.resume(from: locals, at: now) }

    mutating func withdraw(_ revoked: [SSRC]) {
        udpSender.withdraw(revoked)
        streams.withdraw(revoked)
    }

    mutating func takeStamp() -> SendStamp {
        var stamp = udpSender.takeStamp()
        stamp.join(streams.takeStamp())
        return stamp
    }

    mutating func watchBlockedSockets() {
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

    var backlog: Double { udpSender.fill }

    mutating func relay(from core: inout Core, at now: Instant) {
        relays.send(from: &core, at: now)
    }

    mutating func receiveRelayed(into core: inout Core, at now: Instant) -> Bool {
        relays.receive(into: &core, at: now)
    }
}

// Mailboxes, statistics and log lines.
extension SocketPort {
    mutating func drainCommands() -> (messages: [WorkerCommand], closed: Bool) {
        commands.drain()
    }

    mutating func post(_ events: [WorkerEvent]) { self.events.post(events) }

    mutating func complete(_ statistics: inout WorkerStatistics) {
        counters.add(to: &statistics, udpSender, streams)
        statistics.cpuNanoseconds = UInt64(max(0, kernel_thread_nanoseconds()))
        statistics.load = load.share(at: .monotonic(), cpu: kernel_thread_nanoseconds())
    }

    mutating func reportSendErrors() {
        guard let sendError = udpSender.takeSendError() else { return }
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
}

/// Share that the calling thread has of a busy processor, by its nice value.
struct ProcessorShare {
    /// Nice value in a hurry: nine times the share of a thread with 0.
    static let hurriedNiceness: Int32 = -10

    /// Nice value that the operator has given the process.
    private let own = kernel_niceness()
    private var isRefused = false

    /// Takes a larger share, or the operator's again.
    ///
    /// Without the right to it the share stays as it is, and there is nothing to take back.
    mutating func hurry(_ isHurried: Bool) {
        let niceness = isHurried ? min(own, Self.hurriedNiceness) : own
        guard !isRefused, niceness != kernel_niceness() else { return }
        isRefused = kernel_set_niceness(niceness) < 0
    }
}
