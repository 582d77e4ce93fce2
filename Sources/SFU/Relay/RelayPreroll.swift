import RTP
import WorkerInterface

// Preroll for a mirror that is created for a new active speaker: the mirror asks for it once it
// exists, and the home relays nothing to it before. Either worker may be first.
extension Relays {
    /// Time that a home waits for the mirror's request.
    private static let holdMilliseconds: Int64 = 100
    /// Interval and number of a mirror's requests.
    static let askMilliseconds: Int64 = 5
    static let asks = 20

    /// Holds back the packets to a newly listed mirror, until its request or the end of the wait.
    mutating func hold(
        _ id: PublicationID,
        for target: RelayTarget,
        at now: Instant,
        _ receiver: inout Receiver
    ) {
        guard receiver.publications.contains(id) else { return }
        let publication = id.place
        for mirror in 0..<receiver.publications[publication].mirrors.count
        where receiver.publications[publication].mirrors[mirror].target == target {
            let end = now.advanced(milliseconds: Self.holdMilliseconds)
            receiver.publications[publication].mirrors[mirror].heldUntil = end
            if !held.contains(publication) { held.append(publication) }
        }
    }

    /// Records the time from which a mirror wants packets.
    mutating func notePrerollRequest(
        _ message: RelayMessage,
        from worker: Int,
        _ receiver: inout Receiver
    ) {
        guard receiver.publications.contains(message.target) else { return }
        let publication = message.target.place
        let target = RelayTarget(worker: worker, publication: message.source)
        for mirror in 0..<receiver.publications[publication].mirrors.count
        where receiver.publications[publication].mirrors[mirror].target == target {
            receiver.publications[publication].mirrors[mirror].since = message.info.arrival
        }
    }

    /// Sends mirrors the history that they asked for, and starts those whose wait is over.
    mutating func releaseHeld(
        into port: inout RelayPort,
        at now: Instant,
        _ receiver: inout Receiver
    ) {
        var index = 0
        while index < held.count {
            let publication = held[index]
            if release(publication, into: &port, at: now, &receiver) {
                held.remove(swappingAt: index)
            } else {
                index += 1
            }
        }
    }

    /// Releases a publication's held mirrors; returns whether none is held any more.
    private mutating func release(
        _ publication: PublicationIndex,
        into port: inout RelayPort,
        at now: Instant,
        _ receiver: inout Receiver
    ) -> Bool {
        guard receiver.publications.isOccupied(publication) else { return true }
        var isDone = true
        for mirror in 0..<receiver.publications[publication].mirrors.count {
            var destination = receiver.publications[publication].mirrors[mirror]
            guard let end = destination.heldUntil else { continue }
            if let since = destination.since {
                writeHistory(
                    of: publication,
                    since: since,
                    to: &destination,
                    into: &port,
                    &receiver
                )
            } else if end > now {
                isDone = false
                continue
            }
            destination.heldUntil = nil
            receiver.publications[publication].mirrors[mirror] = destination
        }
        return isDone
    }

    private mutating func writeHistory(
        of publication: PublicationIndex,
        since: Instant,
        to destination: inout Publication.RelayDestination,
        into port: inout RelayPort,
        _ receiver: inout Receiver
    ) {
        // No packet enters a ring from which a fence would have to recall it.
        guard receiver.publications[publication].isOpen, port.reaches(destination.target.worker)
        else {
            return
        }
        let end = receiver.firstPending(of: publication)
        for position in 0..<receiver.publications[publication].encodings.count {
            let encoding = receiver.publications[publication].encodings[position]
            for number in receiver.encodings[encoding].history.numbers where number < end {
                guard let place = receiver.encodings[encoding].history.place(of: number),
                    receiver.pool[place].arrival >= since
                else { continue }
                write(place, of: publication, to: &destination, into: &port, &receiver)
            }
        }
    }

    /// Asks the home for the mirror's preroll, until packets arrive.
    ///
    /// Returns the time of the next request, or `nil` if there is none.
    mutating func requestPreroll(
        of publication: PublicationIndex,
        through port: inout RelayPort,
        at now: Instant,
        _ receiver: inout Receiver
    ) -> Instant? {
        guard let since = receiver.publications[publication].heldAudioSince,
            let home = receiver.publications[publication].home
        else { return nil }
        guard receiver.publications[publication].asks > 0 else {
            receiver.publications[publication].heldAudioSince = nil
            return nil
        }
        receiver.publications[publication].asks -= 1
        if port.reaches(home.worker) {
            var request = RelayMessage(
                .heldAudioRequest,
                to: home.publication,
                from: receiver.publications.handle(at: publication),
                position: 0
            )
            request.info.arrival = since
            _ = port.write(request, Span(), to: home.worker)
        }
        return now.advanced(milliseconds: Self.askMilliseconds)
    }
}
