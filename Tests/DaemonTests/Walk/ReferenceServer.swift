import JSON
import Rooms

/// A call to the model; names that sfud chose are the model's words for them.
struct ReferenceCall {
    var id: Int64
    var method: String
    var params: [String: JSON]
    /// Time of arrival, in nanoseconds.
    var time: Int64 = 0

    subscript(key: String) -> String { params[key]?.word ?? "" }
}

/// The machine-readable part of a refusal.
struct Refusal: Error, Equatable {
    var code: Int
    var reason: String

    init(_ code: Int, _ reason: String) {
        self.code = code
        self.reason = reason
    }
}

/// Expected answer to a call.
struct ReferenceAnswer {
    var outcome: Result<JSON, Refusal>
    var told: [[ReferenceRoom.Told]] = []
    /// Whether it must not be answered before the workers have passed its fence.
    var isInProcess = false
    /// Whether its events come before its reply.
    var isToldFirst = false
}

/// Reference model of all rooms, as the contract describes them.
struct ReferenceServer {
    private(set) var rooms: [String: ReferenceRoom] = [:]
    /// Event counters of ended rooms; a new room of that name continues them.
    private var seqs: [String: Int64] = [:]
    private let names = ReferenceRoom.Names()

    mutating func take(_ call: ReferenceCall) -> ReferenceAnswer {
        do throws(Refusal) {
            let named = (call.params["subscriptions"]?.list ?? []).map { $0["stream"]?.word }
            guard call.params["surplus"] == nil, Set(named).count == named.count else {
                throw Refusal(-32602, "invalid-params")
            }
            switch call.method {
            case "room.create": return try create(call)
            case "room.list":
                let shown = rooms.values.sorted { $0.name < $1.name }.map(\.summary)
                return ReferenceAnswer(outcome: .success(["rooms": .array(shown)]))
            default: return try takeInRoom(call)
            }
        } catch {
            return ReferenceAnswer(outcome: .failure(error))
        }
    }

    /// Records that a call has been answered: it is no longer in process.
    mutating func settled(_ call: ReferenceCall) {
        rooms[call["room"]]?.inProcess[call.id] = nil
    }

    /// Ends role requests that were not answered in time, the waiting for hosts, and rooms that
    /// have been empty for too long; returns what they tell.
    mutating func expire(at time: Int64) -> [String: [[ReferenceRoom.Told]]] {
        var told: [String: [[ReferenceRoom.Told]]] = [:]
        for name in rooms.keys {
            let expired = rooms[name]?.expireRequests(at: time) ?? []
            let seated = rooms[name]?.expireHosts(at: time) ?? []
            let runs = (expired.isEmpty ? [] : [expired]) + seated
            if !runs.isEmpty { told[name] = runs }
        }
        for (name, before) in rooms {
            guard let since = before.emptySince, let seconds = before.number("emptySeconds"),
                since + Int64(seconds) * 1_000_000_000 <= time
            else { continue }
            var room = before
            room.told = []
            room.tell("room.closed", ["reason": "empty"])
            seqs[name] = room.seq
            rooms[name] = nil
            told[name] = room.told
        }
        return told
    }

    private mutating func create(_ call: ReferenceCall) throws(Refusal) -> ReferenceAnswer {
        let name = call["room"]
        guard rooms[name] == nil else { throw Refusal(4009, "already-exists") }
        let settings = ReferenceRoom.settings(call.params["settings"] ?? [:])
        var room = ReferenceRoom(name: name, settings: settings, state: "", names: names)
        room.state = room.isLiveEvent ? "created" : "ongoing"
        room.seq = seqs[name] ?? 0
        room.emptySince = call.time
        room.tell(
            "room.created",
            ["state": .string(room.state), "settings": .object(room.settings), "custom": [:]]
        )
        let answer = ReferenceAnswer(outcome: .success(room.shown), told: room.told)
        rooms[name] = room
        return answer
    }

    /// Returns the participant on whose behalf a call is made.
    private static func actor(_ call: ReferenceCall) -> JSON? {
        let own = [
            "floor.request", "floor.cancel", "floor.finish", "role.accept", "role.decline",
            "participant.leave",
        ]
        return own.contains(call.method) ? call.params["participant"] : call.params["by"]
    }

    private mutating func takeInRoom(_ call: ReferenceCall) throws(Refusal) -> ReferenceAnswer {
        guard let before = rooms[call["room"]] else { throw Refusal(4004, "no-such-room") }
        var room = before
        room.told = []
        room.actor = Self.actor(call)
        room.now = call.time
        if call.method.hasPrefix("floor."), room.mode != "lecture" {
            throw Refusal(5082, "no-floor")
        }
        if case .string(let by)? = call.params["by"], room.person(by) == nil {
            throw Refusal(4005, "no-such-participant")
        }
        let result = try room.carryOut(call, before)
        room.emptySince = room.people.isEmpty ? room.emptySince ?? call.time : nil
        let isInProcess = room.inProcess[call.id] != nil
        if call.method == "room.close" {
            seqs[room.name] = room.seq
            rooms[room.name] = nil
        } else {
            rooms[room.name] = room
        }
        return ReferenceAnswer(
            outcome: .success(result),
            told: room.told.filter { !$0.isEmpty }.map { $0.map(room.completed) },
            isInProcess: isInProcess,
            isToldFirst: call.method == "room.setState" && call["state"] == "ended"
        )
    }
}

extension ReferenceRoom {
    static let fenced: JSON = ["fence": "$fence"]

