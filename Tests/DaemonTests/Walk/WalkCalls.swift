import JSON
import TestSupport

/// Generator of calls: of a few people in a few rooms, most of them sensible, a third refused.
struct WalkCalls {
    private static let roomNames = ["r0", "r1", "r2"]
    private static let people = ["p0", "p1", "p2", "p3", "p4", "p5"]
    private static let roles = ["moderator", "participant", "participant", "viewer", "singer"]
    private static let modes = [
        "SEND_AND_RECV", "SEND_AND_RECV", "RECV_ONLY", "SIGNALLING_ONLY", "CONFERENCE", "VIEWER",
    ]

    /// Role lists for settings: names of roles mean the same in most rooms.
    private static let roleLists: [JSON] = [
        [
            ["name": "participant", "publish": ["audio": true, "video": true, "screen": true]],
            ["name": "viewer", "permissions": ["pin", "approve"]],
            [
                "name": "singer", "publish": ["audio": ["maxBitrate": 32_000]],
                "permissions": ["mute", "floor", "changeRole", "lock"],
            ],
        ],
        [
            ["name": "moderator", "publish": ["audio": true, "video": true]],
            [
                "name": "participant", "publish": ["audio": true, "video": true],
                "permissions": ["unpublish", "mode", "update"],
            ],
            ["name": "viewer", "subscribe": ["roles": ["moderator", "singer"]]],
            ["name": "singer", "publish": ["audio": true, "screen": true]],
        ],
        [
            [
                "name": "participant",
                "publish": ["video": true, "screen": ["maxWidth": 1_280, "maxHeight": 720]],
            ],
            ["name": "singer", "subscribe": ["roles": ["moderator"]]],
            [
                "name": "moderator", "publish": ["audio": true, "video": true, "screen": true],
                "permissions": ["mute", "lock", "floor", "approve", "state"],
            ],
            ["name": "viewer"],
        ],
    ]

    private var random: SeededRandom
    private var lastID: Int64 = 0

    init(seed: UInt64) { random = SeededRandom(seed: seed) }

    mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &random) }

    mutating func isOne(in number: Int) -> Bool { below(number) == 0 }

    mutating func pick<T>(_ list: [T], or other: T) -> T {
        list.randomElement(using: &random) ?? other
    }

    /// Returns the next call, chosen by the state of the model's rooms.
    mutating func next(_ server: ReferenceServer) -> ReferenceCall {
        let name = pick(Self.roomNames, or: "")
        lastID += 1
        guard let room = server.rooms[name], !isOne(in: 40) else {
            return call(
                isOne(in: 12) ? "room.get" : "room.create",
                [
                    "room": .string(name), "settings": settings(isNew: true),
                ]
            )
        }
        var (method, params) = make(room)
        if isOne(in: 80) { params["surplus"] = 1 }
        if method == "room.list" { return call(method, [:]) }
        params["room"] = isOne(in: 200) ? "nowhere" : .string(name)
        return call(method, params)
    }

    private func call(_ method: String, _ params: [String: JSON]) -> ReferenceCall {
        var params = params
        if method == "room.get" { params["settings"] = nil }
        return ReferenceCall(id: lastID, method: method, params: params)
    }

    private mutating func make(_ room: ReferenceRoom) -> (String, [String: JSON]) {
        // An ended room makes place for another.
        if room.state == "ended", isOne(in: 6) { return ("room.close", [:]) }
        if room.people.count < 2 || room.moderators.isEmpty, isOne(in: 2) {
            if room.isLocked, isOne(in: 2) { return ("room.unlock", [:]) }
            return room.people.count > 4 ? ("room.close", [:]) : join(room)
        }
        switch below(100) {
        case 0..<9: return join(room)
        case 9..<11: return ("participant.leave", ["participant": person(room)])
        case 11..<24: return ("transport.offer", offer(room))
        case 24: return closing(room)
        case 25..<29: return ending(room)
        case 29..<43 where room.streams.isEmpty && !isOne(in: 4):
            return ("transport.offer", offer(room))
        case 29..<38: return subscription(room)
        case 38..<43: return stream(room)
        case 43..<57 where room.mode != "lecture" && !isOne(in: 8): return mute(room)
        case 43..<57: return floor(room)
        case 57..<66: return role(room)
        case 66..<72: return message(room)
        case 72..<76: return pin(room)
        case 76..<81: return knock(room)
        case 81..<91: return mute(room)
        case 91..<94: return door(room)
        case 94..<96: return mode(room)
        case 96: return entry(room)
        default: return update(room)
        }
    }

    /// Returns a participant who is present, or sometimes absent.
    mutating func person(_ room: ReferenceRoom) -> JSON {
        if isOne(in: 12) { return .string(pick(Self.people + ["nobody"], or: "")) }
        return .string(pick(room.people.map(\.id), or: "nobody"))
    }

    /// Adds `by`: mostly a participant with the permission, or none.
    mutating func by(_ room: ReferenceRoom, _ params: [String: JSON]) -> [String: JSON] {
        var params = params
        switch below(20) {
        case 0..<8: params["by"] = nil
        case 8..<15: params["by"] = .string(pick(room.moderators.sorted(), or: "p0"))
        default: params["by"] = person(room)
        }
        return params
    }

    /// Adds `by`, sometimes: the participant itself, or another.
    mutating func own(_ params: [String: JSON]) -> [String: JSON] {
        guard isOne(in: 4) else { return params }
        var params = params
        let other = JSON.string(pick(Self.people, or: ""))
        params["by"] = isOne(in: 3) ? other : params["participant"] ?? other
        return params
    }

    private mutating func join(_ room: ReferenceRoom) -> (String, [String: JSON]) {
        var params: [String: JSON] = ["participant": .string(pick(Self.people, or: ""))]
        if !isOne(in: 3) { params["role"] = .string(pick(Self.roles, or: "")) }
        if room.moderators.isEmpty, !isOne(in: 3) { params["role"] = "moderator" }
        if isOne(in: 40) { params["role"] = "king" }
        if isOne(in: 3) { params["mode"] = .string(pick(Self.modes, or: "")) }
        if isOne(in: 2) { params["name"] = .string("N\(below(4))") }
        if isOne(in: 5) { params["custom"] = ["k": .integer(Int64(below(9)))] }
        if isOne(in: 9) { params["ifPresent"] = isOne(in: 3) ? "takeover" : "refuse" }
        if isOne(in: 4) { params["snapshot"] = .bool(isOne(in: 4)) }
        return ("participant.join", params)
    }

    mutating func settings(isNew: Bool) -> JSON {
        var settings: [String: JSON] = [:]
        let modes = [
            "group", "group", "lecture", "lecture", "single_host", "single_host_audio_only",
        ]
        if isNew || isOne(in: 12) { settings["mode"] = .string(pick(modes, or: "")) }
        if isOne(in: 3) { settings["knock"] = .bool(isOne(in: 2)) }
        if isOne(in: 3) { settings["roles"] = pick(Self.roleLists, or: []) }
        if isOne(in: 6) { settings["maxParticipants"] = .integer(Int64(3 + below(4))) }
        if isOne(in: 5) { settings["maxActiveTalkers"] = .integer(Int64(1 + below(4))) }
        if isOne(in: 5) { settings["strictPins"] = .bool(isOne(in: 2)) }
        if isOne(in: 6) { settings["protectedRoles"] = isOne(in: 2) ? ["singer"] : [] }
        if isOne(in: 8) { settings["strictModeVocabulary"] = .bool(isOne(in: 4)) }
        if isOne(in: 5) { settings["maxHosts"] = .integer(Int64(1 + below(2))) }
        if isOne(in: 6) { settings["roleRequestSeconds"] = .integer(Int64(1 + below(3))) }
        if isOne(in: 3) {
            settings["emptySeconds"] = isOne(in: 4) ? .null : .integer(Int64(1 + below(3)))
        }
        if isOne(in: 3) {
            settings["disconnectedSeconds"] = isOne(in: 4) ? .null : .integer(Int64(1 + below(3)))
        }
        return .object(settings)
    }

    private mutating func update(_ room: ReferenceRoom) -> (String, [String: JSON]) {
        if room.isLiveEvent, isOne(in: 2) {
            let next = ["created": "ready", "ready": "ongoing"][room.state] ?? "ended"
            let states = [next, next, next, "created", "ready", "ongoing", "ended"]
            return ("room.setState", by(room, ["state": .string(pick(states, or: ""))]))
        }
        var params: [String: JSON] = [:]
        if isOne(in: 2) { params["custom"] = ["c": .integer(Int64(below(9)))] }
        if !isOne(in: 4) { params["settings"] = settings(isNew: false) }
        return ("room.update", by(room, params))
    }

    /// Returns a call that reads or changes what is said of participants and subscriptions.
    private mutating func entry(_ room: ReferenceRoom) -> (String, [String: JSON]) {
        switch below(4) {
        case 0: return ("participant.get", ["participant": person(room)])
        case 1:
            var params: [String: JSON] = [:]
            if isOne(in: 2) { params["role"] = .string(pick(Self.roles, or: "")) }
            if isOne(in: 2) { params["state"] = isOne(in: 2) ? "awaited" : "joined" }
            return ("participant.list", params)
        case 2: return ("subscription.list", ["participant": person(room)])
        default:
            var params = own(["participant": person(room)])
            if isOne(in: 2) { params["name"] = isOne(in: 3) ? .null : .string("N\(below(4))") }
            if isOne(in: 2) {
                params["custom"] = isOne(in: 3) ? .null : ["k": .integer(Int64(below(9)))]
            }
            return ("participant.update", params)
        }
    }

    private mutating func closing(_ room: ReferenceRoom) -> (String, [String: JSON]) {
        if isOne(in: 2) { return (isOne(in: 2) ? "room.list" : "stream.list", [:]) }
        return ("room.close", by(room, isOne(in: 2) ? ["detail": "over"] : [:]))
    }

    private mutating func ending(_ room: ReferenceRoom) -> (String, [String: JSON]) {
        if isOne(in: 2) { return ("transport.close", own(["participant": person(room)])) }
        var ids: [JSON] = []
        for _ in 0...below(2) {
            let id = person(room)
            if !ids.contains(id) { ids.append(id) }
        }
        let params: [String: JSON] = ["participants": .array(ids)]
        return (
            "participant.drop",
            by(room, isOne(in: 3) ? params.merging(["detail": "x"]) { $1 } : params)
        )
    }
}
