import RTP
import WorkerInterface

extension Room {
    /// Moderation state of a room: lock, mute, pins, floor, hosts, requests, pending operations.
    struct Moderation: Sendable, Codable {
        /// Whether nobody new may join.
        var isLocked = false
        /// Mute of the room's audio, while there is one.
        var mute: RoomMute?
        /// Pinned participants, in the order in which they were pinned.
        var pins: [String] = []
        var floor = Floor()
        var hosts = Hosts()
        var roleRequests = RoleRequests()
        var formerModerators = FormerModerators()
        /// Hard mutes of participants that have left; `nil` if nobody has left muted yet, and in
        /// records of earlier versions.
        private var departedMutes: DepartedMutes?
        var pending = PendingOperations()
        /// Mode vocabulary used first in this room.
        var vocabulary: ModeVocabulary?

        /// Keys of what is saved: no operation is pending after a restart.
        private enum CodingKeys: CodingKey {
            case isLocked, mute, pins, floor, hosts, roleRequests, formerModerators, departedMutes
            case vocabulary
        }

        /// Clears the pins, the floor and the requests, when the room ends.
        mutating func clearParticipants() {
            pins = []
            floor = Floor()
            roleRequests = RoleRequests()
        }

        /// Remembers the hard mutes of a participant that leaves, for whatever reason.
        mutating func keepMutes(of participant: Participant) {
            guard !participant.hardMuted.isEmpty else { return }
            if departedMutes == nil { departedMutes = DepartedMutes() }
            departedMutes?.add(participant)
        }

        /// Returns the hard mutes of a participant that comes back, and forgets them.
        mutating func takeMutes(of id: String) -> Set<MediaKind> { departedMutes?.take(id) ?? [] }
    }

    /// Hosts of a live event that publish or want to, in the order in which they began.
    ///
    /// The first `maxHosts` of them have streams; the others wait.
    struct Hosts: Sendable, Codable {
        /// Host whose transport was lost or taken over; it keeps its position for a time, until it
        /// offers again.
        struct Expectation: Sendable, Codable {
            var host: String
            /// Time of the latest loss or takeover.
            var since: Instant
        }

        private(set) var ids: [String] = []
        /// Expected hosts in the order of their times: all wait equally long, so the first is the
        /// next one due.
        private var expectations: [Expectation] = []

        var firstExpectation: Expectation? { expectations.first }

        mutating func add(_ id: String) {
            if !ids.contains(id) { ids.append(id) }
            stopExpecting(id)
        }

        mutating func remove(_ id: String) {
            ids.removeAll { $0 == id }
            stopExpecting(id)
        }

        /// Notes that a host, if it is one, is expected to come back.
        mutating func expect(_ id: String, at now: Instant) {
            guard ids.contains(id) else { return }
            stopExpecting(id)
            expectations.append(Expectation(host: id, since: now))
        }

        /// Notes that somebody has offered again, or is not waited for any longer; its media
        /// decides from then on.
        mutating func stopExpecting(_ id: String) { expectations.removeAll { $0.host == id } }

        func isExpected(_ id: String) -> Bool { expectations.contains { $0.host == id } }

        /// Whether a host is, or would be, among the first `limit`.
        ///
        /// A participant that does not publish yet would come last.
        func hasPlace(_ id: String, among limit: Int) -> Bool {
            (ids.firstIndex(of: id) ?? ids.count) < limit
        }
    }

    /// Moderators that have left by themselves, or were disconnected, and may return to a locked
    /// room.
    struct FormerModerators: Sendable, Codable {
        /// Largest number of ids; beyond it the oldest is forgotten.
        static let maximumCount = 1_000

        /// Ids, in the order in which they left.
        private var ids: [String] = []

        func contains(_ id: String) -> Bool { ids.contains(id) }

        /// Remembers a moderator that leaves; forgets anybody else, such as one that was dropped.
        ///
        /// One that was promoted while it awaited approval has not been a moderator in the room.
        mutating func note(_ participant: Participant, leaving reason: String) {
            ids.removeAll { $0 == participant.id }
            guard participant.isMarked,
                [EndReason.left, EndReason.disconnected].contains(reason)
            else { return }
            ids.append(participant.id)
            if ids.count > Self.maximumCount { ids.removeFirst() }
        }
    }

    /// Hard mutes of participants that have left without being unmuted, and that would otherwise be
    /// rid of them by joining again.
    struct DepartedMutes: Sendable, Codable {
        /// Largest number of participants; beyond it the one that left first is forgotten.
        static let maximumCount = 1_000

        private struct Mute: Sendable, Codable {
            let participant: String
            let media: [MediaKind]
        }

        /// Mutes, in the order in which the participants left; each has one at most.
        private var mutes: [Mute] = []

        mutating func add(_ participant: Participant) {
            let media = MediaKind.allCases.filter(participant.hardMuted.contains)
            mutes.append(Mute(participant: participant.id, media: media))
            if mutes.count > Self.maximumCount { mutes.removeFirst() }
        }

        mutating func take(_ id: String) -> Set<MediaKind> {
            guard let index = mutes.firstIndex(where: { $0.participant == id }) else { return [] }
            return Set(mutes.remove(at: index).media)
        }
    }

    /// Maximum number of pins of any room; each of them has a speaker list of its own.
    package static let pinLimit = 100
    /// Maximum number of requests that wait for a moderator; every view of the room lists all.
    package static let floorRequestLimit = 1_000

    /// Whether the room is locked: nobody new may join, and former moderators may return.
    package var locked: Bool { moderation.isLocked }
    /// Whether the room's audio is muted, except that of the spared participants.
    package var hardMuted: Bool { moderation.mute != nil }
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
        endRoleRequests(ofLeaving: participant.id, &transaction)
    }

    /// Clears the same state of all participants, when the room ends.
    mutating func forgetAll() {
        moderation.clearParticipants()
        speakers = ActiveSpeakers()
    }
}
