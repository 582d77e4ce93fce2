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
            seatWaitingHosts()
            return Self.fenced
        case "participant.drop": return try drop(call)
        case "participant.get": return shown(try target(call))
        case "participant.list": return listParticipants(call)
        case "participant.update": return try updateParticipant(call)
        case "participant.approve", "participant.deny":
            return try each(call, before) { room, call, before throws(Refusal) in
                try room.answerKnock(call, before)
            }
        case "participant.setMode": return try setMode(call, before)
        case "participant.hardMute", "participant.hardUnmute":
            return try each(call, before) { room, call, before throws(Refusal) in
                try room.mute(call, before, muting: call.method == "participant.hardMute")
            }
        default: return try transfer(call, before)
        }
    }

    /// Makes a call for one participant, or for each of several.
    private mutating func each(
        _ call: ReferenceCall,
        _ before: ReferenceRoom,
        _ body: (inout ReferenceRoom, ReferenceCall, ReferenceRoom) throws(Refusal) -> JSON
    ) throws(Refusal) -> JSON {
        guard call.params["participants"] != nil else { return try body(&self, call, before) }
        return try forEach(call, body)
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
        guard state != "ended" else { throw Refusal(4091, "event-ended") }
        guard !isLocked || (isModerator && formerModerators.contains(id)) else {
            throw Refusal(4091, "room-locked")
        }
        guard state != "created" || isModerator else { throw Refusal(4091, "event-not-open") }
        guard people.count < number("maxParticipants") ?? .max else {
            throw Refusal(4029, "limit-reached")
        }
        if let named { heardOldNames = heardOldNames ?? named.isOld }
        var person = Person(id: id, role: role, mode: named?.mode ?? "SEND_AND_RECV")
        person.name = call["name"]
        person.custom = call.params["custom"] ?? [:]
        person.isAwaited = knocks && !isModerator
        person.hardMuted = departedMutes.removeValue(forKey: id) ?? []
        people.append(person)
        tellArrival(person, rejoined: false)
        return joined(person.id, call)
    }

    private func joined(_ id: String, _ call: ReferenceCall) -> JSON {
        guard let person = person(id) else { return [:] }
        var room = shown.members
        if call.params["snapshot"] == false {
            for list in ["participants", "awaited", "streams"] { room[list] = nil }
        }
        return [
            "state": person.isAwaited ? "awaited" : "joined", "room": .string(name),
            "participant": .string(id), "participantInfo": shown(person),
            "roomInfo": .object(room),
        ]
    }

    mutating func tellArrival(_ person: Person, rejoined: Bool) {
        if person.isAwaited {
            tell(
                "participant.awaited",
                to: audience(of: person),
                ["participant": .string(person.id), "participantInfo": shown(person)]
            )
        } else {
            tell(
                "participant.joined",
                [
                    "participant": .string(person.id), "participantInfo": shown(person),
                    "rejoined": .bool(rejoined),
                ]
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
        guard call["ifPresent"] != "refuse" else { throw Refusal(4009, "already-exists") }
        if let named { heardOldNames = heardOldNames ?? named.isOld }
        change(present.id) { person in
            person.transports = []
            person.name = call.params["name"]?.word ?? person.name
            person.mode = named?.mode ?? person.mode
            person.custom = call.params["custom"] ?? person.custom
        }
        if hosts.contains(present.id) { expectedHosts[present.id] = call.time }
        settle(from: before, because: "takeover")
        guard let person = person(present.id) else { return [:] }
        tell(
            "participant.left",
            to: [],
            ["participant": .string(person.id), "reason": "replaced"]
        )
        if !person.isAwaited { tellArrival(person, rejoined: true) }
        if person.mode != present.mode { tellMode(of: person, before: present.mode, by: nil) }
        guard case .object(var result) = joined(present.id, call) else { return [:] }
        result["roleRequest"] = openRequests(at: call.time, to: person.id).first
        return .object(result)
    }

    /// Reports a new mode, and takes the pin and the floor from a participant it does not fit.
    private mutating func tellMode(of person: Person, before: String, by: JSON?) {
        tell(
            "participant.modeChanged",
            to: audience(of: person),
            [
                "participant": .string(person.id), "mode": .string(person.mode),
                "previous": .string(before), "current": .string(person.mode), "by": by,
            ]
        )
        told.append([])
        if person.mode == "SIGNALLING_ONLY" { unpin([person.id], by: nil) }
        if person.mode != "SEND_AND_RECV" { freeFloor(of: person) }
    }

    /// Frees the places of hosts who were taken over and have not offered for too long; returns
    /// what is told of it.
    mutating func expireHosts(at time: Int64) -> [[Told]] {
        told = []
        actor = nil
        let seconds = Int64(number("disconnectedSeconds") ?? 120)
        let late = expectedHosts.filter { $0.value + seconds * 1_000_000_000 <= time }
        guard !late.isEmpty else { return [] }
        for host in late.keys { expectedHosts[host] = nil }
        seatWaitingHosts()
        return told.filter { !$0.isEmpty }
    }

    /// Gives free host places to those who have waited longest.
    private mutating func seatWaitingHosts() {
        told.append([])
        settle(from: self, because: "")
    }

    /// Removes a participant; `reason` is that of the streams, `word` that of the participant.
    mutating func leave(
        _ person: Person,
        because reason: String,
        telling word: String?,
        detail: JSON? = nil
    ) {
        let before = self
        people.removeAll { $0.id == person.id }
        departedMutes[person.id] = person.hardMuted
        formerModerators.remove(person.id)
        if reason != "left", sparedPerson == person.id { sparedPerson = nil }
        if reason == "left", person.role == "moderator", !person.isAwaited {
            formerModerators.insert(person.id)
        }
        told.append([])
        freeFloor(of: person)
        unpin([person.id], by: nil)
        endRequests { asked, request in
            if asked == person.id { return "target-left" }
            return request.by == person.id ? "requester-left" : nil
        }
        messages.forget(person.id)
        subscriptions.removeAll { $0.participant == person.id }
        settle(from: before, because: reason, seating: false)
        guard let word else { return }
        tell(
            "participant.left",
            to: audience(of: person),
            ["participant": .string(person.id), "reason": .string(word), "detail": detail]
        )
    }

    private mutating func drop(_ call: ReferenceCall) throws(Refusal) -> JSON {
        try check(call, "drop", 5116)
        var results: [JSON] = []
        for id in call.params["participants"]?.list ?? [] {
            let person = person(id.word ?? "")
            if let person {
                let detail = call.params["detail"]
                leave(person, because: "dropped", telling: "dropped", detail: detail)
            }
            results.append(["participant": id, "dropped": .bool(person != nil)])
        }
        seatWaitingHosts()
        return ["results": .array(results), "fence": "$fence"]
    }

    private mutating func answerKnock(
        _ call: ReferenceCall,
        _ before: ReferenceRoom
    ) throws(Refusal) -> JSON {
        try check(call, "approve")
        let person = try target(call)
        guard person.isAwaited else { throw Refusal(4091, "not-awaited") }
        let to = moderators.union([person.id]).union(actor?.word.map { [$0] } ?? [])
        if call.method == "participant.deny" {
            leave(person, because: "denied", telling: nil)
            tell(
                "participant.denied",
                to: to,
                [
                    "participant": .string(person.id), "detail": call.params["detail"],
                    "by": call.params["by"],
                ]
            )
            tell(
                "participant.left",
                to: moderators.union([person.id]),
                ["participant": .string(person.id), "reason": "denied"]
            )
            return Self.fenced
        }
        guard !isLocked else { throw Refusal(4091, "room-locked") }
        change(person.id) { $0.isAwaited = false }
        guard let admitted = self.person(person.id) else { return [:] }
        tell(
            "participant.approved",
            to: to,
            [
                "participant": .string(person.id), "participantInfo": shown(admitted),
                "by": call.params["by"],
            ]
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
            guard mayPublishSomething(person) else { throw Refusal(4010, "role-may-not-publish") }
        }
        let named = try mode(call["mode"])
        heardOldNames = heardOldNames ?? named.isOld
        guard named.mode != person.mode else { return Self.fenced }
        change(person.id) { changed in
            changed.mode = named.mode
            if named.mode == "SIGNALLING_ONLY" { changed.transports = [] }
        }
        if let changed = self.person(person.id) {
            tellMode(of: changed, before: person.mode, by: call.params["by"])
        }
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
                to: moderators.union([person.id]).union(actor?.word.map { [$0] } ?? []),
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
            throw Refusal(5085, "not-moderator")
        }
        let person = try target(call, or: 5045)
        guard person.id != by.id else { throw Refusal(5045, "transfer-to-self") }
        guard person.role != "moderator" else { throw Refusal(5045, "already-moderator") }
        guard !person.isAwaited else { throw Refusal(5045, "awaits-approval") }
        tell(
            "moderator.transferred",
            to: [by.id, person.id],
            ["previous": .string(by.id), "current": .string(person.id), "by": .string(by.id)]
        )
        if sparedPerson == by.id { sparedPerson = person.id }
        let moves = [(person, "moderator"), (by, "participant")]
        setRoles(moves, by: call.params["by"], from: before)
        return Self.fenced
    }
}
