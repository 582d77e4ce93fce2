import Contract
import JSON
import RTP
import Rooms

extension Method {
    static let roleMethods = [
        Method(RoleChange.self) { plane, params, caller, now throws(IPCError) in
            try plane.change(params, for: caller, at: now)
        },
        Method(RoleAccept.self, in: \.room) { params in
            .answerRoleRequest(
                params.request.rawValue,
                of: params.participant.rawValue,
                accept: true
            )
        },
        Method(RoleDecline.self, in: \.room) { params in
            .answerRoleRequest(
                params.request.rawValue,
                of: params.participant.rawValue,
                accept: false
            )
        },
        Method(RoleChangeAll.self) { plane, params, caller, now throws(IPCError) in
            try plane.changeAll(params, for: caller, at: now)
        },
        Method(RoleRequests.self) { plane, params, caller, now throws(IPCError) in
            try plane.list(params, for: caller, at: now)
        },
        Method(ModeratorTransfer.self, in: \.room) {
            .transfer(to: $0.participant.rawValue, by: $0.by.rawValue)
        },
    ]

    static let floorMethods = [
        Method(FloorRequest.self, in: \.room) { .floor(.request, $0) },
        Method(FloorCancel.self, in: \.room) { .floor(.cancel, $0) },
        Method(FloorFinish.self, in: \.room) { .floor(.finish, $0) },
        Method(FloorGrant.self, in: \.room) { .floor(.grant, $0) },
        Method(FloorDeny.self, in: \.room) { .floor(.deny, $0) },
        Method(FloorRelease.self, in: \.room) { .floor(.release, $0) },
    ]
}

extension Room.Call {
    fileprivate static func floor(_ step: Room.FloorStep, _ params: ParticipantOnly) -> Self {
        .floor(step, params.participant.rawValue, by: nil)
    }

    fileprivate static func floor(
        _ step: Room.FloorStep,
        _ params: ParticipantByParticipant
    ) -> Self {
        .floor(step, params.participant.rawValue, by: params.by?.rawValue)
    }
}

extension ControlPlane {
    fileprivate mutating func change(
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

    fileprivate mutating func changeAll(
        _ params: RoleChangeAll.Params,
        for caller: Caller,
        at now: Instant
    ) throws(IPCError) {
        let change = Room.Call.changeRoles(
            to: params.role.rawValue,
            from: params.from?.map(\.rawValue),
            by: params.by?.rawValue
        )
        let outcome = try apply(change, in: params.room)
        if params.from == nil { log(params, outcome) }
        conclude(outcome, in: params.room.rawValue, at: now) { _ in .fenced(caller) }
    }

    /// Logs that a role was given to everybody, because that includes bots that nobody named.
    private mutating func log(_ params: RoleChangeAll.Params, _ outcome: Room.Outcome) {
        let changed = outcome.change.announcements.count { announcement in
            if case .roleChanged = announcement.news { true } else { false }
        }
        let fields = [
            ("room", params.room.rawValue), ("role", params.role.rawValue),
            ("participants", "\(changed)"),
        ]
        let actor = params.by.map { [("by", $0.rawValue)] } ?? []
        output.append(.log(.info, "role of all changed", fields + actor))
    }

    fileprivate mutating func list(
        _ params: RoleRequests.Params,
        for caller: Caller,
        at now: Instant
    ) throws(IPCError) {
        let room = try entry(params.room).room
        if let participant = params.participant { _ = try member(participant, of: params.room) }
        let requests = room.openRoleRequests(at: now).filter { request in
            params.participant.map { $0.rawValue == request.target } != false
        }
        let page = try Page.numbered(
            requests,
            by: \.number,
            limit: params.limit,
            after: params.after
        ) { JSON.encoded(RoleRequestInfo($0)) }
        answer(EncodedPage(name: "requests", page: page), to: caller, in: room.name, at: now)
    }
}
