import Contract
package import RTP
package import Rooms
package import WorkerInterface

/// Control plane: the rooms behind a JSON-RPC interface.
///
/// Request lines and worker events go in; replies, events and commands come out. Like the packet
/// path it opens no socket and reads no clock. It is a single value on one thread. A request is
/// judged at once and answered when its commands have taken effect (`Operation`).
package struct ControlPlane {
    let setup: ControlSetup
    var rooms: [String: RoomEntry] = [:]
    /// Number of rooms for which each worker is the first.
    var roomCounts: [Int]
    var journals: ControlJournals
    /// State shared by the rooms: handles, ids, randomness and limits.
    package var shared: Room.Shared
    /// Room that owns a worker-side object, to route worker events.
    var owners: [Room.WorkerResource: String] = [:]
    /// Operations that wait for a fence, by epoch.
    var operations: [UInt64: Operation] = [:]
    var lastEpoch: UInt64 = 0
    /// Statistics requests that wait for workers, by token.
    var reports: [UInt64: StatisticsReport] = [:]
    /// Pending `subscription.explain` requests, by token.
    var explanations: [UInt64: ExplanationRequest] = [:]
    var lastToken: UInt64 = 0
    var clock: WallClock
    var output: [ControlOutput] = []
    /// Present and past recordings.
    var recordings: RecordingCatalog
    /// Live streams, running or starting.
    var streamings: [OutputID: StreamingEntry] = [:]
    /// RTP forwards.
    var outputs: [OutputID: RTPForwardEntry] = [:]
    /// Number of transport state changes and releases since the start.
    var transportChanges = 0
    /// Counter that grows with events that may fragment the heap or need memory back.
    package var heapChanges: Int {
        transportChanges &+ Int(truncatingIfNeeded: shared.memory.refused)
    }
    /// Number of joins and rooms refused for lack of processing time or memory.
    package var joinsRefused: UInt64 { shared.load.refused &+ shared.memory.refused }
    /// Deadlines of rooms that have one.
    private var timers: [String: Instant] = [:]
    private var ending = Ending.no
    /// Whether new rooms are accepted, and the deadline of the existing ones.
    var draining = Draining()

    private enum Ending {
        case no
        /// Rooms are closing; the process exits at this time at the latest.
        case by(Instant)
        case done
    }

    /// Time that rooms have to end at shutdown.
    private static let graceMilliseconds: Int64 = 1_500

    package init(_ setup: ControlSetup) {
        self.setup = setup
        roomCounts = [Int](repeating: 0, count: setup.workers)
        // Provisional; replaced at the first request, before which nothing happens.
        clock = WallClock(instant: Instant(nanoseconds: 0), unixTime: setup.startTime)
        recordings = RecordingCatalog(endedLimit: setup.limits.recordingsListed)
        journals = ControlJournals(eventLimit: setup.limits.eventsPerRoom)
        shared = Room.Shared(
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
            shared.identifiers.append(
                WorkerIdentifiers(
                    transports: 0,
                    publications: setup.limits.tracksRecorded,
                    slots: 0
                )
            )
            shared.taps = Room.TapService(
                worker: setup.workers,
                directory: directory,
                limit: setup.limits.recordings
            )
        }
        shared.streaming.schemes = setup.streamingSchemes
        shared.streaming.limit = setup.limits.streamings
        shared.streaming.roomLimit = setup.limits.streamingsPerRoom
        shared.outputs.limit = setup.limits.taps
        shared.outputs.roomLimit = setup.limits.tapsPerRoom
    }

    /// Processes one request line of a connection; it is answered exactly once.
    package mutating func receive(
        _ line: [UInt8],
        from connection: ConnectionID,
        at now: Instant,
        unixTime: Double
    ) {
        clock = WallClock(instant: now, unixTime: unixTime)
        shared.unixTime = unixTime
        shared.now = now
        do throws(IPCRefusal) {
            let request = try IPCRequest(line: line)
            let caller = Caller(connection: connection, request: request.id)
            do throws(IPCError) {
                try carryOut(request, for: caller, at: now)
            } catch {
                output.append(
                    .reply(connection, IPCReply.encoded(id: request.id, error: error))
                )
            }
        } catch {
            output.append(.reply(connection, error.encoded()))
        }
    }

    /// Processes an event of a worker.
    package mutating func receive(_ event: WorkerEvent, from worker: Int, at now: Instant) {
        setTime(now)
        switch event {
        case .fenced(let epoch, let passed, let packets):
            fenced(epoch, by: worker, at: passed, packets)
        case .statistics(let token, let statistics):
            collect(statistics, token, from: worker)
        case .transport(let id, let what):
            transportChanges &+= 1
            let place = Room.TransportLocation(worker: worker, id: id)
            take(.transport(place, what), of: .transport(worker: worker, id), at: now)
        case .started(_, let subscription):
            take(
                .started(subscription: subscription),
                of: .subscription(subscription),
                at: now
            )
        case .layerChanged(let slot, let subscription, let from, let to):
            take(
                .layerChanged(
                    subscription: subscription,
                    worker: worker,
                    slot,
                    from: from,
                    to: to
                ),
                of: .subscription(subscription),
                at: now
            )
        case .tap(let notice): take(notice, at: now)
        case .layers(let id, let codec, let layers):
            take(
                .layers(worker: worker, id, codec: codec, layers),
                of: .publication(worker: worker, id),
                at: now
            )
        case .videoHeld(let slot, let subscription, let reason):
            take(
                .videoHeld(subscription: subscription, worker: worker, slot, reason),
                of: .subscription(subscription),
                at: now
            )
        case .layersWanted(let id, let home, let mask):
            let home = home ?? RelayTarget(worker: worker, publication: id)
            take(
                .layersWanted(worker: worker, home: home, mask),
                of: .publication(worker: home.worker, home.publication),
                at: now
            )
        case .pressure(let pressure, let transports):
            take(pressure, transports: transports, of: worker)
        case .explained(let token, let explanation):
            explained(explanation, token, at: now)
        case .speech(let id, let what):
            take(
                .speech(worker: worker, id, what),
                of: .publication(worker: worker, id),
                at: now
            )
        }
    }

    /// Forgets a closed connection: its calls take effect, but their replies are dropped.
    package mutating func connectionClosed(_ connection: ConnectionID) {
        for (epoch, operation) in operations {
            switch operation.reply {
            case .written(connection, _): operations[epoch]?.reply = .none
            case .fenced(let caller) where caller.connection == connection:
                operations[epoch]?.reply = .none
            case .dropped(let caller, _) where caller.connection == connection:
                operations[epoch]?.reply = .none
            case .recording(let caller, _) where caller.connection == connection:
                operations[epoch]?.reply = .none
            case .none, .written, .fenced, .dropped, .recording: break
            }
        }
        reports = reports.filter { $0.value.caller.connection != connection }
        explanations = explanations.filter { $0.value.caller.connection != connection }
        forgetStarts(of: connection)
    }

    /// Time of the next `expire(at:)` with work to do, if any.
    package var deadline: Instant? {
        // Few rooms have a deadline at a time.
        var next = timers.values.min()
        if let end = draining.deadline { next = min(end, next ?? end) }
        if case .by(let end) = ending { next = min(end, next ?? end) }
        return next
    }

    /// Performs the work due.
    package mutating func expire(at now: Instant) {
        if case .by(let end) = ending, end <= now { finish() }
        if let end = draining.deadline, end <= now { endDraining(at: now) }
        // Sorted, so that runs are reproducible.
        for name in timers.filter({ $0.value <= now }).keys.sorted() { expire(name, at: now) }
    }

    private mutating func expire(_ name: String, at now: Instant) {
        timers[name] = nil
        guard var entry = rooms.removeValue(forKey: name) else { return }
        setTime(now)
        let change = entry.room.expire(&shared)
        rooms[name] = entry
        noteDeadline(of: name)
        conclude(Room.Outcome(change: change), in: name, at: now)
    }

    /// Updates the stored deadline of a room.
    mutating func noteDeadline(of name: String) { timers[name] = rooms[name]?.room.deadline }

    mutating func setTime(_ now: Instant) {
        shared.unixTime = clock.unixTime(at: now)
        shared.now = now
    }

    /// Closes all rooms; `ControlOutput.exit` follows when the workers have passed the fences.
    package mutating func shutdown(at now: Instant) {
        guard case .no = ending else { return }
        ending = .by(now.advanced(milliseconds: Self.graceMilliseconds))
        setTime(now)
        for name in rooms.keys.sorted() { closeAtShutdown(name, at: now) }
        finishIfDone()
    }

    /// Whether shutdown has begun; no new rooms are accepted then.
    var isEnding: Bool { if case .no = ending { false } else { true } }

    mutating func finishIfDone() {
        if case .by = ending, operations.isEmpty { finish() }
    }

    private mutating func finish() {
        ending = .done
        output.append(.exit)
    }

    package var roomCount: Int { rooms.count }
    package var participantCount: Int { rooms.values.reduce(0) { $0 + $1.room.participants.count } }

    /// Returns the pending output, in order, and clears it.
    package mutating func takeOutput() -> [ControlOutput] {
        defer { output = [] }
        return output
    }

    mutating func take(
        _ notice: Room.Notice,
        of place: Room.WorkerResource,
        at now: Instant
    ) {
        // A worker may report on a removed object until it has passed the fence.
        guard let name = owners[place], var entry = rooms[name] else { return }
        rooms[name] = nil
        let change = entry.room.take(notice, &shared)
        rooms[name] = entry
        noteDeadline(of: name)
        guard !change.announcements.isEmpty || !change.commands.isEmpty else { return }
        for case .connection(let participant, _, .disconnected(let reason)) in change
            .announcements.map(\.news)
        {
            output.append(
                .log(
                    .info,
                    "transport ended",
                    [("room", name), ("participant", participant), ("reason", reason.rawValue)]
                )
            )
        }
        conclude(Room.Outcome(change: change), in: name, at: now)
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
