import JSON
import SFU

/// Reference model of a room, as the contract describes it, kept as simple as possible.
///
/// It shares no code with the real room, and derives every answer from scratch. A name that sfud
/// chooses itself (ids, times) is a word with a `$` here; see `Agreement`.
struct ReferenceRoom {
    /// An m-line.
    struct Line {
        var mid: String
        var kind: String
        var isScreen: Bool
        var sends = false
        var receives = false
        /// Reason why the participant may not send here; the answer is `inactive`.
        var refused: String?
        /// Whether its stream was unpublished, and the client has not stopped sending since.
        var isWithdrawn = false
    }

    struct Transport {
        var name: String
        var lines: [Line]
        /// Attributes that offers gave to all streams, the camera's and the screen's: `name`,
        /// `custom`, `audioFallback`.
        var said: [String: [String: JSON]] = [:]
    }

    struct Person {
        var id: String
        var name = ""
        var role: String
        var mode: String
        var custom: JSON = [:]
        var isAwaited = false
        var hardMuted: Set<String> = []
        var transports: [Transport] = []
    }

    struct Stream {
        var id: String
        var owner: String
        var transport: String
        var isScreen: Bool
        var kinds: Set<String> = []
        /// Kinds that the publisher has switched off.
        var off: Set<String> = []
    }

    struct Subscription {
        var id: String
        var participant: String
        var stream: String
        /// Slots, by kind.
        var mids: [String: String] = [:]
        /// Kinds that the viewer has switched off.
        var off: Set<String> = []
        /// Reason for the lack of video, as last reported to its viewer.
        var disabled: String?
    }

    struct RoleRequest {
        var id: String
        var number: Int
        var by: String?
        var role: String
        /// Expiry in nanoseconds.
        var expires: Int64
    }

    struct Told {
        var event: String
        /// Recipients; `nil`: all.
        var to: Set<String>?
        /// All who are in the room, and do not wait, at that time.
        var everybody: Set<String>
        var data: [String: JSON]
    }

    var name: String
    var settings: [String: JSON]
    var state: String
    var custom: JSON = [:]
    var isLocked = false
    var isHardMuted = false
    /// Participant and role that the room's mute spares.
    var sparedPerson: String?
    var sparedRole: String?
    /// Participants in the order in which they came, waiting ones included.
    var people: [Person] = []
    var pins: [String] = []
    var hands: [String] = []
    var holder: String?
    /// Participants who want to be seen in a live event, in order.
    var hosts: [String] = []
    /// Those of them who were taken over and have not offered again, and when, in nanoseconds.
    var expectedHosts: [String: Int64] = [:]
    /// Moderators who left by themselves.
    var formerModerators: Set<String> = []
    /// Kinds that were muted for those who have left.
    var departedMutes: [String: Set<String>] = [:]
    var requests: [String: RoleRequest] = [:]
    var streams: [Stream] = []
    var subscriptions: [Subscription] = []
    /// Whether the first mode name that was used was an old one.
    var heardOldNames: Bool?
    var messages = ReferenceMessages()
    var seq: Int64 = 0
    /// Participant on whose behalf the present call is made.
    var actor: JSON?
    /// Time of the present call, in nanoseconds.
    var now: Int64 = 0
    /// Time since which nobody is here, in nanoseconds.
    var emptySince: Int64?
    /// Calls with pending fences, and the operation that each blocks.
    var inProcess: [Int64: String] = [:]

    /// Events of the present call, in runs whose internal order is arbitrary.
    var told: [[Told]] = []
    /// Source of the next name.
    var names: Names

    final class Names {
        private(set) var last = 0

        func next(_ word: String) -> String {
            last += 1
            return "$\(word)-\(last)"
        }
    }
}

// Settings.
extension ReferenceRoom {
    var mode: String { settings["mode"]?.word ?? "" }
    var isLiveEvent: Bool { mode.hasPrefix("single_host") }
    var knocks: Bool { settings["knock"] == true }

