public import JSON

/// Settings of a room, with every default filled in.
public struct RoomSettings: Codable, Hashable, Sendable {
    public var mode: RoomMode = .group
    public var knock = false
    /// `nil` if only the server's own limit applies.
    public var maxParticipants: Int?
    public var maxActiveTalkers = 6
    public var autoRecord = false
    public var roles: [Role] = Role.defaults
    public var maxHosts = 1
    /// Roles that `role.changeAll` does not change unless it names them.
    public var protectedRoles: [RoleName] = []
    /// Whether a call with an old mode name is refused after one with a current name, or reversed.
    public var strictModeVocabulary = false
    /// Lifetime of a role request, in seconds.
    public var roleRequestSeconds = 60
    /// Whether at most `maxActiveTalkers` − 1 participants can be pinned; else further pins extend
    /// the list of active talkers.
    public var strictPins = true
    /// Seconds until a room that nobody is in ends; `nil`: never.
    @Nullable public var emptySeconds: Int? = 60
    /// Seconds until a participant whose last transport was lost leaves; `nil`: never.
    @Nullable public var disconnectedSeconds: Int? = 120

    /// Longest encoding as JSON, in bytes.
    public static let byteLimit = 262_144

    public init() {}

    /// Returns the role of that name.
    public func role(_ name: RoleName) -> Role? { roles.first { $0.name == name } }

    /// Returns these settings with `change` merged in.
    ///
    /// `moderator` always exists: it is inserted first if the roles lack it.
    public func merging(_ change: RoomSettingsChange) -> Self {
        var merged = self
        merged.mode = change.mode ?? mode
        merged.knock = change.knock ?? knock
        merged.maxParticipants = change.maxParticipants.applied(to: maxParticipants)
        merged.maxActiveTalkers = change.maxActiveTalkers ?? maxActiveTalkers
        merged.autoRecord = change.autoRecord ?? autoRecord
        merged.roles = change.roles ?? roles
        merged.maxHosts = change.maxHosts ?? maxHosts
        merged.protectedRoles = change.protectedRoles ?? protectedRoles
        merged.strictModeVocabulary = change.strictModeVocabulary ?? strictModeVocabulary
        merged.roleRequestSeconds = change.roleRequestSeconds ?? roleRequestSeconds
        merged.strictPins = change.strictPins ?? strictPins
        merged.emptySeconds = change.emptySeconds.applied(to: emptySeconds)
        merged.disconnectedSeconds = change.disconnectedSeconds.applied(to: disconnectedSeconds)
        if merged.role(.moderator) == nil { merged.roles.insert(.moderator, at: 0) }
        return merged
    }
}

/// Kind of room: who may send, and whether it is a live event.
public enum RoomMode: String, Codable, Hashable, Sendable, CaseIterable {
    case group
    case lecture
    case singleHost = "single_host"
    case singleHostAudioOnly = "single_host_audio_only"

    /// Whether the room starts as `created` and passes through states; others start as `ongoing`.
    public var isLiveEvent: Bool { self == .singleHost || self == .singleHostAudioOnly }
}

/// Changes to settings; an absent member keeps its value or default.
public struct RoomSettingsChange: Codable, Hashable, Sendable {
    public var mode: RoomMode?
    public var knock: Bool?
    public var maxParticipants = Change<Int>.keep
    public var maxActiveTalkers: Int?
    public var autoRecord: Bool?
    public var roles: [Role]?
    public var maxHosts: Int?
    public var protectedRoles: [RoleName]?
    public var strictModeVocabulary: Bool?
    public var roleRequestSeconds: Int?
    public var strictPins: Bool?
    /// `null` stands for never.
    public var emptySeconds = Change<Int>.keep
    public var disconnectedSeconds = Change<Int>.keep

    public init() {}

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        mode = try container.decodeIfPresent(RoomMode.self, forKey: .mode)
        knock = try container.decodeIfPresent(Bool.self, forKey: .knock)
        maxParticipants = try container.change(in: 1...100_000, .maxParticipants)
        maxActiveTalkers = try container.integer(in: 1...100, .maxActiveTalkers)
        autoRecord = try container.decodeIfPresent(Bool.self, forKey: .autoRecord)
        try container.note(.count(0...Role.countLimit), .roles)
        roles = try container.decodeIfPresent([Role].self, forKey: .roles)
        maxHosts = try container.integer(in: 1...100, .maxHosts)
        protectedRoles = try container.decodeIfPresent([RoleName].self, forKey: .protectedRoles)
        strictModeVocabulary = try container.decodeIfPresent(
            Bool.self,
            forKey: .strictModeVocabulary
        )
        roleRequestSeconds = try container.integer(in: 1...86_400, .roleRequestSeconds)
        strictPins = try container.decodeIfPresent(Bool.self, forKey: .strictPins)
        emptySeconds = try container.change(in: 1...86_400, .emptySeconds)
        disconnectedSeconds = try container.change(in: 1...86_400, .disconnectedSeconds)
        guard let roles else { return }
        guard roles.count <= Role.countLimit else {
            throw container.refusal(.roles, "has more than \(Role.countLimit) elements")
        }
        guard Set(roles.map(\.name)).count == roles.count else {
            throw container.refusal(.roles, "names a role twice")
        }
    }
}
