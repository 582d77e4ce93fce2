import Contract
import JSON
import RTP
import Rooms
import WorkerInterface

extension Method {
    static let roomMethods = [
        Method(RoomCreate.self) { plane, params, caller, now throws(IPCError) in
            try plane.create(params, for: caller, at: now)
        },
        Method(RoomGet.self) { plane, params, caller, now throws(IPCError) in
            let name = try plane.entry(params.room).room.name
            plane.answer(plane.show(name), to: caller, in: name, at: now)
        },
        Method(RoomList.self) { plane, params, caller, _ throws(IPCError) in
            let page = EncodedPage(name: "rooms", page: try plane.rooms.page(params))
            plane.answer(page, to: caller)
        },
        Method(RoomClose.self, in: \.room) {
            .close(
                by: $0.by?.rawValue,
                reason: Room.EndReason.closed,
                detail: $0.detail?.rawValue
            )
        },
        Method(RoomSetState.self, in: \.room) {
            .setState(Room.State($0.state), by: $0.by?.rawValue)
        },
        Method(RoomUpdate.self) { plane, params, caller, now throws(IPCError) in
            try plane.update(params, for: caller, at: now)
        },
        Method(RoomLock.self, in: \.room) { .lock(true, by: $0.by?.rawValue) },
        Method(RoomUnlock.self, in: \.room) { .lock(false, by: $0.by?.rawValue) },
        Method(RoomHardMute.self, in: \.room) { params in
            .hardMuteRoom(
                true,
                sparingModerators: params.sparing == .moderators,
                by: params.by?.rawValue
            )
        },
        Method(RoomHardUnmute.self, in: \.room) { .hardMuteRoom(false, by: $0.by?.rawValue) },
        Method(PinAdd.self, in: \.room) {
            .pin($0.participants.map(\.rawValue), on: true, by: $0.by?.rawValue)
        },
        Method(PinRemove.self, in: \.room) {
            .pin($0.participants.map(\.rawValue), on: false, by: $0.by?.rawValue)
        },
    ]
}

extension ControlPlane {
    fileprivate mutating func create(
        _ params: RoomCreate.Params,
        for caller: Caller,
        at now: Instant
    ) throws(IPCError) {
        let name = params.room.rawValue
        guard life.acceptsRooms else { throw .draining() }
        guard rooms[params.room] == nil else { throw .alreadyExists(params.room) }
        guard rooms.count < setup.limits.rooms else {
            throw .limitReached("rooms", setup.limits.rooms)
        }
        try refuseMoreMemory()
        let settings = RoomSettings().merging(params.settings ?? RoomSettingsChange())
        try check(settings)
        let room = Room(
            name: name,
            settings: Room.Settings(settings),
            worker: rooms.leastLoadedWorker(shared.identifiers),
            at: shared.unixTime,
            now: shared.now
        )
        var entry = RoomEntry(room: room, settings: settings, setup)
        if let custom = params.custom { entry.custom = custom.value }
        rooms.open(entry)
        journals.open(name)
        output.append(.log(.info, "room created", [("room", name)]))
        var operation = Operation(at: now)
        let created = RoomCreated(
            state: RoomState(room.state),
            settings: settings,
            custom: entry.custom
        )
        operation.tell([event(created, to: .all, in: name)])
        operation.reply = .written(
            caller.connection,
            IPCReply.encoded(id: caller.request, result: show(name))
        )
        commit(operation, [:], in: name)
        rooms.noteDeadline(of: name)
    }

    private mutating func refuseMoreMemory() throws(IPCError) {
        do throws(CallError) { try shared.memory.refuseMore() } catch { throw IPCError(error) }
    }

    fileprivate mutating func update(
        _ params: RoomUpdate.Params,
        for caller: Caller,
        at now: Instant
    ) throws(IPCError) {
        let entry = try entry(params.room)
        // The limits of settings are judged behind the caller's right to change them.
        do throws(CallError) {
            try entry.room.checkMayUpdate(params.by?.rawValue)
        } catch {
            throw IPCError(error)
        }
        let merged = params.settings.map(entry.settings.merging)
        if let merged { try check(merged) }
        let update = Room.Call.update(
            merged.map(Room.Settings.init),
            by: params.by?.rawValue
        )
        let outcome = try apply(update, in: params.room)
        let name = params.room.rawValue
        if let merged { rooms.entries[name]?.settings = merged }
        switch params.custom {
        case .keep: break
        case .clear: rooms.entries[name]?.custom = [:]
        case .set(let custom): rooms.entries[name]?.custom = custom.value
        }
        conclude(outcome, in: name, at: now) { plane in
            guard let room = plane.show(name) else { return .none }
            return .written(
                caller.connection,
                IPCReply.encoded(id: caller.request, result: room)
            )
        }
    }

    /// Checks the limits of settings: they stand in lines beside other things.
    private func check(_ settings: RoomSettings) throws(IPCError) {
        guard settings.roles.count <= setup.limits.rolesPerRoom else {
            throw .limitReached("rolesPerRoom", setup.limits.rolesPerRoom)
        }
        guard JSON.encoded(settings).count <= RoomSettings.byteLimit else {
            throw .limitReached("settingsBytes", RoomSettings.byteLimit)
        }
    }
}
