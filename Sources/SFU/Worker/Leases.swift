package import RTP
import WorkerInterface

/// Gates that are open under the lease of a home at another node.
extension Core {
    /// Lets a publication's gate be open under a home's lease only.
    mutating func lease(_ id: PublicationID, of home: Int) {
        guard receiver.publications.contains(id), receiver.publications[id.place].lease == nil
        else { return }
        receiver.publications[id.place].lease = Lease(of: UInt8(clamping: home))
        receiver.leased.append(id.place)
    }

    /// Whether any gate is open under a lease.
    package var hasLeases: Bool { !receiver.leased.isEmpty }

    /// Closes the gates of leases that are over, and opens those of leases that go on.
    ///
    /// It comes first in a round: nothing that was received or queued before may leave.
    package mutating func reviewLeases(at now: Instant, end: (Int) -> Instant) {
        for index in 0..<receiver.leased.count {
            let publication = receiver.leased[index]
            guard let lease = receiver.publications[publication].lease else { continue }
            let isOver = end(Int(lease.home)) <= now
            guard isOver != lease.hasLapsed else { continue }
            receiver.publications[publication].lease?.hasLapsed = isOver
            if isOver {
                let isOpen = receiver.publications[publication].isOpen
                receiver.publications[publication].lease?.isWantedOpen = isOpen
                set(publication, open: false, at: now)
            } else {
                set(publication, open: lease.isWantedOpen, at: now)
            }
        }
    }
}
