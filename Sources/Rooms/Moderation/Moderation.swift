extension Room {
    /// Moderation state of a room: lock, mute, pins, floor, hosts, requests, pending operations.
    struct Moderation: Sendable {
        /// Whether only moderators may newly join.
        var isLocked = false
        /// Whether the audio of all but moderators is muted.
        var isHardMuted = false
        /// Pinned participants, in the order in which they were pinned.
        var pins: [String] = []
        var floor = Floor()
        var hosts = Hosts()
        var roleRequests = RoleRequests()
        var pending = PendingOperations()
        /// Mode vocabulary used first in this room.
        var vocabulary: ModeVocabulary?

        /// Clears the pins, the floor and the requests, when the room ends.
        mutating func clearParticipants() {
            pins = []
            floor = Floor()
            roleRequests = RoleRequests()
        }
    }

    /// Publishing hosts of a live event, in the order in which they began.
    ///
    /// The first `maxHosts` of them are forwarded.
    struct Hosts: Sendable {
        private(set) var ids: [String] = []

        mutating func add(_ id: String) { if !ids.contains(id) { ids.append(id) } }

        mutating func remove(_ id: String) { ids.removeAll { $0 == id } }

        /// Restores the order of `before`; hosts added since come last.
        mutating func keepOrder(of before: Self) {
            ids =
                before.ids.filter { ids.contains($0) } + ids.filter { !before.ids.contains($0) }
        }

        /// Whether a host is, or would be, among the first `limit`.
        ///
        /// A participant that does not publish yet would come last.
        func hasPlace(_ id: String, among limit: Int) -> Bool {
            (ids.firstIndex(of: id) ?? ids.count) < limit
        }
    }

    /// Whether the room is locked: only moderators may newly join.
    package var locked: Bool { moderation.isLocked }
    /// Whether the audio of all but moderators is muted.
    package var hardMuted: Bool { moderation.isHardMuted }
    /// Pinned participants, in the order in which they were pinned.
    package var pins: [String] { moderation.pins }
    /// Participants that have requested the floor, in the order of their requests.
    package var raisedHands: [String] { moderation.floor.requests }
    /// Participant that holds the floor of a lecture.
    package var floorHolder: String? { moderation.floor.holder }

    /// Clears the pins, speech and requests of a participant that has left.
    mutating func forget(_ participant: Participant, _ transaction: inout RoomTransaction) {
        unpin(participant.id, &transaction)
        speakers.ranking.remove(participant.id)
        speakers.followers[participant.id] = nil
        speakers.isStale = true
        freeFloor(of: participant, &transaction)
        moderation.roleRequests.forget(participant.id)
    }

    /// Clears the same state of all participants, when the room ends.
    mutating func forgetAll() {
        moderation.clearParticipants()
        speakers = ActiveSpeakers()
    }
}
