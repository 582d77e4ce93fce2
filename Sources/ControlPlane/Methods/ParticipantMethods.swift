import Contract
import JSON
import RTP
import Rooms
import WorkerInterface

extension Method {
    static let participantMethods = [
        Method(ParticipantJoin.self) { plane, params, caller, now throws(IPCError) in
            try plane.join(params, for: caller, at: now)
        },
        Method(ParticipantLeave.self, in: \.room) {
            .leave(participant: $0.participant.rawValue)
        },
        Method(ParticipantDrop.self) { plane, params, caller, now throws(IPCError) in
            try plane.drop(params, for: caller, at: now)
        },
        Method(ParticipantGet.self) { plane, params, caller, now throws(IPCError) in
            let participant = try plane.member(params.participant, of: params.room)
            let name = params.room.rawValue
            plane.answer(plane.show(participant, in: name), to: caller, in: name, at: now)
        },
        Method(ParticipantList.self) { plane, params, caller, now throws(IPCError) in
            let page = try plane.withEntry(params.room) { entry throws(IPCError) in
                try entry.page(params)
            }
            let result = EncodedPage(name: "participants", page: page)
            plane.answer(result, to: caller, in: params.room.rawValue, at: now)
        },
        Method(ParticipantUpdate.self) { plane, params, caller, now throws(IPCError) in
            try plane.update(params, for: caller, at: now)
        },
        Method(ParticipantApprove.self) { plane, params, caller, now throws(IPCError) in
            let approve = Room.BulkCall.answerKnock(approve: true)
            try plane.call(
                approve,
                about: params.targets,
                in: params.room,
                by: params.by,
                for: caller,
                at: now
            )
        },
        Method(ParticipantDeny.self) { plane, params, caller, now throws(IPCError) in
            let deny = Room.BulkCall.answerKnock(
                approve: false,
                detail: params.detail?.rawValue
            )
            try plane.call(
                deny,
                about: params.targets,
                in: params.room,
                by: params.by,
                for: caller,
                at: now
            )
        },
        Method(ParticipantSetMode.self, in: \.room) { params in
            .setMode(
                params.participant.rawValue,
                Room.Mode(params.mode.mode),
                params.mode.isOldName ? .old : .current,
                by: params.by?.rawValue
            )
        },
        Method(ParticipantHardMute.self) { plane, params, caller, now throws(IPCError) in
            try plane.hardMute(params, on: true, for: caller, at: now)
        },
        Method(ParticipantHardUnmute.self) { plane, params, caller, now throws(IPCError) in
            try plane.hardMute(params, on: false, for: caller, at: now)
        },
    ]
}

extension ControlPlane {
    fileprivate mutating func join(
        _ params: ParticipantJoin.Params,
        for caller: Caller,
        at now: Instant
    ) throws(IPCError) {
        let id = params.participant.rawValue
        var join = Room.Join(participant: id)
        join.name = Room.Setting(params.name, \.rawValue)
        join.role = params.role?.rawValue
        join.mode = params.mode.map { Room.Mode($0.mode) }
        join.vocabulary = params.mode.map { $0.isOldName ? .old : .current }
        join.refusesTakeover = params.ifPresent == .refuse
        join.node = hostingNode(for: caller.node, in: params.room.rawValue)
        let outcome = try apply(.join(join), in: params.room)
        rooms.entries[params.room.rawValue]?.apply(params.custom, to: id)
        conclude(outcome, in: params.room.rawValue, at: now) { plane in
            let name = params.room.rawValue
            guard let participant = plane.rooms[name]?.room.participants[id],
                let room = params.snapshot == false
                    ? plane.showWithoutLists(name) : plane.show(name)
            else { return .none }
            let request = plane.rooms[name]?.room.openRoleRequest(of: id, at: plane.shared.now)
            let result = EncodedJoin(
                state: outcome.result == .awaited ? .awaited : .joined,
                room: params.room,
                participant: params.participant,
                node: participant.node ?? plane.setup.node,
                participantInfo: plane.show(participant, in: name),
                roomInfo: room,
                roleRequest: request.map(RoleRequestInfo.init)
            )
            return .written(
                caller.connection,
                IPCReply.encoded(id: caller.request, result: result)
            )
        }
    }

    fileprivate mutating func update(
        _ params: ParticipantUpdate.Params,
        for caller: Caller,
        at now: Instant
    ) throws(IPCError) {
        let (name, id) = (params.room.rawValue, params.participant.rawValue)
        let update = Room.Call.updateParticipant(
            id,
            name: Room.Setting(params.name, \.rawValue),
            by: params.by?.rawValue
        )
        let outcome = try apply(update, in: params.room)
        rooms.entries[name]?.apply(params.custom, to: id)
        conclude(outcome, in: name, at: now) { plane in
            guard let participant = plane.rooms[name]?.room.participants[id] else { return .none }
            let info = plane.show(participant, in: name)
            let result = ParticipantUpdate.Result(participantInfo: info)
            return .written(
                caller.connection,
                IPCReply.encoded(id: caller.request, result: result)
            )
        }
    }

    fileprivate mutating func hardMute(
        _ params: ParticipantMedia,
        on: Bool,
        for caller: Caller,
        at now: Instant
    ) throws(IPCError) {
        let kinds = Set(params.media.map(MediaKind.init))
        try call(
            .hardMute(kinds, on: on),
            about: params.targets,
            in: params.room,
            by: params.by,
            for: caller,
            at: now
        )
    }

    /// Makes a call about one participant, or about several and answers for each of them.
    fileprivate mutating func call(
        _ bulk: Room.BulkCall,
        about targets: Targets,
        in room: RoomID,
        by actor: ParticipantID?,
        for caller: Caller,
        at now: Instant
    ) throws(IPCError) {
        let actor = actor?.rawValue
        let ids: [String]
        switch targets {
        case .one(let participant):
            let single = bulk.about(participant.rawValue, by: actor)
            return try call(single, in: room, for: caller, at: now)
        case .several(let participants): ids = participants.map(\.rawValue)
        case .allAwaited: ids = try entry(room).room.awaited.prefix(Targets.countLimit).map(\.id)
        }
        let outcome = try apply(.each(ids, bulk, by: actor), in: room)
        guard case .each(let results) = outcome.result else { return }
        let answers = zip(ids, results).map { id, result in
            TargetResult(participant: ParticipantID(id), error: result.refusal)
        }
        conclude(outcome, in: room.rawValue, at: now) { _ in .targets(caller, answers) }
    }

    fileprivate mutating func drop(
        _ params: ParticipantDrop.Params,
        for caller: Caller,
        at now: Instant
    ) throws(IPCError) {
        let ids = params.participants.map(\.rawValue)
        let drop = Room.Call.drop(
            ids,
            by: params.by?.rawValue,
            detail: params.detail?.rawValue
        )
        let outcome = try apply(drop, in: params.room)
        guard case .dropped(let dropped) = outcome.result else { return }
        let results = params.participants.map { participant in
            ParticipantDrop.Dropped(
                participant: participant,
                dropped: dropped.contains(participant.rawValue)
            )
        }
        conclude(outcome, in: params.room.rawValue, at: now) { _ in
            .dropped(caller, results)
        }
    }
}

extension Result<Room.Result, CallError> {
    fileprivate var refusal: IPCError? {
        if case .failure(let refusal) = self { IPCError(refusal) } else { nil }
    }
}

extension MediaKind {
    init(_ kind: StreamKind) {
        switch kind {
        case .audio: self = .audio
        case .video: self = .video
        }
    }
}
