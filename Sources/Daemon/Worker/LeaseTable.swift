import RTP
import Synchronization
import WorkerInterface

/// Ends of this node's leases on the rooms of other homes.
///
/// The link thread extends them, and each worker looks before it sends: a process that has stood
/// still must not act on what it knew before.
final class LeaseTable: Sendable {
    private final class Lease: Sendable { let end = Atomic<Int64>(0) }

    private let leases = (0..<CoreLimits.leases).map { _ in Lease() }

    /// Returns when a lease ends; one that never began is over.
    func end(of home: Int) -> Instant {
        guard leases.indices.contains(home) else { return Instant(nanoseconds: 0) }
        return Instant(nanoseconds: leases[home].end.load(ordering: .sequentiallyConsistent))
    }

    /// Sets the end of a lease.
    func set(_ home: Int, to end: Instant) {
        guard leases.indices.contains(home) else { return }
        leases[home].end.store(end.nanoseconds, ordering: .sequentiallyConsistent)
    }
}
