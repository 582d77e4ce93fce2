import CKernel
import Foundation
import Kernel
import RTP
import Recording
import SFU
import Sockets
import WorkerInterface

/// Worker thread with its own sockets and its own core; it shares only its mailboxes and relay
/// rings.
final class Worker: Sendable {
    /// Parameters of a worker.
    struct Setup: Sendable {
        var index: Int
        var sockets: [UDPSocket]
        var listeners: [TCPListener] = []
        var limits: CoreLimits
        var identity: DTLSIdentity
        var engine: SRTPEngine
        /// Rings to the other workers, if there are any.
        var relays: RelayNetwork?
        /// Leases on the rooms of other nodes; `nil` without a cluster.
        var leases: LeaseTable?
        var log: Log
        var sendQueue = SendQueueLimits()
        var streams = TCPConnectionLimits()
        /// Memory for what the next life needs, and what the life before has left.
        var memory: SavedMemory?
        var previous: SavedState?
    }

    let commands: Mailbox<WorkerCommand>
    let events: Mailbox<WorkerEvent>

    /// Starts the thread, which runs until `commands` is closed and then closes `events`.
    init(_ setup: Setup) throws(SystemError) {
        commands = try Mailbox()
        events = try Mailbox()
        Self.start(setup, commands, events)
    }

    /// Starts the recorder thread, which ends in the same way.
    init(_ setup: RecorderLoop.Setup) throws(SystemError) {
        commands = try Mailbox()
        events = try Mailbox()
        Self.start(setup, commands, events)
    }

    /// Starts the link thread, which ends in the same way.
    init(_ setup: LinkThread.Setup) throws(SystemError) {
        commands = try Mailbox()
        events = try Mailbox()
        LinkThread.start(setup, commands, events)
    }

    private static func start(
        _ setup: RecorderLoop.Setup,
        _ commands: Mailbox<WorkerCommand>,
        _ events: Mailbox<WorkerEvent>
    ) {
        let thread = Thread { @Sendable in
            // The thread sets its own name: Foundation sets it too early or too late.
            unsafe kernel_name_thread("recorder")
            do throws(SystemError) {
                let poller = try RecorderLoop.poller(for: setup, commands)
                var loop = RecorderLoop(setup, poller, commands, events)
                loop.run()
            } catch {
                setup.log.error("recorder cannot start", [("cause", "\(error)")])
            }
            setup.disk.stop(milliseconds: diskMilliseconds)
            events.close()
        }
        thread.stackSize = 1 << 20
        thread.start()
    }

    /// Milliseconds that the disk has at the end to write queued data.
    private static let diskMilliseconds = 100

    private static func start(
        _ setup: Setup,
        _ commands: Mailbox<WorkerCommand>,
        _ events: Mailbox<WorkerEvent>
    ) {
        let thread = Thread { @Sendable in
            unsafe kernel_name_thread("worker-\(setup.index)")
            // With short scheduler time slices, a packet waits less for another thread on the same
            // core.
            let failure = kernel_request_short_slice()
            if failure < 0 {
                let cause = SystemError(operation: "short turns", number: -failure)
                setup.log.debug("worker has long turns", [("cause", "\(cause)")])
            }
            kernel_request_exact_timers()
            do throws(SystemError) {
                let poller = try SocketPort.poller(for: setup, commands)
                var port = SocketPort(setup, poller, commands, events)
                var round = WorkerRound(setup, at: .monotonic())
                while round.run(through: &port) {}
            } catch {
                setup.log.error("worker cannot start", [("cause", "\(error)")])
            }
            events.close()
        }
        thread.stackSize = 1 << 20
        thread.start()
    }
}

extension WorkerRound {
    /// Creates the round of a worker's thread.
    fileprivate init(_ setup: Worker.Setup, at now: Instant) {
        var generator = SystemRandomNumberGenerator()
        let core = Core(
            limits: setup.limits,
            seed: generator.next(),
            secret: Digest.randomBytes(32),
            identity: setup.identity,
            engine: setup.engine,
            memory: setup.memory,
            previous: setup.previous
        )
        self.init(core: core, at: now, cpu: kernel_thread_nanoseconds())
    }
}
