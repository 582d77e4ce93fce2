import Contract
import JSON

/// A moderation command as one call of the contract.
struct Action: Equatable {
    var method: String
    var params: JSON
}

extension Action {
    /// Translates a command and its operands.
    ///
    /// - Throws: `UsageError` that names the invalid operand.
    init(_ topic: Help.Topic, _ room: RoomID, _ rest: [String]) throws(UsageError) {
        var params: [String: JSON] = ["room": .string(room.rawValue)]
        let method: String
        switch topic {
        case .lock, .unlock:
            method = "room.\(topic.rawValue)"
        case .mute, .unmute:
            let verb = topic == .mute ? "hardMute" : "hardUnmute"
            method = rest.isEmpty ? "room.\(verb)" : "participant.\(verb)"
            if let participant = rest.first {
                params["participant"] = .string(try Self.id(participant, topic))
                params["media"] = .array(try Self.media(rest.dropFirst(), topic))
            } else if topic == .mute {
                params["sparing"] = .string(MuteSparing.moderators.rawValue)
            }
        case .drop:
            method = ParticipantDrop.name
            params["participants"] = .array(try Self.ids(rest, topic))
        case .pin, .unpin:
            method = topic == .pin ? PinAdd.name : PinRemove.name
            params["participants"] = .array(try Self.ids(rest, topic))
        case .approve, .deny:
            method = "participant.\(topic.rawValue)"
            params["participant"] = .string(try Self.id(rest[0], topic))
        case .floor:
            let steps = ["grant", "deny", "release"]
            guard steps.contains(rest[0]) else {
                throw UsageError(message: "\"\(rest[0])\" is none of \(steps)", topic: topic)
            }
            method = "floor.\(rest[0])"
            params["participant"] = .string(try Self.id(rest[1], topic))
        case .role:
            method = RoleChange.name
            params["participant"] = .string(try Self.id(rest[0], topic))
            params["role"] = .string(try Self.id(rest[1], topic))
            params["force"] = true
        case .state:
            method = RoomSetState.name
            guard let state = RoomState(rawValue: rest[0]) else {
                let states = RoomState.allCases.map(\.rawValue).joined(separator: ", ")
                throw UsageError(message: "\"\(rest[0])\" is none of \(states)", topic: topic)
            }
            params["state"] = .string(state.rawValue)
        case .rooms, .room, .nodes, .talkers, .explain, .stats, .info, .watch, .close, .tap, .untap,
            .taps, .upgrade, .call, .compose, .top, .doctor:
            preconditionFailure("\(topic.rawValue) is no moderation command")
        }
        self.init(method: method, params: .object(params))
    }

    private static func ids(
        _ words: [String],
        _ topic: Help.Topic
    ) throws(UsageError) -> [JSON] {
        var ids: [JSON] = []
        for word in words { ids.append(.string(try id(word, topic))) }
        return ids
    }

    private static func id(_ word: String, _ topic: Help.Topic) throws(UsageError) -> String {
        guard ParticipantID(rawValue: word) != nil else {
            throw UsageError(
                message: "\"\(word)\" is no id: 1 to 128 of A-Z a-z 0-9 . _ : -",
                topic: topic
            )
        }
        return word
    }

    /// Returns the named kind, or audio and video if none is named.
    private static func media(
        _ words: ArraySlice<String>,
        _ topic: Help.Topic
    ) throws(UsageError) -> [JSON] {
        guard let word = words.first else { return ["audio", "video"] }
        guard let kind = StreamKind(rawValue: word) else {
            throw UsageError(message: "\"\(word)\" is neither audio nor video", topic: topic)
        }
        return [.string(kind.rawValue)]
    }
}

extension Report {
    /// Formats the result of an action; may be empty.
    static func done(_ result: JSON) -> String {
        var lines: [String] = []
        if case .array(let results)? = result["results"] {
            for entry in results {
                guard case .string(let participant)? = entry["participant"] else { continue }
                let isDropped = entry["dropped"] == true
                lines.append("\(participant) \(isDropped ? "dropped" : "was not there")")
            }
        }
        if case .integer(let packets)? = result["fence"]?["packets"] {
            lines.append("done; \(packets) packets had passed under the old right")
        }
        return lines.joined(separator: "\n")
    }
}
