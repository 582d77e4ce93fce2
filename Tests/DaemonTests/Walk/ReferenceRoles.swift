import JSON
import Rooms

// Roles, the floor and pins.
extension ReferenceRoom {
    mutating func carryOutRole(
        _ call: ReferenceCall,
        _ before: ReferenceRoom
    ) throws(Refusal) -> JSON {
        switch call.method {
        case "role.change":
            try check(call, "changeRole")
            guard role(call["role"]) != nil else { throw Refusal(4044, "role-invalid") }
            let person = try target(call)
            let isForced = call.params["force"] == true
            guard isForced || person.role != call["role"] else { return [:] }
            guard isForced else { return request(person, call) }
            setRoles([(person, call["role"])], by: call.params["by"], from: before)
            return Self.fenced
        case "role.changeAll": return try changeAll(call, before)
        case "role.requests":
            if call.params["participant"] != nil { _ = try target(call) }
            let open = openRequests(at: call.time, to: call.params["participant"]?.word)
            return ["requests": .array(open)]
        default: return try answerRequest(call, before)
        }
    }

    private mutating func request(_ person: Person, _ call: ReferenceCall) -> JSON {
        told.append([])
        endRequests { asked, _ in asked == person.id ? "replaced" : nil }
        let id = names.next("request")
        let seconds = Int64(number("roleRequestSeconds") ?? 0)
        requests[person.id] = RoleRequest(
            id: id,
            number: names.last,
            by: call.params["by"]?.word,
            role: call["role"],
            expires: call.time + 1_000_000_000 * seconds
        )
        tell(
            "role.changeRequested",
            to: Set([person.id] + [call.params["by"]?.word].compactMap(\.self)),
            [
                "request": .string(id), "participant": .string(person.id),
                "role": .string(call["role"]), "by": call.params["by"], "expires": "$time",
            ]
        )
        return ["request": .string(id)]
    }

    /// Returns the requests that can still be accepted, as they are shown, oldest first.
    func openRequests(at time: Int64, to person: String?) -> [JSON] {
        let open = requests.filter { $0.value.expires > time && $0.key == person ?? $0.key }
        return open.sorted { $0.value.number < $1.value.number }.map { asked, request in
            var shown = named(request, to: asked)
            shown["expires"] = "$time"
            return .object(shown.compactMapValues { $0 })
        }
    }

    private func named(_ request: RoleRequest, to person: String) -> [String: JSON?] {
        [
            "request": .string(request.id), "participant": .string(person),
            "role": .string(request.role), "by": request.by.json,
        ]
    }

    /// Ends the requests that were not answered in time; returns what is told of them.
    mutating func expireRequests(at time: Int64) -> [Told] {
        told = []
        now = time
        actor = nil
        endRequests { _, request in request.expires <= time ? "timeout" : nil }
        return told.flatMap(\.self)
    }

    /// Ends the requests that have a reason to, and tells those of the two who are here.
    mutating func endRequests(_ end: (String, RoleRequest) -> String?) {
        for (asked, request) in requests {
            guard let reason = end(asked, request) else { continue }
            requests[asked] = nil
            let isLate = request.expires <= now
            alsoTell(
                "role.requestExpired",
                to: Set([asked, request.by].compactMap(\.self).filter { person($0) != nil }),
                [
                    "request": .string(request.id), "participant": .string(asked),
                    "role": .string(request.role), "requester": request.by.json,
                    "reason": .string(isLate ? "timeout" : reason),
                    "by": isLate ? request.by.json : actor,
                ]
            )
        }
    }

    /// Ends the requests that the present roles do not allow.
    mutating func reviewRequests() {
        let room = self
        endRequests { _, request in
            if room.role(request.role) == nil { return "role-removed" }
            guard let asker = request.by.flatMap(room.person) else { return nil }
            return room.permits(asker, "changeRole") ? nil : "not-permitted"
        }
    }

    private mutating func answerRequest(
        _ call: ReferenceCall,
        _ before: ReferenceRoom
    ) throws(Refusal) -> JSON {
        let person = try target(call)
        guard let request = requests[person.id], request.id == call["request"],
            request.expires > call.time
        else { throw Refusal(4091, "no-such-request") }
        requests[person.id] = nil
        if call.method == "role.decline" {
            tell(
                "role.changeDeclined",
                to: Set([request.by, person.id].compactMap(\.self)),
                [
                    "request": .string(request.id), "participant": .string(person.id),
                    "role": .string(request.role),
                ]
            )
            return [:]
        }
        guard role(request.role) != nil else { throw Refusal(4044, "role-invalid") }
        actor = request.by.json
        setRoles([(person, request.role)], by: request.by.json, from: before)
        return Self.fenced
    }

