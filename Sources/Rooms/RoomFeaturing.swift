import WorkerInterface

// Whose video matters most: those on the list of talkers, the pinned among them.

extension Room {
    /// Tells the workers whose video a pressed one leaves out last, where the list has changed.
    mutating func feature(from before: TalkerLists, _ change: inout Change) {
        let old = Set(before.common.map(\.participant))
        let new = Set(talkers.lists.common.map(\.participant))
        for id in old.symmetricDifference(new).sorted() {
            feature(id, new.contains(id), &change)
        }
    }

    /// Whether the participant is on the list that nearly all get.
    func isFeatured(_ id: String) -> Bool {
        talkers.lists.common.contains { $0.participant == id }
    }

    private mutating func feature(_ id: String, _ isFeatured: Bool, _ change: inout Change) {
        guard var owner = participants[id] else { return }
        for index in owner.transports.indices {
            let transport = owner.transports[index]
            for (number, track) in transport.tracks.enumerated()
            where track.kind == .video && track.configuration.isFeatured != isFeatured {
                owner.transports[index].tracks[number].configuration.isFeatured = isFeatured
                change.tell(transport.place.worker, .feature(track.publication, isFeatured))
                change.touch(transport.home(of: track))
            }
        }
        participants[id] = owner
    }
}
