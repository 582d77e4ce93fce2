import WorkerInterface

/// Ledger of the forwarding rights in the callers' view.
///
/// A right counts as lost from the moment that the reply leaves the daemon, and as given again from
/// the moment that a call asks for it: in between nothing may leave.
struct RightsLedger {
    /// A reason to withhold media; each is lifted separately.
    enum Closure: Hashable {
        /// The room with this number has ended.
        case room(UInt32)
        /// The client's transport has ended.
        case client(UInt32)
        /// The room with this number is muted.
        case roomMute(UInt32)
        case mute(publisher: Int, MediaKind)
        /// The publisher has switched it off.
        case own(publisher: Int, MediaKind)
        /// Mode or role forbid the participant to publish.
        case mode(publisher: Int)
        case role(publisher: Int)
        case unpublished(publisher: Int)
        /// In a lecture somebody else, or nobody, has the floor.
        case floor(publisher: Int)
        /// The viewer has switched a subscription's media off.
        case watch(viewer: Int, publisher: UInt32, MediaKind)
    }

    /// A subscription: a participant and the client that it watches.
    private struct Pair: Hashable {
        var viewer: Int
        var publisher: UInt32
    }

    private var closures: Set<Closure> = []
    private var pairs: Set<Pair> = []
    /// Participant of each client.
    private var seats: [UInt32: Int] = [:]
    /// Participants whom a muted room does not silence.
    private var moderators: Set<Int> = []
    /// Participants whose slots follow active speakers: they may get anybody in the room.
    private var followers: Set<Int> = []

    mutating func note(client: UInt32, of seat: Int, isModerator: Bool) {
        seats[client] = seat
        if isModerator { moderators.insert(seat) }
    }

    mutating func follow(_ seat: Int) { followers.insert(seat) }

    mutating func close(_ closure: Closure) { closures.insert(closure) }

    mutating func open(_ closure: Closure) { closures.remove(closure) }

    func isClosed(_ closure: Closure) -> Bool { closures.contains(closure) }

    /// Records that a viewer has subscribed to a client.
    mutating func watch(viewer: Int, publisher: UInt32) {
        pairs.insert(Pair(viewer: viewer, publisher: publisher))
        for kind in MediaKind.allCases {
            closures.remove(.watch(viewer: viewer, publisher: publisher, kind))
        }
    }

    /// Records that a viewer has unsubscribed.
    mutating func leave(viewer: Int, publisher: UInt32) {
        pairs.remove(Pair(viewer: viewer, publisher: publisher))
    }

    /// Returns the violation if a packet must not go to a viewer.
    func objection(to mark: MediaMark, for viewer: WorldClient) -> (Invariant, String)? {
        guard mark.room == viewer.room else {
            return (.rooms, "of room \(mark.room) in room \(viewer.room)")
        }
        let pair = Pair(viewer: viewer.seat, publisher: mark.publisher)
        guard pairs.contains(pair) || followers.contains(viewer.seat) else {
            return (.subscriptions, "seat \(viewer.seat) watches no client \(mark.publisher)")
        }
        let closed = reasons(mark.publisher, mark.kind, mark.room, viewer).first {
            closures.contains($0)
        }
        return closed.map { (.rights, "\($0) holds \(mark.kind) of client \(mark.publisher) back") }
    }

    private func reasons(
        _ publisher: UInt32,
        _ kind: MediaKind,
        _ room: UInt32,
        _ viewer: WorldClient
    ) -> [Closure] {
        let seat = seats[publisher] ?? -1
        var all: [Closure] = [
            .room(room), .client(publisher), .client(UInt32(viewer.index)),
            .mute(publisher: seat, kind), .own(publisher: seat, kind), .mode(publisher: seat),
            .role(publisher: seat), .unpublished(publisher: seat), .floor(publisher: seat),
            .watch(viewer: viewer.seat, publisher: publisher, kind),
        ]
        if kind == .audio, !moderators.contains(seat) { all.append(.roomMute(room)) }
        return all
    }

    /// Whether a viewer may get a client's media, by all that is known.
    func mayHave(_ kind: MediaKind, of publisher: UInt32, _ viewer: WorldClient) -> Bool {
        pairs.contains(Pair(viewer: viewer.seat, publisher: publisher))
            && reasons(publisher, kind, viewer.room, viewer).allSatisfy { !closures.contains($0) }
    }
}
