import CKernel
import Kernel
import RTP
import SFU
import Synchronization

/// Wake-up of a sleeping worker whose relay ring has received packets.
///
/// The writer signals only if the reader sleeps, so busy workers make no system calls for it.
final class RelayWakeup: Sendable {
    let descriptor: Int32
    private let isArmed = Atomic(false)

    init() throws(SystemError) {
        descriptor = try SystemError.check(kernel_eventfd_create(), "eventfd")
    }

    deinit { kernel_close(descriptor) }

    /// Announces that the worker is about to sleep; it must check its rings once more after this.
    func arm() { isArmed.store(true, ordering: .sequentiallyConsistent) }

    /// Announces that the worker is awake and polls its rings itself.
    func disarm() { isArmed.store(false, ordering: .sequentiallyConsistent) }

    /// Resets the readable descriptor; the wake-up may be stale.
    func resetWakeup() { _ = kernel_eventfd_drain(descriptor) }

    /// Wakes the worker if it sleeps; call it after publishing packets.
    func ring() {
        guard isArmed.load(ordering: .sequentiallyConsistent),
            isArmed.exchange(false, ordering: .sequentiallyConsistent)
        else { return }
        _ = kernel_eventfd_signal(descriptor)
    }
}

/// Relay rings between the daemon's workers, with their wake-ups.
final class RelayNetwork: Sendable {
    let mesh: RelayMesh
    /// One per worker; empty if there is only one.
    let wakeups: [RelayWakeup]

    init(workers: Int) throws(SystemError) {
        mesh = RelayMesh(workers: workers)
        var wakeups: [RelayWakeup] = []
        if workers > 1 {
            for _ in 0..<workers { wakeups.append(try RelayWakeup()) }
        }
        self.wakeups = wakeups
    }
}

/// A worker's relay port: sends and receives the packets of rooms that span workers.
struct WorkerRelays: ~Copyable {
    private var port: RelayPort
    private let wakeups: [RelayWakeup]

    /// Takes the worker's ends of the rings; `nil` means that there is only this worker.
    init(_ network: RelayNetwork?, worker: Int) {
        wakeups = network?.wakeups ?? []
        port = network.map { $0.mesh.port(of: worker) } ?? RelayMesh(workers: 1).port(of: 0)
    }

    private var isAlone: Bool { wakeups.isEmpty }

    /// Arms the wake-up before sleeping; returns `false` if packets are waiting.
    mutating func rest() -> Bool {
        guard !isAlone else { return true }
        wakeups[port.worker].arm()
        return !port.hasMessages()
    }

    /// Disarms the wake-up after sleeping.
    mutating func didWake() {
        guard !isAlone else { return }
        wakeups[port.worker].disarm()
    }

    func resetWakeup() { wakeups[port.worker].resetWakeup() }

    /// Relays the batch to other workers, before it is sent to this worker's subscribers.
    mutating func send(from core: inout Core, at now: Instant) {
        guard !isAlone else { return }
        core.relay(into: &port, at: now)
        for worker in wakeups.indices where port.publish(to: worker) { wakeups[worker].ring() }
    }

    /// Receives a batch of relayed packets; returns whether there was any.
    mutating func receive(into core: inout Core, at now: Instant) -> Bool {
        guard !isAlone, port.hasMessages() else { return false }
        _ = core.receive(from: &port, at: now)
        return true
    }
}
