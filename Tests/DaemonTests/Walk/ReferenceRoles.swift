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
        default: return try answerRequest(call, before)
        }
    }

    private mutating func request(_ person: Person, _ call: ReferenceCall) -> JSON {
        let id = names.next("request")
        let seconds = Int64(number("roleRequestSeconds") ?? 0)
        requests[person.id] = RoleRequest(
            id: id,
            by: call.params["by"]?.word,
            role: call["role"],
            expires: call.time + 1_000_000_000 * seconds
        )
        tell(
            "role.changeRequested",
            to: [person.id],
            [
                "request": .string(id), "participant": .string(person.id),
                "role": .string(call["role"]), "by": call.params["by"], "expires": "$time",
            ]
        )
        return ["request": .string(id)]
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
                to: Set([request.by].compactMap(\.self)),
                [
                    "request": .string(request.id), "participant": .string(person.id),
                    "role": .string(request.role),
                ]
            )
            return [:]
        }
        guard role(request.role) != nil else { throw Refusal(4044, "role-invalid") }
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
            requests[person.id] = nil
            alsoTell(
                "participant.roleChanged",
                to: audience(of: person),
                [
                    "participant": .string(person.id), "from": .string(person.role),
                    "role": .string(role), "by": by,
                ]
            )
            if role == "moderator" { leaveHall(person, by: by) }
        }
        settle(from: before, because: "role-changed")
    }

    /// Admits a participant who became a moderator, and withdraws its request for the floor.
    ///
    /// A moderator needs neither admission nor floor.
    private mutating func leaveHall(_ person: Person, by: JSON?) {
        change(person.id) { $0.isAwaited = false }
        freeFloor(of: person)
        guard person.isAwaited, let admitted = self.person(person.id) else { return }
        alsoTell(
            "participant.approved",
            to: moderators.subtracting([by?.word ?? ""]).union([person.id]),
            ["participant": shown(admitted), "by": by]
        )
        tellArrival(admitted, rejoined: false)
    }

    /// Takes back the floor, and the request for it.
    mutating func freeFloor(of person: Person) {
        let named: [String: JSON?] = [
            "participant": .string(person.id), "name": .string(person.name),
        ]
        if holder == person.id {
            holder = nil
            alsoTell("floor.finished", to: moderators, named)
        }
        if hands.contains(person.id) {
            hands.removeAll { $0 == person.id }
            alsoTell("floor.cancelled", to: moderators, named)
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
        guard !person.isAwaited else { throw Refusal(5045, "no-such-participant") }
        guard person.role != "moderator" else { throw Refusal(5003, "not-permitted") }
        let key = "\(call.method) \(person.id)"
        guard !inProcess.values.contains(key) else { throw Refusal(5041, "in-process") }
        let named: [String: JSON?] = [
            "participant": .string(person.id), "name": .string(person.name),
        ]
        inProcess[call.id] = key
        switch call.method {
        case "floor.request":
            guard !hands.contains(person.id), holder != person.id else {
                throw Refusal(5042, "floor-already-requested")
            }
            hands.append(person.id)
            tell("floor.requested", to: moderators, named)
            return [:]
        case "floor.cancel":
            guard hands.contains(person.id) else { throw Refusal(5042, "no-floor-request") }
            hands.removeAll { $0 == person.id }
            tell("floor.cancelled", to: moderators, named)
            return [:]
        default:
            guard holder == person.id else { throw Refusal(5042, "no-floor-request") }
            holder = nil
            tell("floor.finished", to: moderators, named)
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
        guard !person.isAwaited else { throw Refusal(5045, "no-such-participant") }
        let key = "\(call.method) \(person.id)"
        guard !inProcess.values.contains(key) else {
            throw Refusal(["grant": 5043, "deny": 5047, "release": 5049][word] ?? 0, "in-process")
        }
        inProcess[call.id] = key
        let isHeld = holder == person.id
        let hasAsked = hands.contains(person.id)
        let to = moderators.subtracting([call["by"]]).union([person.id])
        var data: [String: JSON?] = [
            "participant": .string(person.id), "name": .string(person.name),
            "by": call.params["by"],
        ]
        switch word {
        case "grant":
            guard !isHeld else { throw Refusal(5044, "floor-already-granted") }
            guard holder == nil else { throw Refusal(5046, "floor-held") }
            let isBeingReleased = inProcess.values.contains { $0.hasPrefix("floor.release") }
            guard hasAsked, !isBeingReleased else { throw Refusal(5069, "floor-released") }
            holder = person.id
            data["code"] = 1708
            tell("floor.granted", to: to, data)
        case "deny":
            guard !isHeld else { throw Refusal(5048, "floor-already-granted") }
            guard hasAsked else { throw Refusal(5045, "no-such-participant") }
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
        guard !ids.isEmpty, ids.allSatisfy({ person($0)?.isAwaited == false }) else {
            throw Refusal(5126, "no-such-participant")
        }
        guard call.method == "pin.add" else {
            unpin(ids, by: call.params["by"]?.word)
            return [:]
        }
        let added = ids.filter { !pins.contains($0) }
        guard pins.count + added.count < number("maxActiveTalkers") ?? 0 || added.isEmpty else {
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
