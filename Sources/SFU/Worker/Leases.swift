package import RTP
import WorkerInterface

/// Gates that are open under the lease of a home at another node.
extension Core {
    /// Lets a publication's gate be open under a home's lease only, or under none (`nil`).
    mutating func lease(_ id: PublicationID, of home: Int?, at now: Instant) {
        guard receiver.publications.contains(id) else { return }
        let publication = id.place
        guard let lease = receiver.publications[publication].lease else {
            guard let home else { return }
            receiver.publications[publication].lease = Lease(of: UInt8(clamping: home))
            return receiver.leased.append(publication)
        }
        if let home {
            receiver.publications[publication].lease?.next = UInt8(clamping: home)
        } else {
            receiver.publications[publication].lease = nil
            receiver.leased.remove(publication)
            if lease.hasLapsed { set(publication, open: lease.isWantedOpen, at: now) }
        }
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
            var isOver = end(Int(lease.home)) <= now
            if let next = lease.next, isOver || end(Int(next)) > now {
                receiver.publications[publication].lease?.home = next
                receiver.publications[publication].lease?.next = nil
                isOver = end(Int(next)) <= now
            }
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
