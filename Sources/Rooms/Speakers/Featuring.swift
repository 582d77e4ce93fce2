import WorkerInterface

// Load-shedding priority of videos: active speakers and pinned participants are shed last.

extension Room {
    /// Updates the workers if the participants whose video is shed last have changed.
    mutating func feature(from before: SpeakerLists, _ change: inout Change) {
        let old = Set(before.common.map(\.participant))
        let new = Set(talkers.lists.common.map(\.participant))
        for id in old.symmetricDifference(new).sorted() {
            feature(id, new.contains(id), &change)
        }
    }

    /// Whether the participant is on the common active-speaker list.
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
