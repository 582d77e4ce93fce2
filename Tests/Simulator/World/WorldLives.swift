import ControlPlane
import Daemon
import RTP
import SFU
import TestSupport
import WorkerInterface

// Processes: one dies, or is replaced, and the next one goes on with the calls.
extension World {
    /// Kills the process.
    ///
    /// The network's queues stay, and everything else is made again from what was saved. Calls that
    /// were not answered have an unknown outcome.
    func crash() {
        tell("the process dies")
        tally.restarts += 1
        for connection in callers.openConnections { kill(connection) }
        lines = []
        let old = workers
        let connected = old.map { $0.round.core.connectedTransports }
        let records = saved
        (saved, fencesTaken, reportsRead, underWay) = ([:], [], [:], [:])
        workers = SimulatedWorker.mesh(
            of: workers.count,
            packetPool: packetPool,
            identity: identity,
            after: old.map(\.state),
            at: now,
            random: &random
        )
        for (worker, before) in zip(workers, old) {
            worker.arrived = before.arrived
            worker.wallClockOffset = before.wallClockOffset
        }
        setup.random = .seeded(random.next())
        plane = ControlPlane(
            setup,
            restoring: records,
            at: now,
            unixTime: unixOffset + Double(now.nanoseconds) / 1e9
        )
        takeOutput()
        for worker in workers { worker.mailbox.append(.endResumption) }
        checkContinuity(of: connected)
        let end = now.advanced(milliseconds: random.pick(20...300))
        for worker in stalled.indices { stalled[worker] = end }
        controlStalled = end
        lastStall = max(lastStall, end)
        for worker in workers.indices { wake(worker) }
        wakeControl()
    }

    /// Checks that the workers have continued each transport that still exists.
    private func checkContinuity(of connected: [Set<TransportID>]) {
        for (worker, before) in zip(workers, connected) {
            round(worker.index)
            let lost = before.intersection(worker.round.core.allTransports)
                .subtracting(worker.round.core.connectedTransports)
            guard let one = lost.first else { continue }
            violate(.liveness, "\(lost.count) transports do not outlive their process, as \(one)")
        }
    }

    /// Replaces the process: its workers end in order first.
    func upgrade() {
        for worker in workers.indices { round(worker) }
        crash()
    }
}
