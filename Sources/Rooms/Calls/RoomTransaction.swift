package import WorkerInterface

/// Transaction of one call, notice or deadline on a room.
///
/// It holds the state shared by all rooms, on loan for the time of the transaction, and collects
/// the effects. If a call is refused, its effects are discarded; nothing has been sent.
struct RoomTransaction: ~Copyable {
    /// Handles, ids, randomness, limits and the time.
    var shared: Room.Shared
    private(set) var change = Room.Change()
    /// Participant on whose behalf the call is made.
    var actor: String?
    /// Whether a right is revoked; the reply then carries the fence's figures.
    var isFenced = false
    /// Whether transports are closed only when the announcements are out.
    var announcesFirst = false
    /// Operation that is pending until all workers have passed the fence.
    private(set) var pending: Room.PendingOperation?
    /// Publications whose mirrors may differ from the state the workers were told.
    private var touched: Set<RelayTarget> = []

    init(shared: consuming Room.Shared) { self.shared = shared }

    /// Appends a command to a worker.
    mutating func tell(_ worker: Int, _ command: WorkerCommand) {
        change.commands[worker, default: []].append(command)
    }

    /// Closes a transport; the client notices that by itself.
    mutating func close(_ place: Room.TransportLocation) {
        guard announcesFirst else { return tell(place.worker, .close(place.id)) }
        change.closing[place.worker, default: []].append(.close(place.id))
    }

    mutating func announce(_ news: Room.Event, to audience: Room.Audience) {
        announce(news, to: audience, by: actor)
    }

    /// Announces an event that earlier calls of `actor` have caused.
    mutating func announce(_ news: Room.Event, to audience: Room.Audience, by actor: String?) {
        change.announcements.append(Room.Announcement(news: news, to: audience, by: actor))
    }

    /// Notes a worker-side object that this transaction creates.
    mutating func open(_ resource: Room.WorkerResource) { change.opened.append(resource) }

    /// Notes an object whose handle is free once the workers have passed the fence.
    mutating func free(_ resource: Room.WorkerResource) { change.freed.append(resource) }

    mutating func touch(_ home: RelayTarget) { touched.insert(home) }

    /// Forgets all that was for the workers: their objects have ended with another host.
    mutating func forgetWorkers() {
        change.commands = [:]
        change.closing = [:]
        change.opened = []
        change.freed = []
        touched = []
    }

    /// Returns the touched publications, sorted, and clears the set.
    mutating func takeTouched() -> [RelayTarget] {
        defer { touched = [] }
        return touched.sorted {
            ($0.worker, $0.publication.index) < ($1.worker, $1.publication.index)
        }
    }

    /// Makes all workers pass the fence, even those without commands, and the operation pending
    /// until they have.
    mutating func awaitFence(of operation: Room.PendingOperation) {
        pending = operation
        for worker in shared.locals.indices { change.commands[worker, default: []] += [] }
    }
}

extension Room {
    /// Effects of one call or notice.
    package struct Change: Sendable {
        /// Commands for each worker, in order.
        package fileprivate(set) var commands: [Int: [WorkerCommand]] = [:]
        /// Commands that follow when the announcements are out.
        package fileprivate(set) var closing: [Int: [WorkerCommand]] = [:]
        package fileprivate(set) var announcements: [Announcement] = []
        package fileprivate(set) var opened: [WorkerResource] = []
        /// Objects whose handles return to their pools once the workers have passed the fence.
        package fileprivate(set) var freed: [WorkerResource] = []

        /// The same effects, without a word to anybody.
        package var silent: Self {
            var silent = self
            silent.announcements = []
            return silent
        }

        /// Takes the commands for workers from a number on out of it.
        package mutating func takeCommands(from first: Int) -> [Int: [WorkerCommand]] {
            let taken = commands.filter { $0.key >= first }
            commands = commands.filter { $0.key < first }
            return taken
        }
    }
}