    mutating func carryOut(
        _ call: ReferenceCall,
        _ before: ReferenceRoom
    ) throws(Refusal) -> JSON {
        switch call.method.prefix(while: { $0 != "." }) {
        case "room": try carryOutRoom(call, before)
        case "participant", "moderator": try carryOutParticipant(call, before)
        case "role": try carryOutRole(call, before)
        case "floor": try carryOutFloor(call, before)
        case "pin": try changePins(call)
        case "message": try carryOutMessage(call)
        case "transport": try carryOutTransport(call, before)
        default: try carryOutStream(call, before)
        }
    }

    /// Refuses a call whose `by` lacks the permission.
    func check(
        _ call: ReferenceCall,
        _ permission: String,
        _ code: Int = 4010
    ) throws(Refusal) {
        guard let by = person(call["by"]) else { return }
        guard permits(by, permission) else { throw Refusal(code, "not-permitted") }
    }

    /// Returns the participant that a call is about.
    func target(_ call: ReferenceCall, or code: Int = 4005) throws(Refusal) -> Person {
        guard let person = person(call["participant"]) else {
            throw Refusal(code, "no-such-participant")
        }
        return person
    }

    private mutating func carryOutRoom(
        _ call: ReferenceCall,
        _ before: ReferenceRoom
    ) throws(Refusal) -> JSON {
        let by = call.params["by"]
        switch call.method {
        case "room.get": return shown
        case "room.close": return try close(call, before)
        case "room.setState": return try setState(call, before)
        case "room.update": return try update(call, before)
        case "room.lock":
            try check(call, "lock", 5115)
            guard !isLocked else { throw Refusal(5117, "room-already-locked") }
            isLocked = true
            tell("room.locked", ["by": by])
            return [:]
        case "room.unlock":
            try check(call, "lock", 5115)
            guard isLocked else { throw Refusal(5118, "room-not-locked") }
            isLocked = false
            tell("room.unlocked", ["by": by])
            told.append([])
            for person in people where person.isAwaited && person.role == "moderator" {
                leaveHall(person, by: by)
            }
            settle(from: before, because: "")
            return [:]
        default: return try setHardMute(call, to: call.method == "room.hardMute", before)
        }
    }

    private mutating func setHardMute(
        _ call: ReferenceCall,
        to muted: Bool,
        _ before: ReferenceRoom
    ) throws(Refusal) -> JSON {
        try check(call, "mute", muted ? 5001 : 5002)
        guard !inProcess.values.contains(call.method) else {
            throw Refusal(muted ? 5037 : 5040, "in-process")
        }
        guard isHardMuted != muted else {
            throw muted ? Refusal(5038, "room-already-muted") : Refusal(5039, "room-not-muted")
        }
        isHardMuted = muted
        sparedPerson = call.params["by"]?.word
        sparedRole = call.params["sparing"] == "moderators" ? "moderator" : nil
        inProcess[call.id] = call.method
        tell(muted ? "room.hardMuted" : "room.hardUnmuted", ["by": call.params["by"]])
        told.append([])
        settle(from: before, because: "")
        return muted ? Self.fenced : [:]
    }

    private mutating func close(
        _ call: ReferenceCall,
        _ before: ReferenceRoom
    ) throws(Refusal) -> JSON {
        try check(call, "close", 5116)
        people = []
        settle(from: before, because: "room-closed")
        told.append([])
        for person in before.people {
            alsoTell(
                "participant.left",
                to: [person.id],
                [
                    "participant": .string(person.id), "reason": "room-closed",
                    "detail": call.params["detail"],
                ]
            )
        }
        tell(
            "room.closed",
            ["reason": "closed", "detail": call.params["detail"], "by": call.params["by"]]
        )
        return Self.fenced
    }

    private mutating func setState(
        _ call: ReferenceCall,
        _ before: ReferenceRoom
    ) throws(Refusal) -> JSON {
        try check(call, "state")
        let steps = ["created ready", "ready ongoing"]
        let next = call["state"]
        let isStep = steps.contains("\(state) \(next)") || (next == "ended" && state != "ended")
        guard isLiveEvent, isStep else { throw Refusal(4091, "wrong-state") }
        let data: [String: JSON?] = [
            "state": .string(next), "previous": .string(state), "current": .string(next),
            "by": call.params["by"],
        ]
        tell("room.stateChanged", data)
        let waiting = people.filter(\.isAwaited).map(\.id)
        if next == "ended", !waiting.isEmpty {
            tell("room.stateChanged", to: Set(waiting), data)
        }
        state = next
        if state == "ended" {
            for index in people.indices { people[index].transports = [] }
        }
        told.append([])
        settle(from: before, because: "ended")
        return Self.fenced
    }

    private mutating func update(
        _ call: ReferenceCall,
        _ before: ReferenceRoom
    ) throws(Refusal) -> JSON {
        try check(call, "update")
        let merged = Self.settings(call.params["settings"] ?? [:], over: settings)
        guard merged["mode"] == settings["mode"] else { throw Refusal(4091, "mode-is-fixed") }
        settings = merged
        guard people.allSatisfy({ role($0.role) != nil }) else {
            throw Refusal(4091, "role-in-use")
        }
        custom = call.params["custom"] ?? custom
        tell(
            "room.updated",
            ["custom": custom, "settings": .object(settings), "by": call.params["by"]]
        )
        told.append([])
        reviewRequests()
        let limit = max(0, (number("maxActiveTalkers") ?? 0) - 1)
        if settings["strictPins"] == true, pins.count > limit {
            unpin(Array(pins.dropFirst(limit)), by: call.params["by"]?.word)
        }
        settle(from: before, because: "role-changed")
        return shown
    }
}
