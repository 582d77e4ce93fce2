import JSON
import Rooms
import SFU

// Offers, streams and subscriptions.
extension ReferenceRoom {
    mutating func carryOutTransport(
        _ call: ReferenceCall,
        _ before: ReferenceRoom
    ) throws(Refusal) -> JSON {
        if call.params["by"] != nil { try checkOwn(call, call["participant"]) }
        let person = try target(call)
        let name = call.params["transport"]?.word ?? "main"
        let former = person.transports.first { $0.name == name }
        if call.method == "transport.close" {
            guard former != nil else { throw Refusal(4008, "no-such-transport") }
            change(person.id) { $0.transports.removeAll { $0.name == name } }
            settle(from: before, because: "transport-closed")
            return Self.fenced
        }
        guard person.mode != "SIGNALLING_ONLY" else { throw Refusal(4091, "signalling-only") }
        guard state != "ended" else { throw Refusal(4091, "event-ended") }
        guard former != nil || person.transports.count < 2 else {
            throw Refusal(4029, "limit-reached")
        }
        let lines = WalkOffer.lines(call["sdp"])
        guard !lines.isEmpty else { throw Refusal(4022, "bad-sdp") }
        var transport = Transport(
            name: name,
            lines: lines.map { agreed($0, of: person, formerly: former) }
        )
        transport.said = said(call, lines, formerly: former)
        expectedHosts[person.id] = nil
        change(person.id) { person in
            person.transports.removeAll { $0.name == name && former == nil }
            if let index = person.transports.firstIndex(where: { $0.name == name }) {
                person.transports[index] = transport
            } else {
                person.transports.append(transport)
            }
        }
        endUnheard(of: person.id)
        settle(from: before, because: "unpublished")
        return [
            "transport": .string(name), "sdp": "$any",
            "mids": .array(transport.lines.map { mid($0, of: person.id, transport) }),
        ]
    }

    /// Returns what an offer and those before it have said of the streams.
    private func said(
        _ call: ReferenceCall,
        _ lines: [Line],
        formerly: Transport?
    ) -> [String: [String: JSON]] {
        var said = formerly?.said ?? [:]
        if let all = call.params["audioFallback"] { said["all"] = ["audioFallback": all] }
        for line in lines where line.sends {
            for (key, value) in call.params["streams"]?[line.mid]?.members ?? [:] {
                let unset: JSON? = value == .null ? nil : value
                said[line.isScreen ? "screen" : "camera", default: [:]][key] = unset
            }
        }
        return said
    }

    /// Ends the subscriptions whose slots an offer has removed.
    private mutating func endUnheard(of id: String) {
        guard let viewer = person(id) else { return }
        for var subscription in subscriptions where subscription.participant == id {
            keepSlots(of: &subscription, viewer)
            guard subscription.mids.isEmpty else { continue }
            subscriptions.removeAll { $0.id == subscription.id }
            tellEnd(of: subscription, because: "slots-ended")
        }
        told.append([])
    }

    private func agreed(_ offered: Line, of person: Person, formerly: Transport?) -> Line {
        var line = offered
        guard line.sends else { return line }
        line.refused = refusal(person, line)
        guard line.refused == nil else { return line }
        let before = formerly?.lines.first { $0.mid == line.mid }
        line.isWithdrawn = before?.sends == true && before?.isWithdrawn == true
        return line
    }

    private func mid(_ line: Line, of id: String, _ transport: Transport) -> JSON {
        var shown: [String: JSON] = ["mid": .string(line.mid), "kind": .string(line.kind)]
        shown["refused"] = line.refused.json
        shown["direction"] =
            line.refused != nil
            ? "inactive" : line.sends ? "recvonly" : line.receives ? "sendonly" : "inactive"
        if let person = person(id), isOnStage(person, line) {
            shown["stream"] = stream(person, transport, isScreen: line.isScreen)
                .map { .string($0.id) }
        }
        return .object(shown)
    }

