import RTP
import WorkerInterface

// Preroll for a mirror that is created for a new active speaker: the mirror asks for it once it
// exists, and the home relays nothing to it before. Either worker may be first.
extension Core {
    /// Time that a home waits for the mirror's request.
    private static let holdMilliseconds: Int64 = 100
    /// Interval and number of a mirror's requests.
    static let askMilliseconds: Int64 = 5
    static let asks = 20

    /// Holds back the packets to a newly listed mirror, until its request or the end of the wait.
    mutating func hold(_ id: PublicationID, for target: RelayTarget, at now: Instant) {
        guard publications.contains(id) else { return }
        let publication = Int(id.index)
        for mirror in 0..<publications[publication].mirrors.count
        where publications[publication].mirrors[mirror].target == target {
            let end = now.advanced(milliseconds: Self.holdMilliseconds)
            publications[publication].mirrors[mirror].heldUntil = end
            if !held.contains(Int32(publication)) { held.append(Int32(publication)) }
        }
    }

    /// Records the time from which a mirror wants packets.
    mutating func notePrerollRequest(_ message: RelayMessage, from worker: Int) {
        guard publications.contains(message.target) else { return }
        let publication = Int(message.target.index)
        let target = RelayTarget(worker: worker, publication: message.source)
        for mirror in 0..<publications[publication].mirrors.count
        where publications[publication].mirrors[mirror].target == target {
            publications[publication].mirrors[mirror].since = message.info.arrival
        }
    }

    /// Sends mirrors the history that they asked for, and starts those whose wait is over.
    mutating func releaseHeld(into port: inout RelayPort, at now: Instant) {
        var index = 0
        while index < held.count {
            let publication = Int(held[index])
            if release(publication, into: &port, at: now) {
                held.remove(swappingAt: index)
            } else {
                index += 1
            }
        }
    }

    /// Releases a publication's held mirrors; returns whether none is held any more.
    private mutating func release(
        _ publication: Int,
        into port: inout RelayPort,
        at now: Instant
    ) -> Bool {
        guard publications.isOccupied(publication) else { return true }
        var isDone = true
        for mirror in 0..<publications[publication].mirrors.count {
            var destination = publications[publication].mirrors[mirror]
            guard let end = destination.heldUntil else { continue }
            if let since = destination.since {
                writeHistory(of: publication, since: since, to: &destination, into: &port)
            } else if end > now {
                isDone = false
                continue
            }
            destination.heldUntil = nil
            publications[publication].mirrors[mirror] = destination
        }
        return isDone
    }

    private mutating func writeHistory(
        of publication: Int,
        since: Instant,
        to destination: inout Publication.RelayDestination,
        into port: inout RelayPort
    ) {
        // No packet enters a ring from which a fence would have to recall it.
        guard publications[publication].isOpen, port.reaches(destination.target.worker) else {
            return
        }
        let end = firstPending(of: publication)
        for position in 0..<publications[publication].encodings.count {
            let encoding = Int(publications[publication].encodings[position])
            for number in encodings[encoding].history.numbers where number < end {
                let place = encodings[encoding].history.place(of: number)
                guard place >= 0, pool[place].arrival >= since else { continue }
                write(place, of: publication, to: &destination, into: &port)
            }
        }
    }

    /// Returns the lowest number among the received packets that are not sent yet.
    ///
    /// Those go the usual way.
    func firstPending(of publication: Int) -> Int {
        var first = Int.max
        var pending = publications[publication].firstArrival
        while pending >= 0 {
            first = min(first, Int(pool[pending].number))
            pending = pool[pending].next
        }
        return first
    }

    /// Asks the home for the mirror's preroll, until packets arrive.
    ///
    /// Returns the time of the next request, or `nil` if there is none.
    mutating func requestPreroll(
        of publication: Int,
        through port: inout RelayPort,
        at now: Instant
    ) -> Instant? {
        guard let since = publications[publication].heldAudioSince,
            let home = publications[publication].home
        else { return nil }
        guard publications[publication].asks > 0 else {
            publications[publication].heldAudioSince = nil
            return nil
        }
        publications[publication].asks -= 1
        if port.reaches(home.worker) {
            var request = RelayMessage(
                .heldAudioRequest,
                to: home.publication,
                from: publications.handle(at: publication),
                position: 0
            )
            request.info.arrival = since
            _ = port.write(request, Span(), to: home.worker)
        }
        return now.advanced(milliseconds: Self.askMilliseconds)
    }
}
