package import RTP

/// Room state as a value: participants, their streams and subscriptions.
///
/// A call is a function from a room and a call to the changed room, commands for the workers and
/// announcements. Otherwise it throws a typed refusal and has changed nothing. Two functions decide
/// permissions, `mayPublish` and `mayForward` (`Rights/RoomRights.swift`). The rest only applies
/// their verdicts: it sends the workers the difference to the state they were last told (the other
/// files of `Rights`). A room may span several workers; a publication watched in another worker is
/// mirrored there (`Placement/Mirrors.swift`).
///
/// The room changes as soon as the call is judged. The media path follows when the workers have
/// passed the fence; the reply and the announcements wait for that outside, in `ControlPlane`.
/// Calls that arrive meanwhile are judged on the room as it will be, and replies keep the order of
/// the calls.
package struct Room: Sendable {
    package let name: String
    package internal(set) var settings: Settings { didSet { speakers.isStale = true } }
    var lifecycle: Lifecycle
    package internal(set) var participants = Roster<Participant>()
    package internal(set) var streams = Roster<Stream>()
    package internal(set) var subscriptions = TrackedDictionary<UInt64, Subscription>()
    var moderation = Moderation()
    /// Active speakers, and the slots that follow them.
    var speakers = ActiveSpeakers()
    /// Recordings, live streams and RTP forwards of the room.
    package internal(set) var taps = Taps()
    var placement: Placement

    /// Makes an empty room; `unixTime` and `now` are the same moment on two clocks.
    package init(
        name: String,
        settings: Settings,
        worker: Int,
        at unixTime: Double,
        now: Instant
    ) {
        self.name = name
        self.settings = settings
        lifecycle = Lifecycle(
            created: unixTime,
            state: settings.kind.isLiveEvent ? .created : .ongoing,
            absences: Absences(emptySince: now)
        )
        placement = Placement(firstWorker: worker)
    }
}

extension Room {
    /// Creation, state and end of a room.
    struct Lifecycle: Sendable, Codable {
        /// Unix time, in seconds.
        let created: Double
        var state: State
        /// Whether the room is closed; it accepts no further calls.
        var isClosed = false
        var absences: Absences
        /// Number of the newest object; the source of creation order.
        private var births: UInt64 = 0

        init(created: Double, state: State, absences: Absences) {
            self.created = created
            self.state = state
            self.absences = absences
        }

        /// Whether there can be more objects.
        var isPlausible: Bool { births < 1 << 53 }

        mutating func nextBirth() -> UInt64 {
            births += 1
            return births
        }
    }

    /// Unix time of the room's creation, in seconds.
    package var created: Double { lifecycle.created }
    package var state: State { lifecycle.state }
    var absences: Absences {
        get { lifecycle.absences }
        _modify { yield &lifecycle.absences }
    }
    /// Whether the room is closed; it accepts no further calls.
    package var isClosed: Bool { lifecycle.isClosed }

    /// Admitted participants, in join order.
    package var members: [Participant] { participants.listed }

    /// Participants awaiting approval, in join order.
    package var awaited: [Participant] { participants.unlisted }

    package var streamsInOrder: [Stream] { streams.listed }

    /// Returns the ids of participants whose listing may have changed since the last call.
    package mutating func takeChangedParticipants() -> Set<String> { participants.takeChanged() }
    package mutating func takeChangedStreams() -> Set<String> { streams.takeChanged() }

    package func participant(_ id: String) throws(CallError) -> Participant {
        guard let participant = participants[id] else { throw .noSuchParticipant(id) }
        return participant
    }

    /// Returns the participant on whose behalf a call is made.
    func caller(_ id: String) throws(CallError) -> Participant {
        guard let participant = participants[id] else {
            throw .noSuchParticipant(id).asCaller
        }
        return participant
    }

    package func stream(_ id: String) throws(CallError) -> Stream {
        guard let stream = streams[id] else { throw .noSuchStream(id) }
        return stream
    }

    package func subscription(_ id: String) throws(CallError) -> Subscription {
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

    /// Checks that `actor` has a permission.
    ///
    /// `nil` stands for the signalling server itself, which may do anything.
    func check(
        _ actor: String?,
        may permission: Permission,
        orElse refusal: CallError
    ) throws(CallError) {
        guard let actor else { return }
        let participant = try caller(actor)
        guard participant.admitted, role(of: participant).permissions.contains(permission.rawValue)
        else {
            var refusal = refusal
            refusal.details["permission"] = .text(permission.rawValue)
            throw refusal
        }
    }
}
