import CKernel
import Foundation
import Kernel
import Links
import RTP
import SFU
import Sockets
import WorkerInterface

/// Counters of the link thread, as it last told them.
final class LinkFigures: Sendable {
    private let counters = Locked(LinkCounters())

    var present: LinkCounters { counters.withLock { $0 } }

    func set(_ present: LinkCounters) { counters.withLock { $0 = present } }
}

/// Thread that exchanges media with the link threads of other nodes.
struct LinkThread: ~Copyable {
    /// Parameters of the thread.
    struct Setup: Sendable {
        /// Index of its port in the mesh.
        var index: Int
        var relays: RelayNetwork
        var leases: LeaseTable
        var socket: UDPSocket
        var limits: CoreLimits
        var identity: DTLSIdentity
        var engine: SRTPEngine
        var counters: LinkFigures
        var log: Log
    }

    private let setup: Setup
    private let commands: Mailbox<WorkerCommand>
    private let events: Mailbox<WorkerEvent>
    private let wakeup: RelayWakeup
    private var poller: Poller
    private var media: LinkMedia
    private var inbox = Inbox()
    private var batch = Batch(capacity: 64)
    private var nextFigures: Instant

    private enum Token: UInt64 { case commands, wakeup, socket }

    static func start(
        _ setup: Setup,
        _ commands: Mailbox<WorkerCommand>,
        _ events: Mailbox<WorkerEvent>
    ) {
        let thread = Thread { @Sendable in
            unsafe kernel_name_thread("link")
            kernel_request_exact_timers()
            do throws(SystemError) {
                var loop = try LinkThread(setup, commands, events)
                loop.run()
            } catch {
                setup.log.error("link thread cannot start", [("cause", "\(error)")])
            }
            events.close()
        }
        thread.stackSize = 1 << 20
        thread.start()
    }

    private init(
        _ setup: Setup,
        _ commands: Mailbox<WorkerCommand>,
        _ events: Mailbox<WorkerEvent>
    ) throws(SystemError) {
        let wakeup = setup.relays.wakeups[setup.index]
        let poller = try Poller()
        try poller.add(commands.descriptor, for: .readable, token: Token.commands.rawValue)
        try poller.add(wakeup.descriptor, for: .readable, token: Token.wakeup.rawValue)
        try poller.add(setup.socket.descriptor, for: .readable, token: Token.socket.rawValue)
        for shortage in setup.socket.setBuffers(UDPSocket.Buffers()) {
            let fields = [("sysctl", shortage.sysctl), ("got", "\(shortage.got)")]
            setup.log.warning("link socket has small buffers", fields)
        }
        var generator = SystemRandomNumberGenerator()
        let core = Core(
            limits: setup.limits,
            seed: generator.next(),
            secret: Digest.randomBytes(32),
            identity: setup.identity,
            engine: setup.engine
        )
        self.setup = setup
        self.commands = commands
        self.events = events
        self.wakeup = wakeup
        self.poller = poller
        nextFigures = .monotonic()
        media = LinkMedia(
            core: core,
            port: setup.relays.mesh.port(of: setup.index),
            at: .monotonic()
        )
    }

    /// Runs until the mailbox is closed.
    private mutating func run() {
        var isOpen = true
        while isOpen {
            wakeup.arm()
            var now = Instant.monotonic()
            let due = media.hasMessages() ? now : media.deadline(at: now)
            let ready = poller.wait(until: due, at: now)
            now = .monotonic()
            wakeup.disarm()
            for index in 0..<ready {
                switch Token(rawValue: poller[index].token) {
                case .commands: isOpen = takeCommands(at: now)
                case .wakeup: wakeup.resetWakeup()
                case .socket: receive(at: now)
                case nil: break
                }
            }
            for worker in media.run(at: now) { setup.relays.wakeups[worker].ring() }
            for (home, end) in media.takeLeaseEnds() { setup.leases.set(home, to: end) }
            send()
            events.post(media.takeEvents())
            guard nextFigures <= now else { continue }
            nextFigures = now.advanced(milliseconds: Self.figuresMilliseconds)
            setup.counters.set(media.counters)
        }
    }

    private mutating func takeCommands(at now: Instant) -> Bool {
        let (messages, closed) = commands.drain()
        for command in messages { media.apply(command, at: now) }
        return !closed
    }

    private mutating func receive(at now: Instant) {
        for _ in 0..<Self.readsAtOnce {
            guard inbox.receive(from: setup.socket) == nil else { return }
            for index in 0..<inbox.count where !inbox.isTruncated(index) {
                media.receive(inbox.copy(index), at: now)
            }
            guard inbox.count == inbox.capacity else { return }
        }
    }

    /// Sends what is to go out; what the kernel does not take is lost, as on the way.
    private mutating func send() {
        for transmit in media.takeTransmits() {
            if batch.free == 0 { _ = setup.socket.send(&batch, segments: Self.segments) }
            let path = Path(remote: transmit.address, local: 0)
            batch.append(copying: transmit.bytes, to: path)
        }
        if batch.count > 0 { _ = setup.socket.send(&batch, segments: Self.segments) }
    }

    private static let readsAtOnce = 8
    /// Datagrams of one size and address that leave in one call.
    private static let segments = 10
    private static let figuresMilliseconds: Int64 = 500
}
