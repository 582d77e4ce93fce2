import CKernel
import Kernel
import RTP
import SFU
import Synchronization

/// What a worker that sleeps is woken by when another has put something into its ring.
///
/// Who writes looks whether the reader sleeps, so a busy daemon makes no system call for it.
final class RelayBell: Sendable {
    let descriptor: Int32
    private let isArmed = Atomic(false)

    init() throws(SystemError) {
        descriptor = try SystemError.check(kernel_eventfd_create(), "eventfd")
    }

    deinit { kernel_close(descriptor) }

    /// The worker is about to sleep; it must look into its rings once more after this.
    func arm() { isArmed.store(true, ordering: .sequentiallyConsistent) }

    /// The worker is awake, and looks by itself.
    func disarm() { isArmed.store(false, ordering: .sequentiallyConsistent) }

    /// The descriptor is readable: somebody has rung, perhaps when it was no longer needed.
    func silence() { _ = kernel_eventfd_drain(descriptor) }

    /// Wakes the worker if it sleeps; something must have been published before.
    func ring() {
        guard isArmed.load(ordering: .sequentiallyConsistent),
            isArmed.exchange(false, ordering: .sequentiallyConsistent)
        else { return }
        _ = kernel_eventfd_signal(descriptor)
    }
}

/// The rings between a daemon's workers, and their bells.
final class RelayNetwork: Sendable {
    let mesh: RelayMesh
    /// One a worker; none where there is nobody to ring.
    let bells: [RelayBell]

    init(workers: Int) throws(SystemError) {
        mesh = RelayMesh(workers: workers)
        var bells: [RelayBell] = []
        if workers > 1 {
            for _ in 0..<workers { bells.append(try RelayBell()) }
        }
        self.bells = bells
    }
}

/// One worker's part in rooms that span workers: hands packets on, takes them, and is woken.
struct WorkerRelays: ~Copyable {
    private var port: RelayPort
    private let bells: [RelayBell]

    /// Takes the worker's ends of the rings; without a network there is only this worker.
    init(_ network: RelayNetwork?, worker: Int) {
        bells = network?.bells ?? []
        port = network.map { $0.mesh.port(of: worker) } ?? RelayMesh(workers: 1).port(of: 0)
    }

    private var isAlone: Bool { bells.isEmpty }

    /// Says that the worker is about to sleep; `false` where it must not, for something waits.
    mutating func rest() -> Bool {
        guard !isAlone else { return true }
        bells[port.worker].arm()
        return !port.hasNews()
    }

    /// Says that the worker is awake.
    mutating func rise() {
        guard !isAlone else { return }
        bells[port.worker].disarm()
    }

    func silence() { bells[port.worker].silence() }

    /// Hands the batch on, before it goes to the worker's own viewers.
    mutating func send(from core: inout Core, at now: Instant) {
        guard !isAlone else { return }
        core.relay(into: &port, at: now)
        for worker in bells.indices where port.publish(to: worker) { bells[worker].ring() }
    }

    /// Takes a batch of what others have handed on; returns whether there was any.
    mutating func receive(into core: inout Core, at now: Instant) -> Bool {
        guard !isAlone, port.hasNews() else { return false }
        _ = core.receive(from: &port, at: now)
        return true
    }
}
