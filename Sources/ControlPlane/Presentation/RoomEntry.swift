import Contract
import JSON
import RTP
import Rooms
import WorkerInterface

/// Room together with its callers' data, which has no effect on media.
struct RoomEntry {
    var room: Room
    /// Settings as shown, with defaults filled in.
    var settings: RoomSettings
    /// Callers' custom data of participants.
    private(set) var customs: [String: JSON] = [:]
    /// Callers' custom data of the room.
    var custom: JSON = [:]
    var messages: MessageBoard
    private var participants = EncodedList()
    /// Participants whose custom data has changed since they were encoded.
    private var stale: Set<String> = []
    private var streams = EncodedList()
    /// Room as last shown, and its complete JSON.
    private var written: (room: RoomInfo, text: EncodedJSON)?

    init(room: Room, settings: RoomSettings, limits: ControlLimits) {
        self.room = room
        self.settings = settings
        messages = MessageBoard(limits: limits)
    }

    var id: RoomID { RoomID(room.name) }

    /// Returns the room as JSON; `seq` is that of its last event.
    mutating func shown(seq: UInt64) -> EncodedJSON {
        let changed = writeChanges()
        let shown = inWords(seq: seq)
        if let written, !changed, written.room == shown { return written.text }
        let whole = EncodedRoom(
            room: shown,
            participants: participants.text(inOrder: room.participants.listedNames),
            streams: streams.text(inOrder: room.streams.listedNames)
        )
        let text = EncodedJSON(bytes: JSON.encoded(whole))
        written = (shown, text)
        return text
    }

    /// Encodes the changed participants and streams.
    ///
    /// - Returns: whether anything has changed.
    private mutating func writeChanges() -> Bool {
        let changedParticipants = room.takeChangedParticipants().union(stale)
        let changedStreams = room.takeChangedStreams()
        for id in changedParticipants {
            let shown = room.participants[id].flatMap { $0.admitted ? show($0) : nil }
            participants[id] = shown.map { JSON.encoded($0) }
        }
        stale = []
        for id in changedStreams {
            streams[id] = room.streams[id].map { JSON.encoded(StreamInfo($0)) }
        }
        return !changedParticipants.isEmpty || !changedStreams.isEmpty
    }

    /// Returns the room in the contract's type, without participants and streams.
    private func inWords(seq: UInt64) -> RoomInfo {
        var shown = RoomInfo(
            room: id,
            state: RoomState(room.state),
            settings: settings,
            created: room.created
        )
        shown.seq = Int64(seq)
        shown.custom = custom
        shown.locked = room.locked
        shown.hardMuted = room.hardMuted
        shown.talkers = room.speakerList.map(Talker.init)
        shown.recording = room.recording != nil
        shown.streaming = room.isStreaming
        shown.pins = room.pins.map { ParticipantID($0) }
        shown.raisedHands = room.raisedHands.map { ParticipantID($0) }
        shown.approvedHands = room.floorHolder.map { [ParticipantID($0)] } ?? []
        shown.awaited = room.awaited.map(AwaitedParticipant.init)
        return shown
    }

    func show(_ participant: Room.Participant) -> ParticipantInfo {
        ParticipantInfo(
            participant: ParticipantID(participant.id),
            name: participant.name ?? "",
            role: participant.role,
            mode: ParticipantMode(participant.mode),
            state: participant.admitted ? .joined : .awaited,
            hardMuted: MediaKind.allCases.filter(participant.hardMuted.contains)
                .map { StreamKind($0) },
            connection: ConnectionState(participant.connection),
            custom: customs[participant.id] ?? [:]
        )
    }

    mutating func keep(_ custom: JSON, for participant: String) {
        customs[participant] = custom
        stale.insert(participant)
    }

    /// Removes the data of a participant that has left.
    mutating func forget(_ participant: String) {
        customs[participant] = nil
        messages.remove(ParticipantID(participant))
    }
}

extension ControlPlane {
    func entry(_ room: RoomID) throws(IPCError) -> RoomEntry {
        guard let entry = rooms[room.rawValue] else { throw .noSuchRoom(room) }
        return entry
    }

