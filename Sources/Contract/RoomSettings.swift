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
        let defaults = Self()
        var merged = self
        merged.mode = change.mode.applied(to: mode) ?? defaults.mode
        merged.knock = change.knock.applied(to: knock) ?? defaults.knock
        merged.maxParticipants = change.maxParticipants.applied(to: maxParticipants)
        merged.maxActiveTalkers =
            change.maxActiveTalkers.applied(to: maxActiveTalkers) ?? defaults.maxActiveTalkers
        merged.autoRecord = change.autoRecord.applied(to: autoRecord) ?? defaults.autoRecord
        merged.roles = change.roles.applied(to: roles) ?? defaults.roles
        merged.maxHosts = change.maxHosts.applied(to: maxHosts) ?? defaults.maxHosts
        merged.protectedRoles =
            change.protectedRoles.applied(to: protectedRoles) ?? defaults.protectedRoles
        merged.strictModeVocabulary =
            change.strictModeVocabulary.applied(to: strictModeVocabulary)
            ?? defaults.strictModeVocabulary
        merged.roleRequestSeconds =
            change.roleRequestSeconds.applied(to: roleRequestSeconds)
            ?? defaults.roleRequestSeconds
        merged.strictPins = change.strictPins.applied(to: strictPins) ?? defaults.strictPins
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

/// Changes to settings: an absent member keeps its value or default, and `null` brings the default
/// back.
public struct RoomSettingsChange: Codable, Hashable, Sendable {
    public var mode = Change<RoomMode>.keep
    public var knock = Change<Bool>.keep
    public var maxParticipants = Change<Int>.keep
    public var maxActiveTalkers = Change<Int>.keep
    public var autoRecord = Change<Bool>.keep
    public var roles = Change<[Role]>.keep
    public var maxHosts = Change<Int>.keep
    public var protectedRoles = Change<[RoleName]>.keep
    public var strictModeVocabulary = Change<Bool>.keep
    public var roleRequestSeconds = Change<Int>.keep
    public var strictPins = Change<Bool>.keep
    /// `null` stands for never.
    public var emptySeconds = Change<Int>.keep
    /// `null` stands for never.
    public var disconnectedSeconds = Change<Int>.keep

    public init() {}

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        mode = try container.decode(Change<RoomMode>.self, forKey: .mode)
        knock = try container.decode(Change<Bool>.self, forKey: .knock)
        maxParticipants = try container.change(in: 1...100_000, .maxParticipants)
        maxActiveTalkers = try container.change(in: 1...100, .maxActiveTalkers)
        autoRecord = try container.decode(Change<Bool>.self, forKey: .autoRecord)
        try container.note(.count(0...Role.countLimit), .roles)
        roles = try container.decode(Change<[Role]>.self, forKey: .roles)
        maxHosts = try container.change(in: 1...100, .maxHosts)
        protectedRoles = try container.decode(Change<[RoleName]>.self, forKey: .protectedRoles)
        strictModeVocabulary = try container.decode(
            Change<Bool>.self,
            forKey: .strictModeVocabulary
        )
        roleRequestSeconds = try container.change(in: 1...86_400, .roleRequestSeconds)
        strictPins = try container.decode(Change<Bool>.self, forKey: .strictPins)
        emptySeconds = try container.change(in: 1...86_400, .emptySeconds)
        disconnectedSeconds = try container.change(in: 1...86_400, .disconnectedSeconds)
        guard case .set(let roles) = self.roles else { return }
        guard roles.count <= Role.countLimit else {
            throw container.refusal(.roles, "has more than \(Role.countLimit) elements")
        }
        guard Set(roles.map(\.name)).count == roles.count else {
            throw container.refusal(.roles, "names a role twice")
        }
    }
}
