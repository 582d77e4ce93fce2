import JSON
import Rooms

// Joining, leaving, and admission.
extension ReferenceRoom {
    mutating func carryOutParticipant(
        _ call: ReferenceCall,
        _ before: ReferenceRoom
    ) throws(Refusal) -> JSON {
        switch call.method {
        case "participant.join": return try join(call, before)
        case "participant.leave":
            let person = try target(call)
            leave(person, because: "left", telling: "left")
            return Self.fenced
        case "participant.drop": return try drop(call)
        case "participant.approve", "participant.deny": return try answerKnock(call, before)
        case "participant.setMode": return try setMode(call, before)
        case "participant.hardMute": return try mute(call, before, muting: true)
        case "participant.hardUnmute": return try mute(call, before, muting: false)
        default: return try transfer(call, before)
        }
    }

    /// Returns a mode by its present name, and whether an old name was used.
    private func mode(_ word: String) throws(Refusal) -> (mode: String, isOld: Bool) {
        let isOld = word == "CONFERENCE" || word == "VIEWER"
        if settings["strictModeVocabulary"] == true, let heardOldNames, heardOldNames != isOld {
            throw Refusal(4091, "mode-vocabulary")
        }
        switch word {
        case "CONFERENCE": return ("SEND_AND_RECV", true)
        case "VIEWER": return ("SIGNALLING_ONLY", true)
        default: return (word, false)
        }
    }

    private mutating func join(
        _ call: ReferenceCall,
        _ before: ReferenceRoom
    ) throws(Refusal) -> JSON {
        let id = call["participant"]
        if let present = person(id) { return try takeOver(present, call, before) }
        let role = call.params["role"]?.word ?? "participant"
        let named = try call.params["mode"].map { word throws(Refusal) in
            try mode(word.word ?? "")
        }
        guard self.role(role) != nil else { throw Refusal(4044, "role-invalid") }
        let isModerator = role == "moderator"
        guard state != "ended" else { throw Refusal(4091, "wrong-state") }
        guard !isLocked || isModerator else { throw Refusal(4091, "room-locked") }
        guard state != "created" || isModerator else { throw Refusal(4091, "wrong-state") }
        guard people.count < number("maxParticipants") ?? .max else {
            throw Refusal(4029, "limit-reached")
        }
        if let named { heardOldNames = heardOldNames ?? named.isOld }
        var person = Person(id: id, role: role, mode: named?.mode ?? "SEND_AND_RECV")
        person.name = call["name"]
        person.custom = call.params["custom"] ?? [:]
        person.isAwaited = knocks && !isModerator
        people.append(person)
        tellArrival(person, rejoined: false)
        return ["state": person.isAwaited ? "awaited" : "joined", "room": shown]
    }

    mutating func tellArrival(_ person: Person, rejoined: Bool) {
        if person.isAwaited {
            tell(
                "participant.awaited",
                to: moderators,
                [
                    "participant": [
                        "participant": .string(person.id), "name": .string(person.name),
                    ]
                ]
            )
        } else {
            tell(
                "participant.joined",
                to: others.subtracting([person.id]),
                ["participant": shown(person), "rejoined": .bool(rejoined)]
            )
        }
    }

    private mutating func takeOver(
        _ present: Person,
        _ call: ReferenceCall,
        _ before: ReferenceRoom
    ) throws(Refusal) -> JSON {
        let named = try call.params["mode"].map { word throws(Refusal) in
            try mode(word.word ?? "")
        }
        if let named { heardOldNames = heardOldNames ?? named.isOld }
        change(present.id) { person in
            person.transports = []
            person.name = call.params["name"]?.word ?? person.name
            person.mode = named?.mode ?? person.mode
            person.custom = call.params["custom"] ?? person.custom
        }
        settle(from: before, because: "takeover")
        if let person = person(present.id), !person.isAwaited {
            tellArrival(person, rejoined: true)
        }
        return ["state": present.isAwaited ? "awaited" : "joined", "room": shown]
    }

    /// Removes a participant; `reason` is that of the streams, `word` that of the participant.
    mutating func leave(_ person: Person, because reason: String, telling word: String?) {
        let before = self
        people.removeAll { $0.id == person.id }
        told.append([])
        freeFloor(of: person)
        unpin([person.id], by: nil)
        requests[person.id] = nil
        requests = requests.filter { $0.value.by != person.id }
        messages.forget(person.id)
        subscriptions.removeAll { $0.participant == person.id }
        settle(from: before, because: reason)
        guard let word else { return }
        let to = person.isAwaited ? moderators.union(reason == "dropped" ? [person.id] : []) : nil
        tell(
            "participant.left",
            to: to,
            ["participant": .string(person.id), "reason": .string(word)]
        )
    }

