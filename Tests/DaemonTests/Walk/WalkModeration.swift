import JSON

// Calls about participants' rights and media.
extension WalkCalls {
    mutating func offer(_ room: ReferenceRoom) -> [String: JSON] {
        let words: [Character] = ["s", "s", "s", "-"]
        let slots: [Character] = ["r", "r", "r", "-"]
        var directions = ""
        let isSecond = isOne(in: 6)
        for mid in 0..<6 {
            let isScreen = mid == 2 || mid == 3
            if mid < 4 {
                directions.append(isScreen && !isOne(in: 3) ? "-" : pick(words, or: "-"))
            } else {
                directions.append(isSecond ? "-" : pick(slots, or: "-"))
            }
        }
        if isOne(in: 30) { directions = "bad" }
        let names: [JSON] = ["second", "second", "third"]
        var params: [String: JSON] = ["participant": person(room), "sdp": .string(directions)]
        if isSecond { params["transport"] = pick(names, or: "second") }
        if isOne(in: 8) { params["audioFallback"] = .bool(isOne(in: 2)) }
        if isOne(in: 3) {
            var streams: [String: JSON] = [:]
            for mid in 0..<5 where isOne(in: 2) { streams["\(mid)"] = attributes() }
            params["streams"] = .object(streams)
        }
        return own(params)
    }

    private mutating func attributes() -> JSON {
        var attributes: [String: JSON] = [:]
        if isOne(in: 2) { attributes["name"] = isOne(in: 3) ? .null : .string("S\(below(3))") }
        if isOne(in: 3) {
            attributes["custom"] = isOne(in: 3) ? .null : ["k": .integer(Int64(below(3)))]
        }
        if isOne(in: 3) {
            attributes["audioFallback"] = isOne(in: 3) ? .null : .bool(isOne(in: 2))
        }
        return .object(attributes)
    }

    mutating func stream(_ room: ReferenceRoom) -> (String, [String: JSON]) {
        let known: JSON = .string(pick(room.streams.map(\.id), or: "none"))
        let stream: JSON = isOne(in: 15) ? "none" : known
        if isOne(in: 3) { return ("stream.unpublish", by(room, ["stream": stream])) }
        var params: [String: JSON] = ["stream": stream]
        for kind in ["audio", "video"] where isOne(in: 2) { params[kind] = .bool(isOne(in: 2)) }
        return ("stream.update", own(params))
    }

    mutating func subscription(_ room: ReferenceRoom) -> (String, [String: JSON]) {
        let stream: JSON = .string(pick(room.streams.map(\.id), or: "none"))
        if room.subscriptions.isEmpty || !isOne(in: 3) {
            let viewers = room.people.filter { person in
                person.transports.contains { $0.lines.contains(where: \.receives) }
            }.map(\.id)
            let viewer: JSON = isOne(in: 8) ? person(room) : .string(pick(viewers, or: "p1"))
            var params: [String: JSON] = ["participant": viewer, "stream": stream]
            let mids: [JSON] = ["4", "5", "9"]
            if isOne(in: 6) { params["audioMid"] = pick(mids, or: "4") }
            if isOne(in: 6) { params["videoMid"] = pick(mids, or: "5") }
            if isOne(in: 4) { return ("subscription.set", all(params, room)) }
            return ("subscription.add", params)
        }
        let known: JSON = .string(pick(room.subscriptions.map(\.id), or: "none"))
        let subscription: JSON = isOne(in: 20) ? "none" : known
        if isOne(in: 4) { return ("subscription.remove", own(["subscription": subscription])) }
        var params: [String: JSON] = ["subscription": subscription]
        for kind in ["audio", "video"] where isOne(in: 2) { params[kind] = .bool(isOne(in: 2)) }
        if isOne(in: 5) { params["stream"] = stream }
        return ("subscription.update", own(params))
    }

    /// Turns params of `subscription.add` into those of `subscription.set`, with further streams.
    private mutating func all(_ params: [String: JSON], _ room: ReferenceRoom) -> [String: JSON] {
        var one = params
        one["participant"] = nil
        var wanted: [JSON] = isOne(in: 5) ? [] : [.object(one)]
        for stream in room.streams.map(\.id) + ["none"]
        where isOne(in: 3) && one["stream"] != .string(stream) {
            wanted.append(["stream": .string(stream)])
        }
        return own(["participant": params["participant"] ?? .null, "subscriptions": .array(wanted)])
    }

    mutating func floor(_ room: ReferenceRoom) -> (String, [String: JSON]) {
        let target = person(room)
        let holder: JSON = .string(room.holder ?? pick(room.hands, or: "p2"))
        switch below(20) {
        case 0..<7: return ("floor.request", ["participant": target])
        case 7..<9: return ("floor.cancel", ["participant": hand(room)])
        case 9..<11: return ("floor.finish", ["participant": isOne(in: 3) ? target : holder])
        case 11..<16: return ("floor.grant", by(room, ["participant": hand(room)]))
        case 16: return ("floor.deny", by(room, ["participant": hand(room)]))
        default: return ("floor.release", by(room, ["participant": holder]))
        }
    }

    private mutating func hand(_ room: ReferenceRoom) -> JSON {
        isOne(in: 5) ? person(room) : .string(pick(room.hands, or: "p3"))
    }