    private mutating func changeAll(
        _ call: ReferenceCall,
        _ before: ReferenceRoom
    ) throws(Refusal) -> JSON {
        try check(call, "changeRole")
        let role = call["role"]
        guard self.role(role) != nil else { throw Refusal(4044, "role-invalid") }
        let from = call.params["from"]?.list.compactMap(\.word)
        for name in from ?? [] where self.role(name) == nil { throw Refusal(4044, "invalid-role") }
        guard from?.contains(role) != true else { throw Refusal(4091, "role-clash") }
        let protected = settings["protectedRoles"]?.list ?? []
        let moved = people.filter { person in
            from?.contains(person.role) ?? !protected.contains(.string(person.role))
        }
        let ordered = moved.filter { !$0.isAwaited } + moved.filter(\.isAwaited)
        setRoles(ordered.map { ($0, role) }, by: call.params["by"], from: before)
        return Self.fenced
    }

    /// Sets roles, and applies the consequences.
    mutating func setRoles(
        _ moves: [(Person, String)],
        by: JSON?,
        from before: ReferenceRoom
    ) {
        told.append([])
        for (person, role) in moves where person.role != role {
            change(person.id) { $0.role = role }
            alsoTell(
                "participant.roleChanged",
                to: audience(of: person),
                [
                    "participant": .string(person.id), "role": .string(role),
                    "previous": .string(person.role), "current": .string(role), "by": by,
                ]
            )
            endRequests { asked, _ in asked == person.id ? "role-changed" : nil }
            if role == "moderator" { leaveHall(person, by: by) }
        }
        reviewRequests()
        settle(from: before, because: "role-changed")
    }

    /// Admits a participant who became a moderator, and withdraws its request for the floor.
    ///
    /// A moderator needs neither admission nor floor.
    ///
    /// The lock keeps out those who were no moderators before.
    mutating func leaveHall(_ person: Person, by: JSON?) {
        freeFloor(of: person)
        guard person.isAwaited, !isLocked || formerModerators.contains(person.id) else { return }
        change(person.id) { $0.isAwaited = false }
        guard let admitted = self.person(person.id) else { return }
        alsoTell(
            "participant.approved",
            to: moderators.union([person.id]).union(actor?.word.map { [$0] } ?? []),
            ["participant": .string(person.id), "participantInfo": shown(admitted), "by": by]
        )
        tellArrival(admitted, rejoined: false)
    }

    /// Takes back the floor, and the request for it.
    mutating func freeFloor(of person: Person) {
        let named: [String: JSON?] = [
            "participant": .string(person.id), "name": .string(person.name),
        ]
        let to = moderators.union([person.id]).union(actor?.word.map { [$0] } ?? [])
        if holder == person.id {
            holder = nil
            alsoTell("floor.finished", to: to, named)
        }
        if hands.contains(person.id) {
            hands.removeAll { $0 == person.id }
            alsoTell("floor.cancelled", to: to, named)
        }
    }

    mutating func carryOutFloor(
        _ call: ReferenceCall,
        _ before: ReferenceRoom
    ) throws(Refusal) -> JSON {
        switch call.method {
        case "floor.request", "floor.cancel", "floor.finish": try ownFloor(call, before)
        default: try moderateFloor(call, before)
        }
    }

    private mutating func ownFloor(
        _ call: ReferenceCall,
        _ before: ReferenceRoom
    ) throws(Refusal) -> JSON {
        let person = try target(call, or: 5045)
        guard !person.isAwaited else { throw Refusal(5045, "awaits-approval") }
        guard person.role != "moderator" else { throw Refusal(5003, "floor-not-needed") }
        let key = "\(call.method) \(person.id)"
        guard !inProcess.values.contains(key) else { throw Refusal(5041, "in-process") }
        let named: [String: JSON?] = [
            "participant": .string(person.id), "name": .string(person.name),
        ]
        inProcess[call.id] = key
        switch call.method {
        case "floor.request":
            guard holder != person.id else { throw Refusal(5042, "floor-already-granted") }
            guard !hands.contains(person.id) else {
                throw Refusal(5042, "floor-already-requested")
            }
            hands.append(person.id)
            tell("floor.requested", to: moderators.union([person.id]), named)
            return [:]
        case "floor.cancel":
            guard hands.contains(person.id) else { throw Refusal(5042, "no-floor-request") }
            hands.removeAll { $0 == person.id }
            tell("floor.cancelled", to: moderators.union([person.id]), named)
            return [:]
        default:
            guard holder == person.id else { throw Refusal(5042, "floor-not-held") }
            holder = nil
            tell("floor.finished", to: moderators.union([person.id]), named)
            told.append([])
            settle(from: before, because: "floor-lost")
            return Self.fenced
        }
    }

