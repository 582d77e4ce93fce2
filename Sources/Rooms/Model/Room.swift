package import WorkerInterface

/// Room state as a value: participants, their streams and subscriptions.
///
/// A call is a function from a room and a call to the changed room, commands for the workers and
/// announcements. Otherwise it throws a typed refusal and has changed nothing. Two functions decide
/// permissions, `mayPublish` and `mayForward` (`RoomRights.swift`). The rest only applies their
/// verdicts: it sends the workers the difference to the state they were last told
/// (`RoomReconciliation.swift`). A room may span several workers; a publication watched in another worker
/// is mirrored there (`RoomMirrors.swift`).
///
/// The room changes as soon as the call is judged. The media path follows when the workers have
/// passed the fence; the reply and the announcements wait for that outside, in `ControlPlane`.
/// Calls that arrive meanwhile are judged on the room as it will be, and replies keep the order of
/// the calls.
package struct Room: Sendable {
    package let name: String
    /// Unix time, in seconds.
    package let created: Double
    package internal(set) var settings: Settings { didSet { talkers.isStale = true } }
    package internal(set) var state: State
    /// Worker of the room's first transport.
    package let worker: Int
    package internal(set) var participants = Roster<Participant>()
    package internal(set) var streams = Roster<Stream>()
    package internal(set) var subscriptions: [UInt64: Subscription] = [:]
    /// Publishing hosts of a live event, in the order in which they began.
    ///
    /// The first `maxHosts` of them are forwarded.
    var hosts: [String] = []
    /// Whether the room is closed; it accepts no further calls.
    package internal(set) var isClosed = false
    /// Whether the room is locked: only moderators may newly join.
    package internal(set) var locked = false
    /// Whether the audio of all but moderators is muted.
    package internal(set) var hardMuted = false
    /// Pinned participants, in the order in which they were pinned.
    package internal(set) var pins: [String] = [] { didSet { talkers.isStale = true } }
    /// Participants that have requested the floor, in the order of their requests.
    package internal(set) var raisedHands: [String] = []
    /// Participant that holds the floor of a lecture.
    package internal(set) var floorHolder: String?
    /// Pending role-change requests, by the participant that is asked.
    var roleRequests: [String: RoleRequest] = [:]
    /// Moderation operations that not all workers have applied yet, with the count of each.
    var inProcess: [PendingOperation: Int] = [:]
    /// Mode vocabulary used first in this room.
    var vocabulary: ModeVocabulary?
    /// Counter of created objects; the source of creation order.
    var births: UInt64 = 0
    /// Participant that owns a worker-side object, to route worker events.
    var owners: [WorkerResource: String] = [:]
    /// Number of the room's transports in each worker that has any.
    var population: [Int: Int] = [:]
    /// Recordings, live streams and RTP forwards of the room.
    package internal(set) var taps: [OutputID: Tap] = [:]
    var recordingTap: OutputID?
    /// Whether automatic recording has been started; it starts at most once.
    var hasAutoRecorded = false
    /// Mirrored publications, by their home.
    var relays: [RelayTarget: Relay] = [:]
    /// Active speakers, and the slots that follow them.
    var talkers = ActiveSpeakers()

    package init(name: String, settings: Settings, worker: Int, at unixTime: Double) {
        self.name = name
        self.settings = settings
        self.worker = worker
        created = unixTime
        state = settings.kind.isLiveEvent ? .created : .ongoing
    }
}

extension Room {
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
