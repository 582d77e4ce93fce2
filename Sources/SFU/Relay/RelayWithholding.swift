import RTP
import WorkerInterface

// Encodings that a link between two nodes does not carry: the home, in the link thread, tells the
// mirrors at once, so that viewers get a lower layer without waiting for packets that do not come.
extension Relays {
    /// Tells a publication's mirrors, with the next batch.
    mutating func tellWithholding(of publication: PublicationIndex) {
        if !withholdings.contains(publication) { withholdings.append(publication) }
    }

    /// Writes to the mirrors which encodings are withheld.
    ///
    /// Those whose ring is full are told again.
    mutating func tellWithholdings(into port: inout RelayPort, _ receiver: borrowing Receiver) {
        var index = 0
        while index < withholdings.count {
            let publication = withholdings[index]
            if isTold(publication, into: &port, receiver) {
                withholdings.remove(swappingAt: index)
            } else {
                index += 1
            }
        }
    }

    private func isTold(
        _ publication: PublicationIndex,
        into port: inout RelayPort,
        _ receiver: borrowing Receiver
    ) -> Bool {
        guard receiver.publications.isOccupied(publication) else { return true }
        var isDone = true
        for mirror in 0..<receiver.publications[publication].mirrors.count {
            let target = receiver.publications[publication].mirrors[mirror].target
            guard port.reaches(target.worker) else { continue }
            let message = RelayMessage(
                .withheld,
                to: target.publication,
                from: receiver.publications.handle(at: publication),
                position: Int(receiver.publications[publication].withheld)
            )
            if !port.write(message, Span(), to: target.worker) { isDone = false }
        }
        return isDone
    }

    /// Takes from a mirror's subscribers the encodings that do not come any more.
    mutating func noteWithholding(
        _ message: RelayMessage,
        from other: Int,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: inout Receiver,
        _ forwarder: inout Forwarder,
        _ allocator: inout LayerAllocator
    ) {
        guard receiver.publications.contains(message.target) else { return }
        let publication = message.target.place
        guard let home = receiver.publications[publication].home, home.worker == other,
            home.publication == message.source,
            receiver.publications[publication].withheld != message.position
        else { return }
        receiver.publications[publication].withheld = message.position
        allocator.refreshLayers(of: publication, at: now, &transports, &receiver, &forwarder)
        receiver.scheduleMirrors(by: now)
    }
}
