import Contract
import RTP
import Rooms
import WorkerInterface

extension Method {
    static let participantMethods = [
        Method(ParticipantJoin.self) { plane, params, caller, now throws(IPCError) in
            try plane.join(params, for: caller, at: now)
        },
        Method(ParticipantLeave.self) { plane, params, caller, now throws(IPCError) in
            let leave = Room.Call.leave(participant: params.participant.rawValue)
            try plane.call(leave, in: params.room, for: caller, at: now)
            plane.rooms.entries[params.room.rawValue]?.forget(params.participant.rawValue)
        },
        Method(ParticipantDrop.self) { plane, params, caller, now throws(IPCError) in
            try plane.drop(params, for: caller, at: now)
        },
        Method(ParticipantApprove.self, in: \.room) {
            .answerKnock($0.participant.rawValue, approve: true, by: $0.by?.rawValue)
        },
        Method(ParticipantDeny.self) { plane, params, caller, now throws(IPCError) in
            let id = params.participant.rawValue
            let deny = Room.Call.answerKnock(id, approve: false, by: params.by?.rawValue)
            try plane.call(deny, in: params.room, for: caller, at: now)
            plane.rooms.entries[params.room.rawValue]?.forget(id)
        },
        Method(ParticipantSetMode.self, in: \.room) { params in
            .setMode(
                params.participant.rawValue,
                Room.Mode(params.mode.mode),
                params.mode.isOldName ? .old : .current,
                by: params.by?.rawValue
            )
        },
        Method(ParticipantHardMute.self, in: \.room) { .hardMute($0, on: true) },
        Method(ParticipantHardUnmute.self, in: \.room) { .hardMute($0, on: false) },
    ]
}

extension Room.Call {
    fileprivate static func hardMute(_ params: ParticipantMedia, on: Bool) -> Self {
        .hardMute(
            params.participant.rawValue,
            Set(params.media.map(MediaKind.init)),
            on: on,
            by: params.by?.rawValue
        )
    }
}

extension ControlPlane {
    fileprivate mutating func join(
        _ params: ParticipantJoin.Params,
        for caller: Caller,
        at now: Instant
    ) throws(IPCError) {
        let id = params.participant.rawValue
        var join = Room.Join(participant: id)
        join.name = params.name?.rawValue
        join.role = params.role?.rawValue
        join.mode = params.mode.map { Room.Mode($0.mode) }
        join.vocabulary = params.mode.map { $0.isOldName ? .old : .current }
        let outcome = try apply(.join(join), in: params.room)
        if let custom = params.custom {
            rooms.entries[params.room.rawValue]?.keep(custom.value, for: id)
        }
        conclude(outcome, in: params.room.rawValue, at: now) { plane in
            guard let room = plane.show(params.room.rawValue) else { return .none }
            let state: JoinState = outcome.result == .awaited ? .awaited : .joined
            let result = EncodedJoin(state: state, room: room)
            return .written(
                caller.connection,
                IPCReply.encoded(id: caller.request, result: result)
            )
        }
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
            reason: params.reason?.rawValue ?? Room.EndReason.dropped
        )
        let outcome = try apply(drop, in: params.room)
        guard case .dropped(let dropped) = outcome.result else { return }
        for id in dropped { rooms.entries[params.room.rawValue]?.forget(id) }
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

extension MediaKind {
    init(_ kind: StreamKind) {
        switch kind {
        case .audio: self = .audio
        case .video: self = .video
        }
    }
}
