import JSON

/// Participants that a call is about: one, several, or all who wait to be let in.
///
/// With one, the call is refused as a whole; with several, it is answered one by one.
public enum Targets: Hashable, Sendable {
    case one(ParticipantID)
    case several([ParticipantID])
    case allAwaited

    /// Most participants that one call may name.
    ///
    /// Each may be answered with an error of 400 bytes, and the reply is one line.
    public static let countLimit = 2_000
}

extension Targets: Codable {
    private enum CodingKeys: CodingKey { case participant, participants }

    /// Decodes `participant` or `participants` from the object of the params.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        let one = try container.decodeIfPresent(ParticipantID.self, forKey: .participant)
        guard let several = try container.decodeIfPresent(Several.self, forKey: .participants)
        else {
            guard let one else { throw container.refusal(.participant, "is missing") }
            self = .one(one)
            return
        }
        guard one == nil else {
            throw container.refusal(.participants, "must not stand beside \"participant\"")
        }
        self = several.targets
    }

    /// The participants of one call: a list, or `"all"` for all who wait to be let in.
    struct Several: Decodable {
        var targets: Targets

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if let word = try? container.decode(String.self) {
                guard word == "all" else { throw decoder.refusal("must be a list or \"all\"") }
                targets = .allAwaited
                return
            }
            let list = try container.decode([ParticipantID].self)
            guard list.count <= Targets.countLimit else {
                throw decoder.refusal("must have 0 to \(Targets.countLimit) elements")
            }
            guard Set(list).count == list.count else {
                throw decoder.refusal("names something twice")
            }
            targets = .several(list)
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        switch self {
        case .one(let participant): try container.encode(participant, forKey: .participant)
        case .several(let participants): try container.encode(participants, forKey: .participants)
        case .allAwaited: try container.encode("all", forKey: .participants)
        }
    }
}

/// The outcome for one participant of a call that names several.
public struct TargetResult: Codable, Hashable, Sendable {
    public var participant: ParticipantID
    /// Error that refused the call for this one; absent if it took effect.
    public var error: IPCError?

    public init(participant: ParticipantID, error: IPCError? = nil) {
        self.participant = participant
        self.error = error
    }
}

/// The result of a call about one participant or several.
public struct TargetResults: Codable, Hashable, Sendable {
    /// One result for each participant, in the order of the call; absent if it named one only.
    public var results: [TargetResult]?
    public var fence: Fence?
    /// `false` if the change is not in the room's journal yet.
    ///
    /// It is lost if the node is lost before the registry is back. Absent otherwise, and without
    /// a cluster.
    public var durable: Bool?

    public init(results: [TargetResult]? = nil, fence: Fence? = nil) {
        self.results = results
        self.fence = fence
    }
}

/// Params of a call about participants, with the participant who asks for it if any.
public struct TargetsByParticipant: Codable, Hashable, Sendable {
    public var room: RoomID
    /// `participant`, or `participants`: a list or `"all"`.
    public var targets: Targets
    public var by: ParticipantID?

    public init(
        room: RoomID,
        _ targets: Targets,
        by: ParticipantID? = nil
    ) {
        self.room = room
        self.targets = targets
        self.by = by
    }

    private enum CodingKeys: CodingKey { case room, by }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        room = try container.decode(RoomID.self, forKey: .room)
        targets = try Targets(from: decoder)
        by = try container.decodeIfPresent(ParticipantID.self, forKey: .by)
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(room, forKey: .room)
        try targets.encode(to: encoder)
        try container.encodeIfPresent(by, forKey: .by)
    }
}

/// Admits participants who wait to be let in.
public enum ParticipantApprove: IPCMethod {
    public static let name = "participant.approve"
    public typealias Params = TargetsByParticipant
    public typealias Result = TargetResults
}

/// Turns away participants who wait to be let in.
public enum ParticipantDeny: IPCMethod {
    public static let name = "participant.deny"
    public typealias Result = TargetResults

    public struct Params: Codable, Hashable, Sendable {
        public var room: RoomID
        /// `participant`, or `participants`: a list or `"all"`.
        public var targets: Targets
        /// Free text that `participant.denied` passes on.
        public var detail: ShortText?
        public var by: ParticipantID?

        public init(
            room: RoomID,
            _ targets: Targets,
            detail: ShortText? = nil,
            by: ParticipantID? = nil
        ) {
            self.room = room
            self.targets = targets
            self.detail = detail
            self.by = by
        }

        private enum CodingKeys: CodingKey { case room, detail, by }

        public init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            room = try container.decode(RoomID.self, forKey: .room)
            targets = try Targets(from: decoder)
            detail = try container.decodeIfPresent(ShortText.self, forKey: .detail)
            by = try container.decodeIfPresent(ParticipantID.self, forKey: .by)
        }

        public func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(room, forKey: .room)
            try targets.encode(to: encoder)
            try container.encodeIfPresent(detail, forKey: .detail)
            try container.encodeIfPresent(by, forKey: .by)
        }
    }
}

/// Params of participants' hard mute.
public struct ParticipantMedia: Codable, Hashable, Sendable {
    public var room: RoomID
    /// `participant`, or `participants`: a list.
    public var targets: Targets
    /// Kinds of media; at least one.
    public var media: [StreamKind]
    public var by: ParticipantID?

    public init(
        room: RoomID,
        _ targets: Targets,
        media: [StreamKind],
        by: ParticipantID? = nil
    ) {
        self.room = room
        self.targets = targets
        self.media = media
        self.by = by
    }

    private enum CodingKeys: CodingKey { case room, media, by, participants }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        room = try container.decode(RoomID.self, forKey: .room)
        targets = try Targets(from: decoder)
        guard targets != .allAwaited else {
            throw container.refusal(.participants, "must be a list")
        }
        media = try container.list(.media, 1...StreamKind.allCases.count)
        by = try container.decodeIfPresent(ParticipantID.self, forKey: .by)
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(room, forKey: .room)
        try targets.encode(to: encoder)
        try container.encode(media, forKey: .media)
        try container.encodeIfPresent(by, forKey: .by)
    }
}

/// Mutes participants' audio or video, including tracks published later.
public enum ParticipantHardMute: IPCMethod {
    public static let name = "participant.hardMute"
    public typealias Params = ParticipantMedia
    public typealias Result = TargetResults
}

/// Ends participants' hard mute of audio or video.
public enum ParticipantHardUnmute: IPCMethod {
    public static let name = "participant.hardUnmute"
    public typealias Params = ParticipantMedia
    public typealias Result = TargetResults
}
