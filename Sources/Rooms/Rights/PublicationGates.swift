import WorkerInterface

// Gates and caps of publications, from the verdicts of `mayPublish`. A mute, a lost floor, a role
// without the right or a missing host place closes the gate here.

extension Room {
    /// Sends the workers the gates of a participant's publications.
    mutating func reconcileGates(
        of id: String,
        _ transaction: inout RoomTransaction
    ) {
        guard var publisher = participants[id] else { return }
        var touched: Set<String> = []
        for index in publisher.transports.indices {
            let transport = publisher.transports[index]
            for (number, track) in transport.tracks.enumerated() {
                let stream = stream(
                    of: id,
                    transport.name,
                    isScreen: track.source == .screen
                )
                let verdict = mayPublish(publisher, track.kind, from: track.source)
                let open = verdict == .open && !track.withdrawn && stream?.isOn(track.kind) == true
                guard track.gate != open else { continue }
                transaction.tell(transport.place.worker, .gate(track.publication, open: open))
                transaction.touch(transport.home(of: track))
                publisher.transports[index].tracks[number].gate = open
                if !open { publisher.transports[index].tracks[number].speaking = nil }
                if let stream { touched.insert(stream.id) }
            }
        }
        participants[id] = publisher
        rank(id)
        for stream in touched.sorted() {
            for number in (streams[stream]?.subscribers ?? []).sorted() {
                reconcile(subscription: number, &transaction)
            }
        }
    }

    /// Sends the workers the role's caps for a participant's publications.
    mutating func reconcileCaps(of id: String, _ transaction: inout RoomTransaction) {
        guard var publisher = participants[id] else { return }
        let rights = role(of: publisher).publish
        for index in publisher.transports.indices {
            let transport = publisher.transports[index]
            for (number, track) in transport.tracks.enumerated() {
                let cap = rights.cap(of: track.kind, from: track.source)
                guard track.configuration.cap != cap else { continue }
                publisher.transports[index].tracks[number].configuration.cap = cap
                transaction.tell(transport.place.worker, .limit(track.publication, cap))
                transaction.touch(transport.home(of: track))
            }
        }
        participants[id] = publisher
    }

}