    func number(_ key: String) -> Int? {
        guard case .integer(let number)? = settings[key] else { return nil }
        return Int(number)
    }

    func role(_ name: String) -> JSON? {
        settings["roles"]?.list.first { $0["name"]?.word == name }
    }

    func permits(_ person: Person, _ permission: String) -> Bool {
        !person.isAwaited
            && role(person.role)?["permissions"]?.list.contains(.string(permission)) == true
    }

    static func settings(_ change: JSON, over before: [String: JSON]? = nil) -> [String: JSON] {
        var settings = before ?? defaults
        for (key, value) in change.members { settings[key] = value }
        var roles = (settings["roles"]?.list ?? []).map { role in
            var full = role.members
            var publish: [String: JSON] = ["audio": false, "video": false, "screen": false]
            publish.merge(full["publish"]?.members ?? [:]) { $1 }
            full["publish"] = .object(publish)
            full["subscribe"] = full["subscribe"] ?? [:]
            full["permissions"] = full["permissions"] ?? []
            return JSON.object(full)
        }
        if !roles.contains(where: { $0["name"] == "moderator" }) { roles.insert(moderator, at: 0) }
        settings["roles"] = .array(roles)
        return settings
    }

    private static let everything: JSON = ["audio": true, "video": true, "screen": true]

    private static let moderator: JSON = [
        "name": "moderator", "publish": everything, "subscribe": [:],
        "permissions": [
            "changeRole", "mute", "lock", "drop", "close", "approve", "floor", "pin", "record",
            "stream", "state", "update", "mode", "unpublish",
        ],
    ]

    private static let defaults: [String: JSON] = [
        "mode": "group", "knock": false, "maxActiveTalkers": 6, "autoRecord": false,
        "maxHosts": 1, "protectedRoles": [], "strictModeVocabulary": false,
        "roleRequestSeconds": 60, "strictPins": true,
        "emptySeconds": 60, "disconnectedSeconds": 120,
        "roles": [
            moderator, ["name": "participant", "publish": everything], ["name": "viewer"],
        ],
    ]
}

// Participants, and how they are shown.
extension ReferenceRoom {
    func person(_ id: String) -> Person? { people.first { $0.id == id } }

    mutating func change(_ id: String, _ body: (inout Person) -> Void) {
        for index in people.indices where people[index].id == id { body(&people[index]) }
    }

    var moderators: Set<String> {
        Set(people.filter { $0.role == "moderator" && !$0.isAwaited }.map(\.id))
    }

    /// Returns the audience of events about a participant; for a waiting one, itself and
    /// moderators.
    func audience(of person: Person) -> Set<String>? {
        person.isAwaited ? moderators.union([person.id]) : nil
    }

    var others: Set<String> { Set(people.filter { !$0.isAwaited }.map(\.id)) }

    func shown(_ person: Person) -> JSON {
        [
            "participant": .string(person.id), "name": .string(person.name),
            "role": .string(person.role), "mode": .string(person.mode),
            "state": person.isAwaited ? "awaited" : "joined",
            "hardMuted": .words(["audio", "video"].filter(person.hardMuted.contains)),
            "connection": person.transports.isEmpty ? "none" : "connecting",
            "custom": person.custom, "joined": "$time",
        ]
    }

    /// Whether the room's mute makes a participant inaudible.
    func isSilenced(_ person: Person) -> Bool {
        let mayMute = role(person.role)?["permissions"]?.list.contains("mute") == true
        return isHardMuted && !(person.id == sparedPerson && mayMute) && person.role != sparedRole
    }