    mutating func role(_ room: ReferenceRoom) -> (String, [String: JSON]) {
        let names: [JSON] = ["moderator", "participant", "participant", "viewer", "singer"]
        let role: JSON = isOne(in: 30) ? "king" : pick(names, or: "viewer")
        if !room.requests.isEmpty, isOne(in: 2) {
            let asked = pick(room.requests.keys.sorted(), or: "")
            let request: JSON = .string(isOne(in: 12) ? "req" : room.requests[asked]?.id ?? "req")
            let params = ["participant": isOne(in: 12) ? person(room) : .string(asked)]
            return (
                isOne(in: 4) ? "role.decline" : "role.accept",
                params.merging(["request": request]) { $1 }
            )
        }
        switch below(11) {
        case 10:
            return ("role.requests", isOne(in: 2) ? ["participant": person(room)] : [:])
        case 0:
            let from: [JSON] = [
                ["viewer"], ["participant", "singer"], ["queen"], ["viewer", "singer"],
            ]
            var params: [String: JSON] = ["role": role]
            if !isOne(in: 4) { params["from"] = pick(from, or: []) }
            return ("role.changeAll", by(room, params))
        case 1:
            let by: JSON = .string(pick(room.moderators.sorted(), or: "p0"))
            return (
                "moderator.transfer",
                ["participant": person(room), "by": isOne(in: 6) ? person(room) : by]
            )
        default:
            var params: [String: JSON] = ["participant": person(room), "role": role]
            if !isOne(in: 3) { params["force"] = .bool(isOne(in: 2)) }
            return ("role.change", by(room, params))
        }
    }

    mutating func message(_ room: ReferenceRoom) -> (String, [String: JSON]) {
        let topics: [JSON] = ["chat", "ACK"]
        var params: [String: JSON] = ["topic": pick(topics, or: "chat")]
        switch below(4) {
        case 0..<2:
            params["message"] = .string("m\(below(9))")
            if isOne(in: 2) { params["from"] = person(room) }
            if isOne(in: 3) { params["payload"] = ["k": .array([.integer(Int64(below(9)))])] }
            if isOne(in: 3) { params["persist"] = .bool(!isOne(in: 4)) }
            if isOne(in: 4) { params["to"] = .array([person(room)]) }
            return ("message.publish", params)
        case 2:
            params["participant"] = person(room)
            return ("message.subscribe", params)
        default:
            params["participant"] = person(room)
            return ("message.unsubscribe", params)
        }
    }

    mutating func pin(_ room: ReferenceRoom) -> (String, [String: JSON]) {
        var ids: [JSON] = []
        for _ in 0..<below(3) {
            let id = person(room)
            if !ids.contains(id) { ids.append(id) }
        }
        return (
            isOne(in: 3) ? "pin.remove" : "pin.add", by(room, ["participants": .array(ids)])
        )
    }

    mutating func knock(_ room: ReferenceRoom) -> (String, [String: JSON]) {
        let waiting = room.people.filter(\.isAwaited).map(\.id)
        let participant: JSON =
            waiting.isEmpty || isOne(in: 6) ? person(room) : .string(pick(waiting, or: ""))
        return (
            isOne(in: 4) ? "participant.deny" : "participant.approve",
            by(room, targets(participant, room))
        )
    }

    /// Names one participant, or several and this one among them.
    private mutating func targets(_ one: JSON, _ room: ReferenceRoom) -> [String: JSON] {
        guard isOne(in: 4) else { return ["participant": one] }
        let other = person(room)
        return ["participants": .array(other == one ? [one] : [other, one])]
    }

    mutating func mute(_ room: ReferenceRoom) -> (String, [String: JSON]) {
        if isOne(in: 2) {
            let isOff = isOne(in: 5) ? !room.isHardMuted : room.isHardMuted
            if isOff { return ("room.hardUnmute", by(room, [:])) }
            let sparing: [String: JSON] = isOne(in: 2) ? ["sparing": "moderators"] : [:]
            return ("room.hardMute", by(room, sparing))
        }
        let media: [JSON] = [["audio"], ["video"], ["audio", "video"]]
        return (
            isOne(in: 2) ? "participant.hardMute" : "participant.hardUnmute",
            by(room, targets(person(room), room).merging(["media": pick(media, or: [])]) { $1 })
        )
    }

    mutating func door(_ room: ReferenceRoom) -> (String, [String: JSON]) {
        let isOpening = isOne(in: 5) ? !room.isLocked : room.isLocked
        return (isOpening ? "room.unlock" : "room.lock", by(room, [:]))
    }

    mutating func mode(_ room: ReferenceRoom) -> (String, [String: JSON]) {
        let modes: [JSON] = [
            "SEND_AND_RECV", "SEND_AND_RECV", "SEND_AND_RECV", "RECV_ONLY", "SIGNALLING_ONLY",
            "CONFERENCE", "VIEWER",
        ]
        let participant = person(room)
        var params = by(room, ["participant": participant])
        if isOne(in: 3) { params["by"] = participant }
        params["mode"] = pick(modes, or: "RECV_ONLY")
        return ("participant.setMode", params)
    }
}
