import WorkerInterface

// Load-shedding priority of videos: active speakers and pinned participants are shed last.

extension Room {
    /// Updates the workers if the participants whose video is shed last have changed.
    mutating func feature(from before: SpeakerLists, _ transaction: inout RoomTransaction) {
        let old = Set(before.common.map(\.participant))
        let new = Set(talkers.lists.common.map(\.participant))
        for id in old.symmetricDifference(new).sorted() {
            feature(id, new.contains(id), &transaction)
        }
    }

    /// Whether the participant is on the common active-speaker list.
    func isFeatured(_ id: String) -> Bool {
        talkers.lists.common.contains { $0.participant == id }
    }

    private mutating func feature(
        _ id: String,
        _ isFeatured: Bool,
        _ transaction: inout RoomTransaction
    ) {
        guard var owner = participants[id] else { return }
        for index in owner.transports.indices {
            let transport = owner.transports[index]
            for (number, track) in transport.tracks.enumerated()
            where track.kind == .video && track.configuration.isFeatured != isFeatured {
                owner.transports[index].tracks[number].configuration.isFeatured = isFeatured
                transaction.tell(transport.place.worker, .feature(track.publication, isFeatured))
                transaction.touch(transport.home(of: track))
            }
        }
        participants[id] = owner
    }
}