    func shown(_ stream: Stream) -> JSON {
        let owner = person(stream.owner)
        var muted = owner?.hardMuted ?? []
        if let owner, isSilenced(owner) { muted.insert("audio") }
        var shown: [String: JSON] = [
            "stream": .string(stream.id), "participant": .string(stream.owner),
            "created": "$time", "custom": [:], "audioFallback": .bool(!stream.isScreen),
        ]
        let said = owner?.transports.first { $0.name == stream.transport }?.said ?? [:]
        for word in ["all", stream.isScreen ? "screen" : "camera"] {
            shown.merge(said[word] ?? [:]) { $1 }
        }
        shown["source"] =
            stream.isScreen ? "screen" : stream.kinds.contains("video") ? "camera" : "microphone"
        for kind in stream.kinds {
            let enabled = !stream.off.contains(kind) && !muted.contains(kind)
            shown[kind] =
                kind == "audio"
                ? ["codec": "opus", "enabled": .bool(enabled)]
                : ["codec": "vp8", "enabled": .bool(enabled), "layers": []]
        }
        return .object(shown)
    }

    var shown: JSON {
        [
            "room": .string(name), "state": .string(state), "seq": "$any", "counts": counts,
            "settings": .object(settings), "custom": custom, "locked": .bool(isLocked),
            "hardMuted": .bool(isHardMuted),
            "participants": .array(people.filter { !$0.isAwaited }.map(shown)),
            "awaited": .array(people.filter(\.isAwaited).map(shown)),
            "streams": .array(streams.map(shown)), "talkers": "$any", "pins": .words(pins),
            "floor": ["requested": .words(hands), "granted": .words(holder.map { [$0] } ?? [])],
            "streamings": [], "created": "$time",
        ]
    }

    /// Returns an event with the room, where it has that: as the call has left it, without lists.
    func completed(_ told: Told) -> Told {
        guard told.event == "participant.approved" else { return told }
        var told = told
        let lists: Set = ["participants", "awaited", "streams"]
        // Only moderators hear of who waits and who asks for the floor.
        var room = shown.members.filter { !lists.contains($0.key) }
        room["counts"] = .object(counts.members.merging(["awaited": 0]) { $1 })
        room["floor"] = ["requested": [], "granted": .words(holder.map { [$0] } ?? [])]
        told.data["roomInfo"] = .object(room)
        return told
    }

    var counts: JSON {
        [
            "participants": .integer(Int64(others.count)),
            "awaited": .integer(Int64(people.count - others.count)),
            "streams": .integer(Int64(streams.count)),
        ]
    }

    var summary: JSON {
        [
            "room": .string(name), "state": .string(state), "mode": .string(mode),
            "locked": .bool(isLocked), "created": "$time", "custom": custom, "counts": counts,
        ]
    }

    /// Names that say who caused an event, where nothing else does.
    private static let caused: Set<String> = [
        "stream.created", "stream.changed", "stream.destroyed", "participant.left",
        "pins.changed", "floor.finished", "floor.cancelled", "floor.requested",
        "role.changeDeclined", "participant.changed", "participant.joined",
        "subscription.disconnected", "subscription.videoDisabled", "subscription.videoEnabled",
    ]

    /// Reports an event in a run of its own, after all earlier ones.
    mutating func tell(_ event: String, to: Set<String>? = nil, _ data: [String: JSON?]) {
        told.append([])
        alsoTell(event, to: to, data)
    }

    /// Reports an event in the same run as the last one.
    mutating func alsoTell(_ event: String, to: Set<String>? = nil, _ data: [String: JSON?]) {
        seq += 1
        if told.isEmpty { told.append([]) }
        var data = data.compactMapValues { $0 }
        if Self.caused.contains(event), data["by"] == nil { data["by"] = actor }
        if event == "participant.left" { data["session"] = "$session" }
        let event = Told(event: event, to: to, everybody: others, data: data)
        told[told.count - 1].append(event)
    }
}

extension JSON {
    var word: String? { if case .string(let word) = self { word } else { nil } }
    var list: [JSON] { if case .array(let list) = self { list } else { [] } }
    var members: [String: JSON] { if case .object(let members) = self { members } else { [:] } }
    /// Whether it grants a right to publish, within bounds or without.
    var isGrant: Bool {
        if case .object = self { true } else { self == true }
    }
    static func words(_ words: [String]) -> JSON { .array(words.map { .string($0) }) }
}

extension Optional<String> {
    var json: JSON? { map { .string($0) } }
}
