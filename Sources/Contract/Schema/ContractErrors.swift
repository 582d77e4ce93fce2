import JSON

/// Condition under which a call is refused, as `x-errors` of the contract's document lists it.
package struct ContractError: Hashable, Sendable {
    /// Word in `data.reason`; it stands for this condition alone.
    package var reason: String
    /// Values of `code`; several where vendors have a number for each method.
    package var codes: [Int]
    package var text: String
    /// Members of `data` that tell more, such as which limit is reached.
    package var data: [String]

    fileprivate init(_ reason: String, _ codes: Int..., text: String, data: [String] = []) {
        self.reason = reason
        self.codes = codes
        self.text = text
        self.data = data
    }

    /// Entry of `x-errors`.
    var json: JSON {
        [
            "reason": .string(reason), "codes": .array(codes.map { .integer(Int64($0)) }),
            "description": .string(text), "data": .array(data.map(JSON.string)),
        ]
    }
}

/// The contract's errors.
package enum ContractErrors {
    package static let all = requests + objects + rights + limits + states + floor + outputs

    /// Whether a refusal with this code may have this reason.
    package static func contains(code: Int, reason: String) -> Bool {
        all.contains { $0.reason == reason && $0.codes.contains(code) }
    }

    private static let requests: [ContractError] = [
        .init("parse-error", -32700, text: "The line is not JSON."),
        .init("line-too-long", -32700, text: "The line is too long; the connection ends."),
        .init(
            "invalid-request",
            -32600,
            text: "No JSON-RPC 2.0 request, a batch, or without `id`."
        ),
        .init("no-such-method", -32601, text: "The contract has no such method."),
        .init("invalid-params", -32602, text: "`parameter` is invalid.", data: ["parameter"]),
        .init("internal-error", -32603, text: "A defect of sfud."),
        .init("draining", 4503, text: "The server accepts no new rooms."),
        .init("upgrade-refused", 4505, text: "The program is not replaced.", data: ["detail"]),
        .init(
            "outcome-unknown",
            4504,
            text: "Node `node` was lost with the call; it may have been executed.",
            data: ["node"]
        ),
        .init("registry-away", 4506, text: "The nodes' registry cannot be reached."),
        .init("node-unreachable", 4506, text: "Node `node` cannot be reached.", data: ["node"]),
    ]

    private static let objects: [ContractError] = [
        .init("no-such-room", 4004, text: "There is no such room."),
        .init(
            "no-such-participant",
            4005,
            5045,
            5126,
            text: "The participant is not in the room; `parameter` is `by` if that names it.",
            data: ["participant", "parameter"]
        ),
        .init("no-such-stream", 4006, text: "The room has no such stream."),
        .init("no-such-subscription", 4007, text: "The room has no such subscription."),
        .init("no-such-transport", 4008, text: "The participant has no such transport."),
        .init(
            "already-exists",
            4009,
            text: "It exists already: `room`, `participant` or `subscription` names it.",
            data: ["room", "participant", "subscription"]
        ),
        .init("no-such-mid", 4011, text: "No slot of that kind has this mid.", data: ["mid"]),
        .init("no-such-tap", 4012, text: "The room has no such tap."),
        .init("no-such-recording", 4013, text: "It never was, or is no longer remembered."),
        .init("no-such-track", 4091, text: "The stream has no track of that kind."),
        .init("no-such-request", 4091, text: "The request is not open, or somebody else's."),
        .init("role-invalid", 4044, text: "The room has no role `role`.", data: ["role"]),
        .init("invalid-role", 4044, text: "`from` names an unknown role.", data: ["role"]),
    ]

    private static let rights: [ContractError] = [
        .init(
            "not-permitted",
            4010,
            5001,
            5002,
            5003,
            5004,
            5005,
            5006,
            5007,
            5008,
            5009,
            5010,
            5011,
            5012,
            5115,
            5116,
            text: "The role of `by` lacks `permission`, or `by` still awaits approval.",
            data: ["permission"]
        ),
        .init("not-own", 4010, text: "`by` may make this call for itself only."),
        .init("not-moderator", 5085, text: "`by` is no moderator."),
        .init("already-moderator", 5045, text: "The participant is a moderator already."),
        .init("transfer-to-self", 5045, text: "`by` cannot hand its role over to itself."),
        .init(
            "role-may-not-watch",
            4010,
            text: "`role` may not watch the other's.",
            data: ["role"]
        ),
        .init("role-may-not-publish", 4010, text: "`role` may publish nothing.", data: ["role"]),
        .init("address-not-allowed", 4010, text: "The address is in none of the allowed networks."),
        .init(
            "awaits-approval",
            4010,
            5045,
            5126,
            text: "The participant is not let in yet."
        ),
        .init("not-awaited", 4091, text: "The participant does not wait to be let in."),
    ]

    private static let limits: [ContractError] = [
        .init(
            "limit-reached",
            4029,
            text: "The limit that `limit` names is reached.",
            data: ["limit", "value", "load"]
        ),
        .init(
            "pin-limit",
            5126,
            text: "More pins than talkers less one.",
            data: ["limit", "value"]
        ),
        .init("no-free-slot", 4030, text: "No slot is free for any kind of the stream."),
        .init("slot-in-use", 4030, text: "Slot `mid` carries another subscription.", data: ["mid"]),
        .init("slot-follows-talkers", 4030, text: "Slot `mid` follows the talkers.", data: ["mid"]),
    ]

    private static let states: [ContractError] = [
        .init("wrong-state", 4091, text: "The room's state cannot change to that one."),
        .init("event-not-open", 4091, text: "The live event is not ready yet."),
        .init("event-ended", 4091, text: "The live event has ended."),
        .init("signalling-only", 4091, text: "The participant's mode is without media."),
        .init("mode-may-not-publish", 4091, text: "The participant's mode publishes nothing."),
        .init("mode-vocabulary", 4091, text: "The room has seen the other names of modes."),
        .init("mode-is-fixed", 4091, text: "A room's mode never changes."),
        .init("role-in-use", 4091, text: "Somebody has `role`, so it must stay.", data: ["role"]),
        .init("role-clash", 4091, text: "The new role is one of `from`."),
        .init("room-locked", 4091, text: "The room admits nobody new."),
        .init("follows-talkers", 4091, text: "The subscription follows the talkers."),
        .init("room-already-locked", 5117, text: "The room is locked already."),
        .init("room-not-locked", 5118, text: "The room is not locked."),
        .init("room-already-muted", 5038, text: "The room is muted already."),
        .init("room-not-muted", 5039, text: "The room is not muted."),
        .init(
            "in-process",
            5033,
            5035,
            5037,
            5040,
            5041,
            5043,
            5047,
            5049,
            5121,
            5123,
            text: "The method `operation` has not taken effect yet.",
            data: ["operation"]
        ),
        .init("bad-sdp", 4022, text: "The offer cannot be answered.", data: ["line", "cause"]),
    ]

    private static let floor: [ContractError] = [
        .init("no-floor", 5082, text: "The room is no lecture."),
        .init("floor-not-needed", 5003, text: "A moderator needs no floor."),
        .init("floor-already-requested", 5042, text: "The participant has asked already."),
        .init("floor-already-granted", 5042, 5044, 5048, text: "The participant has the floor."),
        .init("no-floor-request", 5042, 5045, 5069, text: "The participant has no open request."),
        .init("floor-held", 5046, text: "Another has the floor."),
        .init("floor-not-held", 5042, 5050, text: "The participant does not have the floor."),
        .init("floor-released", 5069, text: "The floor is being released."),
    ]

    private static let outputs: [ContractError] = [
        .init("no-recorder", 4091, text: "This daemon does not record."),
        .init("no-streamer", 4091, text: "This daemon does not stream."),
        .init("no-taps", 4091, text: "This daemon sends no plain RTP."),
        .init("already-recording", 5034, text: "The room is being recorded already."),
        .init("not-recording", 5036, text: "The room is not being recorded."),
        .init("already-streaming", 5122, text: "The room is streamed to that URL already."),
        .init("not-streaming", 5124, text: "There is no such live stream."),
        .init("invalid-configuration", 5125, text: "`field` is invalid.", data: ["field"]),
        .init("not-implemented", 4501, text: "sfud cannot do what `field` says.", data: ["field"]),
        .init("recording-failed", 4507, text: "The disk refuses the files.", data: ["cause"]),
        .init("streaming-failed", 4508, text: "The server refuses the stream.", data: ["cause"]),
    ]
}