    mutating func carryOutStream(
        _ call: ReferenceCall,
        _ before: ReferenceRoom
    ) throws(Refusal) -> JSON {
        switch call.method {
        case "stream.list": return ["streams": .array(streams.map(shown))]
        case "stream.update": return try switchStream(call, before)
        case "stream.unpublish": return try unpublish(call, before)
        case "subscription.add": return try subscribe(call, before)
        case "subscription.update": return try switchSubscription(call, before)
        case "subscription.set": return try setSubscriptions(call, before)
        case "subscription.list": return try listSubscriptions(call)
        default:
            let id = call["subscription"]
            guard let found = subscriptions.first(where: { $0.id == id }) else {
                throw Refusal(4007, "no-such-subscription")
            }
            try checkOwn(call, found.participant)
            subscriptions.removeAll { $0.id == id }
            return Self.fenced
        }
    }

    /// Refuses a call on behalf of somebody else than its participant.
    func checkOwn(_ call: ReferenceCall, _ id: String) throws(Refusal) {
        guard let by = call.params["by"]?.word else { return }
        guard by == id else { throw Refusal(4010, "not-own") }
    }

    private func stream(_ call: ReferenceCall) throws(Refusal) -> Stream {
        guard let stream = streams.first(where: { $0.id == call["stream"] }) else {
            throw Refusal(4006, "no-such-stream")
        }
        return stream
    }

    /// Returns whether a call switches off, and the resulting set.
    private func switches(_ call: ReferenceCall, _ off: Set<String>) -> (Bool, Set<String>) {
        var off = off
        var takes = false
        for kind in ["audio", "video"] {
            guard case .bool(let on)? = call.params[kind] else { continue }
            if on { off.remove(kind) } else { off.insert(kind) }
            takes = takes || !on
        }
        return (takes, off)
    }

    private mutating func switchStream(
        _ call: ReferenceCall,
        _ before: ReferenceRoom
    ) throws(Refusal) -> JSON {
        let stream = try stream(call)
        try checkOwn(call, stream.owner)
        let (takes, off) = switches(call, stream.off)
        for index in streams.indices where streams[index].id == stream.id {
            streams[index].off = off
        }
        settle(from: before, because: "")
        return takes ? Self.fenced : [:]
    }

    private mutating func unpublish(
        _ call: ReferenceCall,
        _ before: ReferenceRoom
    ) throws(Refusal) -> JSON {
        let isOwn = streams.contains { $0.id == call["stream"] && $0.owner == call["by"] }
        if !isOwn { try check(call, "unpublish") }
        let stream = try stream(call)
        change(stream.owner) { owner in
            for index in owner.transports.indices
            where owner.transports[index].name == stream.transport {
                for line in owner.transports[index].lines.indices
                where owner.transports[index].lines[line].isScreen == stream.isScreen {
                    let offered = owner.transports[index].lines[line]
                    let isAgreed = offered.sends && offered.refused == nil
                    owner.transports[index].lines[line].isWithdrawn = isAgreed
                }
            }
        }
        settle(from: before, because: "unpublished")
        return Self.fenced
    }

    private mutating func subscribe(
        _ call: ReferenceCall,
        _ before: ReferenceRoom
    ) throws(Refusal) -> JSON {
        let viewer = try target(call)
        _ = try stream(call)
        let new = try subscription(to: call.params, of: viewer)
        subscriptions.append(new)
        settle(from: before, because: "")
        var result: [String: JSON] = ["subscription": .string(new.id)]
        result["audioMid"] = new.mids["audio"].json
        result["videoMid"] = new.mids["video"].json
        return .object(result)
    }

    /// Refuses whoever may not receive anything.
    func checkReceives(_ viewer: Person) throws(Refusal) {
        guard viewer.mode != "SIGNALLING_ONLY" else { throw Refusal(4091, "signalling-only") }
    }

