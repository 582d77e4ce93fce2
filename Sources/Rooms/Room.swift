package import WorkerInterface

/// A room as a value: who is in it, what they send, who gets it.
///
/// A call is a function from room and call to the room after it, commands for the workers and
/// announcements, or a typed refusal that has changed nothing. Two functions answer who may do
/// what, `mayPublish` and `mayForward` (`RoomRights.swift`); the rest only carries their answers
/// to the workers, as the difference to what they were told last (`RoomSettling.swift`). It may
/// span several: where a publication is watched elsewhere it has mirrors (`RoomMirrors.swift`).
///
/// The room changes at once, when the call is judged. That a right is gone from the media path
/// too is known later, when the workers have passed the fence; the reply and the announcements
/// wait for that outside, in `ControlPlane`. Calls that come meanwhile are judged on the room as
/// it will be, and their replies keep the order of the calls.
package struct Room: Sendable {
    package let name: String
    /// Unix time, in seconds.
    package let created: Double
    package internal(set) var settings: Settings { didSet { talkers.isStale = true } }
    package internal(set) var state: State
    /// Where its first transport is made.
    package let worker: Int
    package internal(set) var participants = Register<Participant>()
    package internal(set) var streams = Register<Stream>()
    package internal(set) var subscriptions: [UInt64: Subscription] = [:]
    /// Publishing hosts of a live event in the order in which they began.
    ///
    /// The first `maxHosts` of them have a place.
    var hosts: [String] = []
    /// It is closed: nothing can be asked of it any more.
    package internal(set) var isClosed = false
    /// Nobody new may enter.
    package internal(set) var locked = false
    /// Nobody but moderators is heard.
    package internal(set) var hardMuted = false
    /// In the order in which they were pinned.
    package internal(set) var pins: [String] = [] { didSet { talkers.isStale = true } }
    /// Who has asked for the floor, in that order.
    package internal(set) var raisedHands: [String] = []
    /// Who has the floor of a lecture.
    package internal(set) var floorHolder: String?
    /// Open requests to change role, by the participant who is asked.
    var roleRequests: [String: RoleRequest] = [:]
    /// Moderated operations that the workers have not all passed yet, and how many of each.
    var inProcess: [Process: Int] = [:]
    /// Which mode names have been heard first.
    var vocabulary: ModeVocabulary?
    /// Numbers whatever is made here, so that lists have an order.
    var births: UInt64 = 0
    /// Whose streams the workers' events are about.
    var owners: [Place: String] = [:]
    /// Its transports in each worker that has any.
    var population: [Int: Int] = [:]
    /// What reads along: the room's recording, if there is one, and its live streams.
    package internal(set) var taps: [TapID: Tap] = [:]
    var recordingTap: TapID?
    /// It has been recorded without being asked, which happens once.
    var hasAutoRecorded = false
    /// The publications that are mirrored, by their homes.
    var relays: [RelayTarget: Relay] = [:]
    /// Who is heard and seen, and whose slots follow it.
    var talkers = Talkers()

    package init(name: String, settings: Settings, worker: Int, at unixTime: Double) {
        self.name = name
        self.settings = settings
        self.worker = worker
        created = unixTime
        state = settings.kind.isLiveEvent ? .created : .ongoing
    }
}

extension Room {
    /// Those who have entered, by the time they did.
    package var members: [Participant] { participants.listed }

    /// Those who have knocked, by the time they did.
    package var awaited: [Participant] { participants.unlisted }

    package var streamsInOrder: [Stream] { streams.listed }

    /// Whose listing may have changed since the last call, by their ids.
    package mutating func takeChangedParticipants() -> Set<String> { participants.takeChanged() }
    package mutating func takeChangedStreams() -> Set<String> { streams.takeChanged() }

    package func participant(_ id: String) throws(Refusal) -> Participant {
        guard let participant = participants[id] else { throw .noSuchParticipant(id) }
        return participant
    }

    package func stream(_ id: String) throws(Refusal) -> Stream {
        guard let stream = streams[id] else { throw .noSuchStream(id) }
        return stream
    }

    package func subscription(_ id: String) throws(Refusal) -> Subscription {
        guard let number = Subscription.number(of: id), let found = subscriptions[number] else {
            throw .noSuchSubscription(id)
        }
        return found
    }

    func role(of participant: Participant) -> Role {
        guard let role = settings.role(named: participant.role) else {
            preconditionFailure("a participant has a role that its room has not")
        }
        return role
    }

    /// Checks that `actor`, where a call was made on somebody's behalf, may do this.
    func check(
        _ actor: String?,
        may permission: Permission,
        orElse refusal: Refusal
    ) throws(Refusal) {
        guard let actor else { return }
        let participant = try participant(actor)
        guard participant.admitted, role(of: participant).permissions.contains(permission.rawValue)
        else {
            throw refusal
        }
    }

    mutating func nextBirth() -> UInt64 {
        births += 1
        return births
    }
}
