package import Contract
package import RTP
package import Rooms
import WorkerInterface

/// Control plane: the rooms behind a JSON-RPC interface.
///
/// Request lines and worker events go in; replies, events and commands come out. Like the packet
/// path it opens no socket and reads no clock. It is a single value on one thread. A request is
/// judged at once and answered when its commands have taken effect (`Operation`).
package struct ControlPlane {
    private(set) var setup: ControlSetup
    var rooms: RoomTable
    var journals: EventJournals
    /// State shared by the rooms: handles, ids, randomness and limits.
    package var shared: Room.Shared
    var operations = PendingOperations()
    var workerRequests = WorkerRequests()
    /// Recordings, live streams and RTP forwards.
    var roomOutputs: RoomOutputs
    var life = ServerLife()
    var clock: WallClock
    var output: [ControlOutput] = []

    package init(_ setup: ControlSetup) {
        self.setup = setup
        rooms = RoomTable(workers: setup.workers)
        // Provisional; replaced at the first request, before which nothing happens.
        clock = WallClock(instant: Instant(nanoseconds: 0), unixTime: setup.startTime)
        roomOutputs = RoomOutputs(endedLimit: setup.limits.recordingsListed)
        journals = EventJournals(eventLimit: setup.limits.eventsPerRoom)
        shared = Room.Shared(setup)
        if setup.node != nil { places = Places(recorder: setup.workers, link: linkThread) }
    }

    /// Goes on under the boot id of an earlier process, whose rooms are here again.
    mutating func take(bootID: String) { setup.bootID = bootID }

    /// Processes one request line of a connection; it is answered exactly once.
    package mutating func receive(
        _ line: [UInt8],
        from connection: ConnectionID,
        at now: Instant,
        unixTime: Double
    ) {
        do throws(IPCRefusal) {
            let request = try IPCRequest(line: line)
            receive(request, from: connection, at: now, unixTime: unixTime)
        } catch {
            output.append(.reply(connection, error.encoded()))
        }
    }

    /// Processes one request of a connection; it is answered exactly once.
    ///
    /// `node`: the node at which it was made; `nil` for this one.
    package mutating func receive(
        _ request: IPCRequest,
        from connection: ConnectionID,
        by node: String? = nil,
        at now: Instant,
        unixTime: Double
    ) {
        clock = WallClock(instant: now, unixTime: unixTime)
        shared.unixTime = unixTime
        shared.now = now
        let caller = Caller(connection: connection, request: request.id, node: node)
        do throws(IPCError) {
            try carryOut(request, for: caller, at: now)
        } catch {
            rooms.counters.note(error, of: request.method)
            output.append(.reply(connection, IPCReply.encoded(id: request.id, error: error)))
        }
    }

    /// Forgets a closed connection: its calls take effect, but their replies are dropped.
    package mutating func connectionClosed(_ connection: ConnectionID) {
        operations.dropReplies(to: connection)
        workerRequests.drop(from: connection)
        roomOutputs.dropReplies(to: connection)
    }

    /// Time of the next `expire(at:)` with work to do, if any.
    package var deadline: Instant? {
        [rooms.deadline, life.deadline, workerRequests.feeds.deadline, places?.deadline]
            .compactMap(\.self).min()
    }

    /// Performs the work due.
    package mutating func expire(at now: Instant) {
        expireLife(at: now)
        for name in rooms.due(at: now) { expire(name, at: now) }
        expireStatistics(at: now)
        expirePlaces(at: now)
    }

    private mutating func expire(_ name: String, at now: Instant) {
        if rooms[name] != nil { setTime(now) }
        let change = rooms.entries[name]?.room.expire(&shared)
        rooms.noteDeadline(of: name)
        guard let change else { return }
        conclude(Room.Outcome(change: change), in: name, at: now)
    }

    mutating func setTime(_ now: Instant) {
        shared.unixTime = clock.unixTime(at: now)
        shared.now = now
    }

    /// Returns the pending output, in order, and clears it.
    package mutating func takeOutput() -> [ControlOutput] {
        defer { output = [] }
        let changes = takeUnsaved()
        return changes.isEmpty ? output : [.save(changes)] + output
    }
}

// Figures for statistics and metrics.
extension ControlPlane {
    package var roomCount: Int { rooms.count }
    /// Most rooms that there may be.
    package var roomLimit: Int { setup.limits.rooms }
    /// Whether `server.drain` is in force.
    package var isDraining: Bool { life.isDraining }
    /// Whether new rooms are taken.
    package var acceptsRooms: Bool { life.acceptsRooms }
    package var counters: ControlCounters { rooms.counters }
    package var participantCount: Int { rooms.participantCount }
    /// Mean share of time for which the workers are busy: 0 to 1.
    package var meanLoad: Double { shared.load.meanBusy }
    /// Number of joins and rooms refused for lack of processing time or memory.
    package var joinsRefused: UInt64 { shared.load.refused &+ shared.memory.refused }
    /// Counter that grows with events that may fragment the heap or need memory back.
    package var heapChanges: Int {
        rooms.transportChanges &+ Int(truncatingIfNeeded: shared.memory.refused)
    }
}

extension Room.Shared {
    fileprivate init(_ setup: ControlSetup) {
        self.init(
            identifiers: setup.candidates.map { _ in setup.limits.identifiers },
            locals: (0..<setup.workers).map { worker in
                LocalParameters(
                    candidates: setup.candidates(of: worker),
                    fingerprint: setup.fingerprint,
                    cname: ""
                )
            },
            random: setup.random,
            limits: setup.limits.room
        )
        if let directory = setup.recordings {
            // The tap thread counts as one more worker, for mirrors only.
            identifiers.append(
                WorkerIdentifiers(
                    transports: 0,
                    publications: setup.limits.tracksRecorded,
                    slots: 0
                )
            )
            taps = Room.TapService(
                worker: setup.workers,
                directory: directory,
                limit: setup.limits.recordings
            )
        }
        if setup.node != nil {
            // Behind the workers: the recorder's thread, then that of the links, then other nodes'.
            if identifiers.count == setup.workers {
                identifiers.append(WorkerIdentifiers(transports: 0, publications: 0, slots: 0))
            }
            identifiers.append(
                WorkerIdentifiers(
                    transports: 0,
                    publications: ControlLimits.linkedPublications,
                    slots: 0
                )
            )
            remote = Room.RemotePlaces(first: identifiers.count)
            // Rooms come here from other nodes with subscriptions of theirs.
            lastSubscription = UInt64.random(in: 0..<1 << 28, using: &random) << 24
        }
        streaming.schemes = setup.streamingSchemes
        streaming.limit = setup.limits.streamings
        streaming.roomLimit = setup.limits.streamingsPerRoom
        outputs.limit = setup.limits.taps
        outputs.roomLimit = setup.limits.tapsPerRoom
    }
}

/// Conversion from the monotonic clock to the time of day.
struct WallClock: Sendable {
    var instant: Instant
    var unixTime: Double

    /// Returns the Unix time of an instant, in seconds.
    func unixTime(at other: Instant) -> Double {
        unixTime + Double(other.nanoseconds(since: instant)) / 1e9
    }
}