    /// Returns a new subscription as params ask for it.
    func subscription(
        to params: [String: JSON],
        of viewer: Person
    ) throws(Refusal) -> Subscription {
        guard let stream = streams.first(where: { $0.id == params["stream"]?.word }) else {
            throw Refusal(4006, "no-such-stream")
        }
        try checkReceives(viewer)
        if let publisher = person(stream.owner), !watches(viewer, publisher) {
            throw Refusal(4010, "role-may-not-watch")
        }
        guard !watches(viewer, stream.id) else { throw Refusal(4009, "already-exists") }
        var subscription = Subscription(
            id: names.next("subscription"),
            participant: viewer.id,
            stream: stream.id
        )
        for (kind, key) in [("audio", "audioMid"), ("video", "videoMid")] {
            subscription.mids[kind] = try namedSlot(params[key], kind, of: viewer)
        }
        takeFreeSlots(for: &subscription, stream)
        guard !subscription.mids.isEmpty else { throw Refusal(4030, "no-free-slot") }
        return subscription
    }

    private func namedSlot(
        _ mid: JSON?,
        _ kind: String,
        of viewer: Person
    ) throws(Refusal) -> String? {
        guard let mid = mid?.word else { return nil }
        let slots = viewer.transports.flatMap(\.lines).filter { $0.receives && $0.kind == kind }
        guard slots.contains(where: { $0.mid == mid }) else { throw Refusal(4011, "no-such-mid") }
        let isTaken = subscriptions.contains {
            $0.participant == viewer.id && $0.mids[kind] == mid
        }
        guard !isTaken else { throw Refusal(4030, "slot-in-use") }
        return mid
    }

    private func watches(_ viewer: Person, _ stream: String) -> Bool {
        subscriptions.contains { $0.participant == viewer.id && $0.stream == stream }
    }

    private mutating func switchSubscription(
        _ call: ReferenceCall,
        _ before: ReferenceRoom
    ) throws(Refusal) -> JSON {
        let found = subscriptions.firstIndex { $0.id == call["subscription"] }
        guard let index = found, let viewer = person(subscriptions[index].participant) else {
            throw Refusal(4007, "no-such-subscription")
        }
        try checkOwn(call, viewer.id)
        var isMoved = false
        if call.params["stream"] != nil {
            let stream = try stream(call)
            isMoved = stream.id != subscriptions[index].stream
            if let publisher = person(stream.owner), !watches(viewer, publisher) {
                throw Refusal(4010, "role-may-not-watch")
            }
            guard !isMoved || !watches(viewer, stream.id) else {
                throw Refusal(4009, "already-exists")
            }
            subscriptions[index].stream = stream.id
        }
        let (takes, off) = switches(call, subscriptions[index].off)
        subscriptions[index].off = off
        if let stream = streams.first(where: { $0.id == subscriptions[index].stream }) {
            takeFreeSlots(for: &subscriptions[index], stream)
        }
        settle(from: before, because: "")
        return takes || isMoved ? Self.fenced : [:]
    }
}

/// Offers of walks: six m-lines, told apart by their directions.
///
/// A camera's video and its audio, a screen's, and a slot for each kind.
enum WalkOffer {
    static let kinds = ["audio", "video", "video", "audio", "audio", "video"]
    static let sources: JSON = ["2": "screen", "3": "screen"]

    /// Returns an SDP for directions such as `ss--rr`.
    static func text(_ directions: String) -> String {
        let words: [Character: String] = ["s": "sendonly", "r": "recvonly", "-": "inactive"]
        let lines = zip(kinds, directions).enumerated().map { mid, line in
            "\(mid):\(line.0):\(words[line.1] ?? "inactive")"
        }
        return TestOffer(lines).text
    }

    /// Returns the m-lines of such directions; empty for anything else.
    static func lines(_ directions: String) -> [ReferenceRoom.Line] {
        guard directions.count == kinds.count else { return [] }
        return zip(kinds, directions).enumerated().map { mid, line in
            ReferenceRoom.Line(
                mid: "\(mid)",
                kind: line.0,
                isScreen: mid == 2 || mid == 3,
                sends: line.1 == "s",
                receives: line.1 == "r"
            )
        }
    }
}