    private mutating func drop(_ call: ReferenceCall) throws(Refusal) -> JSON {
        try check(call, "drop", 5116)
        let reason = call.params["reason"]?.word ?? "dropped"
        var results: [JSON] = []
        for id in call.params["participants"]?.list ?? [] {
            let person = person(id.word ?? "")
            if let person { leave(person, because: "dropped", telling: reason) }
            results.append(["participant": id, "dropped": .bool(person != nil)])
        }
        return ["results": .array(results), "fence": "$fence"]
    }

    private mutating func answerKnock(
        _ call: ReferenceCall,
        _ before: ReferenceRoom
    ) throws(Refusal) -> JSON {
        try check(call, "approve")
        let person = try target(call)
        guard person.isAwaited else { throw Refusal(4091, "wrong-state") }
        let to = moderators.subtracting([call["by"]]).union([person.id])
        if call.method == "participant.deny" {
            leave(person, because: "denied", telling: nil)
            tell(
                "participant.denied",
                to: to,
                ["participant": .string(person.id), "by": call.params["by"]]
            )
            return Self.fenced
        }
        guard !isLocked else { throw Refusal(4091, "room-locked") }
        change(person.id) { $0.isAwaited = false }
        guard let admitted = self.person(person.id) else { return [:] }
        tell(
            "participant.approved",
            to: to,
            ["participant": shown(admitted), "by": call.params["by"]]
        )
        tellArrival(admitted, rejoined: false)
        told.append([])
        settle(from: before, because: "")
        return [:]
    }

    private mutating func setMode(
        _ call: ReferenceCall,
        _ before: ReferenceRoom
    ) throws(Refusal) -> JSON {
        let by = call.params["by"]?.word
        if by != call["participant"] { try check(call, "mode") }
        let person = try target(call)
        if by == person.id, ["SEND_AND_RECV", "CONFERENCE"].contains(call["mode"]) {
            let publish = role(person.role)?["publish"]?.members.values
            guard publish?.contains(true) == true else { throw Refusal(4010, "not-permitted") }
        }
        let named = try mode(call["mode"])
        heardOldNames = heardOldNames ?? named.isOld
        guard named.mode != person.mode else { return Self.fenced }
        change(person.id) { changed in
            changed.mode = named.mode
            if named.mode == "SIGNALLING_ONLY" { changed.transports = [] }
        }
        tell(
            "participant.modeChanged",
            to: audience(of: person),
            [
                "participant": .string(person.id), "mode": .string(named.mode),
                "by": call.params["by"],
            ]
        )
        told.append([])
        if named.mode == "SIGNALLING_ONLY" { unpin([person.id], by: nil) }
        if named.mode != "SEND_AND_RECV" { freeFloor(of: person) }
        settle(from: before, because: "mode-changed")
        return Self.fenced
    }

    private mutating func mute(
        _ call: ReferenceCall,
        _ before: ReferenceRoom,
        muting: Bool
    ) throws(Refusal) -> JSON {
        let kinds = (call.params["media"]?.list ?? []).compactMap(\.word)
        let codes = muting ? ["audio": 5009, "video": 5011] : ["audio": 5010, "video": 5012]
        try check(call, "mute", codes[kinds.first ?? ""] ?? 0)
        let person = try target(call, or: 5045)
        let changed = ["audio", "video"].filter {
            kinds.contains($0) && person.hardMuted.contains($0) != muting
        }
        change(person.id) { person in
            if muting {
                person.hardMuted.formUnion(changed)
            } else {
                person.hardMuted.subtract(changed)
            }
        }
        if !changed.isEmpty {
            tell(
                muting ? "participant.hardMuted" : "participant.hardUnmuted",
                to: [person.id],
                [
                    "participant": .string(person.id), "media": .words(changed),
                    "by": call.params["by"],
                ]
            )
            told.append([])
            settle(from: before, because: "")
        }
        return muting ? Self.fenced : [:]
    }

    private mutating func transfer(
        _ call: ReferenceCall,
        _ before: ReferenceRoom
    ) throws(Refusal) -> JSON {
        guard let by = person(call["by"]), by.role == "moderator" else {
            throw Refusal(5085, "not-permitted")
        }
        let person = try target(call, or: 5045)
        guard person.role != "moderator", !person.isAwaited else {
            throw Refusal(5045, "no-such-participant")
        }
        tell(
            "moderator.transferred",
            to: [by.id, person.id],
            ["from": .string(by.id), "to": .string(person.id)]
        )
        let moves = [(person, "moderator"), (by, "participant")]
        setRoles(moves, by: call.params["by"], from: before)
        return Self.fenced
    }
}
