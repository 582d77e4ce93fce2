import Contract
import RTP
import Rooms
import WorkerInterface

// Moderation methods: maps the contract's parameters to calls of the room.

extension ControlPlane {
    mutating func moderateRoom(
        _ request: IPCRequest,
        for caller: Caller,
        at now: Instant
    ) throws(IPCError) {
        switch request.method {
        case RoomSetState.name:
            let params = try request.params(RoomSetState.Params.self)
            let state = Room.State(params.state)
            try call(
                .setState(state, by: params.by?.rawValue),
                in: params.room,
                for: caller,
                at: now
            )
        case RoomUpdate.name:
            try update(request.params(RoomUpdate.Params.self), for: caller, at: now)
        case RoomLock.name, RoomUnlock.name:
            let params = try request.params(RoomByParticipant.self)
            let on = request.method == RoomLock.name
            try call(.lock(on, by: params.by?.rawValue), in: params.room, for: caller, at: now)
        case RoomHardMute.name, RoomHardUnmute.name:
            let params = try request.params(RoomByParticipant.self)
            let on = request.method == RoomHardMute.name
            try call(
                .hardMuteRoom(on, by: params.by?.rawValue),
                in: params.room,
                for: caller,
                at: now
            )
        case PinAdd.name, PinRemove.name:
            let params = try request.params(ParticipantsByParticipant.self)
            let pin = Room.Call.pin(
                params.participants.map(\.rawValue),
                on: request.method == PinAdd.name,
                by: params.by?.rawValue
            )
            try call(pin, in: params.room, for: caller, at: now)
        default:
            try moderateParticipant(request, for: caller, at: now)
        }
    }

    private mutating func moderateParticipant(
        _ request: IPCRequest,
        for caller: Caller,
        at now: Instant
    ) throws(IPCError) {
        switch request.method {
        case ParticipantDrop.name:
            try drop(request.params(ParticipantDrop.Params.self), for: caller, at: now)
        case ParticipantApprove.name, ParticipantDeny.name:
            let params = try request.params(ParticipantByParticipant.self)
            let approve = request.method == ParticipantApprove.name
            let answer = Room.Call.answerKnock(
                params.participant.rawValue,
                approve: approve,
                by: params.by?.rawValue
            )
            try call(answer, in: params.room, for: caller, at: now)
            if !approve { rooms[params.room.rawValue]?.forget(params.participant.rawValue) }
        case ParticipantSetMode.name:
            let params = try request.params(ParticipantSetMode.Params.self)
            let mode = Room.Call.setMode(
                params.participant.rawValue,
                Room.Mode(params.mode.mode),
                params.mode.isOldName ? .old : .current,
                by: params.by?.rawValue
            )
            try call(mode, in: params.room, for: caller, at: now)
        case ParticipantHardMute.name, ParticipantHardUnmute.name:
            let params = try request.params(ParticipantMedia.self)
            let mute = Room.Call.hardMute(
                params.participant.rawValue,
                Set(params.media.map(MediaKind.init)),
                on: request.method == ParticipantHardMute.name,
                by: params.by?.rawValue
            )
            try call(mute, in: params.room, for: caller, at: now)
        case ModeratorTransfer.name:
            let params = try request.params(ModeratorTransfer.Params.self)
            let transfer = Room.Call.transfer(
                to: params.participant.rawValue,
                by: params.by.rawValue
            )
            try call(transfer, in: params.room, for: caller, at: now)
        default:
            try changeRoles(request, for: caller, at: now)
        }
    }

    private mutating func changeRoles(
        _ request: IPCRequest,
        for caller: Caller,
        at now: Instant
    ) throws(IPCError) {
        switch request.method {
        case RoleChange.name:
            try change(request.params(RoleChange.Params.self), for: caller, at: now)
        case RoleAccept.name, RoleDecline.name:
            let params = try request.params(RoleAnswer.self)
            let answer = Room.Call.answerRoleRequest(
                params.request.rawValue,
                of: params.participant.rawValue,
                accept: request.method == RoleAccept.name
            )
            try call(answer, in: params.room, for: caller, at: now)
        case RoleChangeAll.name:
            let params = try request.params(RoleChangeAll.Params.self)
            let change = Room.Call.changeRoles(
                to: params.role.rawValue,
                from: params.from?.map(\.rawValue),
                by: params.by?.rawValue
            )
            try call(change, in: params.room, for: caller, at: now)
        default:
            try moveFloor(request, for: caller, at: now)
        }
    }

    private mutating func moveFloor(
        _ request: IPCRequest,
        for caller: Caller,
        at now: Instant
    ) throws(IPCError) {
        switch request.method {
        case FloorRequest.name, FloorCancel.name, FloorFinish.name:
            let params = try request.params(ParticipantOnly.self)
            let step: Room.FloorStep =
                switch request.method {
                case FloorRequest.name: .request
                case FloorCancel.name: .cancel
                default: .finish
                }
            let floor = Room.Call.floor(step, params.participant.rawValue, by: nil)
            try call(floor, in: params.room, for: caller, at: now)
        case FloorGrant.name, FloorDeny.name, FloorRelease.name:
            let params = try request.params(ParticipantByParticipant.self)
            let step: Room.FloorStep =
                switch request.method {
                case FloorGrant.name: .grant
                case FloorDeny.name: .deny
                default: .release
                }
            let floor = Room.Call.floor(
                step,
                params.participant.rawValue,
                by: params.by?.rawValue
            )
            try call(floor, in: params.room, for: caller, at: now)
        default:
            try record(request, for: caller, at: now)
        }
    }

    private mutating func drop(
        _ params: ParticipantDrop.Params,
        for caller: Caller,
        at now: Instant
    ) throws(IPCError) {
        let ids = params.participants.map(\.rawValue)
        let drop = Room.Call.drop(
            ids,
            by: params.by?.rawValue,
            reason: params.reason?.rawValue ?? Room.EndReason.dropped
        )
        let outcome = try apply(drop, in: params.room)
        guard case .dropped(let dropped) = outcome.result else { return }
        for id in dropped { rooms[params.room.rawValue]?.forget(id) }
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

    private mutating func change(
        _ params: RoleChange.Params,
        for caller: Caller,
        at now: Instant
    ) throws(IPCError) {
        let change = Room.Call.changeRole(
            params.participant.rawValue,
            to: params.role.rawValue,
            force: params.force ?? false,
            by: params.by?.rawValue
        )
        try call(change, in: params.room, for: caller, at: now) { outcome, _ in
            guard case .requested(let request) = outcome.result else { return nil }
            return IPCReply.encoded(
                id: caller.request,
                result: RoleChange.Result(request: RoleRequestID(request))
            )
        }
    }

    private mutating func update(
        _ params: RoomUpdate.Params,
        for caller: Caller,
        at now: Instant
    ) throws(IPCError) {
        let entry = try entry(params.room)
        let merged = params.settings.map(entry.settings.merging)
        if let merged { try checkRoles(of: merged) }
        let update = Room.Call.update(
            merged.map(Room.Settings.init),
            by: params.by?.rawValue
        )
        let outcome = try apply(update, in: params.room)
        let name = params.room.rawValue
        if let merged { rooms[name]?.settings = merged }
        if let custom = params.custom { rooms[name]?.custom = custom.value }
        conclude(outcome, in: name, at: now) { plane in
            guard let room = plane.show(name) else { return .none }
            return .written(
                caller.connection,
                IPCReply.encoded(id: caller.request, result: room)
            )
        }
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
