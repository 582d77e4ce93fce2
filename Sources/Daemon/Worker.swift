import CKernel
import Foundation
import Kernel
import RTP
import Recording
import SFU
import Sockets
import WorkerInterface

/// One thread with its own sockets and its own core; it shares nothing but its mailboxes.
final class Worker: Sendable {
    /// What a worker needs to start.
    struct Setup: Sendable {
        var index: Int
        var sockets: [UDPSocket]
        var listeners: [TCPListener] = []
        var limits: CoreLimits
        var identity: DTLSIdentity
        var engine: SRTPEngine
        /// How it reaches the other workers, where there are any.
        var relays: RelayNetwork?
        var log: Log
        var sendQueue = SendQueueLimits()
        var streams = StreamLimits()
    }

    let commands: Mailbox<WorkerCommand>
    let events: Mailbox<WorkerEvent>

    /// Starts the thread, which runs until `commands` is closed and then closes `events`.
    init(_ setup: Setup) throws(SystemError) {
        commands = try Mailbox()
        events = try Mailbox()
        Self.start(setup, commands, events)
    }

    /// Starts the thread that records, which runs as long and says so in the same way.
    init(_ setup: RecorderLoop.Setup) throws(SystemError) {
        commands = try Mailbox()
        events = try Mailbox()
        Self.start(setup, commands, events)
    }

    private static func start(
        _ setup: RecorderLoop.Setup,
        _ commands: Mailbox<WorkerCommand>,
        _ events: Mailbox<WorkerEvent>
    ) {
        let thread = Thread { @Sendable in
            // Foundation's own name comes too early or too late to be the thread's.
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

    /// From the last command to the end, for the disk to take what waits.
    private static let diskMilliseconds = 100

    private static func start(
        _ setup: Setup,
        _ commands: Mailbox<WorkerCommand>,
        _ events: Mailbox<WorkerEvent>
    ) {
        let thread = Thread { @Sendable in
            unsafe kernel_name_thread("worker-\(setup.index)")
            // A packet then need not wait for the end of another thread's turn.
            let failure = kernel_take_short_turns()
            if failure < 0 {
                let cause = SystemError(operation: "short turns", number: -failure)
                setup.log.debug("worker has long turns", [("cause", "\(cause)")])
            }
            do throws(SystemError) {
                let poller = try WorkerLoop.poller(for: setup, commands)
                var loop = WorkerLoop(setup, poller, commands, events)
                loop.run()
            } catch {
                setup.log.error("worker cannot start", [("cause", "\(error)")])
            }
            events.close()
        }
        thread.stackSize = 1 << 20
        thread.start()
    }
}