    private mutating func moderateFloor(
        _ call: ReferenceCall,
        _ before: ReferenceRoom
    ) throws(Refusal) -> JSON {
        let words = ["grant": 5004, "deny": 5005, "release": 5006]
        let word = String(call.method.dropFirst("floor.".count))
        try check(call, "floor", words[word] ?? 0)
        let person = try target(call, or: 5045)
        guard !person.isAwaited else { throw Refusal(5045, "awaits-approval") }
        let key = "\(call.method) \(person.id)"
        guard !inProcess.values.contains(key) else {
            throw Refusal(["grant": 5043, "deny": 5047, "release": 5049][word] ?? 0, "in-process")
        }
        inProcess[call.id] = key
        let isHeld = holder == person.id
        let hasAsked = hands.contains(person.id)
        let to = moderators.union([person.id]).union(call["by"].isEmpty ? [] : [call["by"]])
        var data: [String: JSON?] = [
            "participant": .string(person.id), "name": .string(person.name),
            "by": call.params["by"],
        ]
        switch word {
        case "grant":
            guard !isHeld else { throw Refusal(5044, "floor-already-granted") }
            guard holder == nil else { throw Refusal(5046, "floor-held") }
            let isBeingReleased = inProcess.values.contains { $0.hasPrefix("floor.release") }
            guard hasAsked else { throw Refusal(5069, "no-floor-request") }
            guard !isBeingReleased else { throw Refusal(5069, "floor-released") }
            guard person.mode == "SEND_AND_RECV" else {
                throw Refusal(4091, "mode-may-not-publish")
            }
            guard mayPublishSomething(person) else { throw Refusal(4010, "role-may-not-publish") }
            holder = person.id
            data["code"] = 1708
            tell("floor.granted", to: to, data)
        case "deny":
            guard !isHeld else { throw Refusal(5048, "floor-already-granted") }
            guard hasAsked else { throw Refusal(5045, "no-floor-request") }
            data["code"] = 4117
            tell("floor.denied", to: to, data)
        default:
            guard isHeld else { throw Refusal(5050, "floor-not-held") }
            holder = nil
            data["code"] = 1712
            tell("floor.released", to: to, data)
        }
        hands.removeAll { $0 == person.id }
        told.append([])
        settle(from: before, because: "floor-lost")
        return word == "grant" ? [:] : Self.fenced
    }

    mutating func changePins(_ call: ReferenceCall) throws(Refusal) -> JSON {
        try check(call, "pin", 5003)
        let ids = (call.params["participants"]?.list ?? []).compactMap(\.word)
        guard !ids.isEmpty else { throw Refusal(5126, "no-such-participant") }
        for id in ids {
            guard let person = person(id) else { throw Refusal(5126, "no-such-participant") }
            guard !person.isAwaited else { throw Refusal(5126, "awaits-approval") }
        }
        guard call.method == "pin.add" else {
            unpin(ids, by: call.params["by"]?.word)
            return [:]
        }
        let added = ids.filter { !pins.contains($0) }
        let isTooMany = pins.count + added.count >= number("maxActiveTalkers") ?? 0
        guard added.isEmpty || settings["strictPins"] == false || !isTooMany else {
            throw Refusal(5126, "pin-limit")
        }
        pins += added
        if !added.isEmpty { tellPins(by: call.params["by"]?.word) }
        return [:]
    }

    mutating func unpin(_ ids: [String], by: String?) {
        let left = pins.filter { !ids.contains($0) }
        guard left != pins else { return }
        pins = left
        tellPins(by: by)
    }

    private mutating func tellPins(by: String?) {
        alsoTell("pins.changed", ["pins": .words(pins), "by": by.json])
    }
}