    mutating func create(
        _ params: RoomCreate.Params,
        for caller: Caller,
        at now: Instant
    ) throws(IPCError) {
        let name = params.room.rawValue
        guard !isEnding, !draining.isOn else { throw .draining() }
        guard rooms[name] == nil else { throw .alreadyExists("room \"\(name)\"") }
        guard rooms.count < setup.limits.rooms else {
            throw .limitReached("rooms", setup.limits.rooms)
        }
        try refuseMoreMemory()
        let settings = RoomSettings().merging(params.settings ?? RoomSettingsChange())
        try checkRoles(of: settings)
        let worker = leastLoadedWorker
        roomCounts[worker] += 1
        let room = Room(
            name: name,
            settings: Room.Settings(settings),
            worker: worker,
            at: shared.unixTime
        )
        rooms[name] = RoomEntry(room: room, settings: settings, limits: setup.limits)
        journals.open(name)
        output.append(.log(.info, "room created", [("room", name)]))
        var operation = Operation(at: now)
        let created = RoomCreated(state: RoomState(room.state), settings: settings)
        operation.events = [event(created, to: .all, in: name)]
        operation.reply = .written(
            caller.connection,
            IPCReply.encoded(id: caller.request, result: show(name))
        )
        commit(operation, [:], in: name)
    }

    private mutating func refuseMoreMemory() throws(IPCError) {
        do throws(CallError) { try shared.memory.refuseMore() } catch { throw IPCError(error) }
    }

    func checkRoles(of settings: RoomSettings) throws(IPCError) {
        guard settings.roles.count <= setup.limits.rolesPerRoom else {
            throw .limitReached("rolesPerRoom", setup.limits.rolesPerRoom)
        }
    }

    /// Worker for a new room.
    ///
    /// Each room counts as one transport, because an empty room is likely to get some.
    private var leastLoadedWorker: Int {
        let load = zip(shared.identifiers, roomCounts).map { $0.transports.used + $1 }
        return load.indices.min { (load[$0], $0) < (load[$1], $1) } ?? 0
    }

    /// Applies a call to its room and replies when it has taken effect.
    ///
    /// `result` makes the reply from the room after the call. If it returns `nil`, the reply is
    /// `{}`, with the fence's figures if the call revoked a right.
    mutating func call(
        _ call: Room.Call,
        in room: RoomID,
        for caller: Caller,
        at now: Instant,
        result: (Room.Outcome, Self) -> [UInt8]? = { _, _ in nil }
    ) throws(IPCError) {
        let outcome = try apply(call, in: room)
        conclude(outcome, in: room.rawValue, at: now) { plane in
            if let line = result(outcome, plane) { return .written(caller.connection, line) }
            if outcome.isFenced { return .fenced(caller) }
            return .written(
                caller.connection,
                IPCReply.encoded(id: caller.request, result: Done())
            )
        }
    }

    mutating func apply(
        _ call: Room.Call,
        in room: RoomID
    ) throws(IPCError) -> Room.Outcome {
        guard rooms[room.rawValue] != nil else { throw .noSuchRoom(room) }
        do throws(CallError) {
            // In place: copying the room would cost time in proportion to its size.
            guard let outcome = try rooms[room.rawValue]?.room.apply(call, &shared) else {
                throw CallError(code: -32603, reason: "internal-error", message: "the room is gone")
            }
            return outcome
        } catch {
            throw IPCError(error)
        }
    }

    /// Numbers and encodes the events of an outcome, and commits it as an operation.
    mutating func conclude(
        _ outcome: Room.Outcome,
        in name: String,
        at now: Instant,
        reply: (inout Self) -> Operation.Reply = { _ in .none }
    ) {
        let change = outcome.change
        var operation = Operation(at: now)
        operation.process = outcome.process
        for place in change.opened { owners[place] = name }
        note(outcome, in: name)
        operation.freed = change.freed
        operation.events = change.announcements.map { event($0, in: name) }
        operation.reply = reply(&self)
        commit(operation, change.commands, in: name)
        noteDeadline(of: name)
        if let room = rooms[name]?.room, room.isClosed {
            roomCounts[room.worker] -= 1
            rooms[name] = nil
            // Pending operations must not affect a later room of the same name.
            for epoch in journals.underWay(name) { operations[epoch]?.process = nil }
            journals.close(name)
            output.append(.log(.info, "room closed", [("room", name)]))
            tellIfDrained()
        }
    }

    mutating func closeAtShutdown(_ name: String, at now: Instant) {
        let reason = Room.EndReason.shutdown
        guard let outcome = try? apply(.close(by: nil, reason: reason), in: RoomID(name)) else {
            return
        }
        conclude(outcome, in: name, at: now)
    }
}

extension IPCError {
    init(_ refusal: CallError) {
        self.init(
            code: refusal.code,
            message: refusal.message,
            reason: refusal.reason,
            details: refusal.details.mapValues { detail in
                switch detail {
                case .text(let text): .string(text)
                case .number(let number): .integer(Int64(number))
                }
            }
        )
    }
}
