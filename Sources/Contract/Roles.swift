/// Name of a role.
public typealias RoleName = Identifier<Role>

extension RoleName {
    public static let moderator: Self = "moderator"
    public static let participant: Self = "participant"
    public static let viewer: Self = "viewer"
}

/// Rights of the participants who have a role.
public struct Role: Codable, Hashable, Sendable {
    /// Most roles that one call may name; the server's own limit on a room may be lower.
    public static let countLimit = 1_024

    public var name: RoleName
    public var publish: PublishRights
    public var subscribe: SubscribeRights
    public var permissions: [Permission]
    /// Priority of its holders' videos for viewers who name none; 0 by default.
    public var priority: Priority?

    public init(
        name: RoleName,
        publish: PublishRights = PublishRights(),
        subscribe: SubscribeRights = SubscribeRights(),
        permissions: [Permission] = [],
        priority: Priority? = nil
    ) {
        self.name = name
        self.publish = publish
        self.subscribe = subscribe
        self.permissions = permissions
        self.priority = priority
    }

    /// Decodes a role; absent rights are not granted.
    ///
    /// A role without `subscribe` may receive all media.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        name = try container.decode(RoleName.self, forKey: .name)
        publish =
            try container.decodeIfPresent(PublishRights.self, forKey: .publish) ?? PublishRights()
        subscribe =
            try container.decodeIfPresent(SubscribeRights.self, forKey: .subscribe)
            ?? SubscribeRights()
        permissions =
            try container.decodeIfPresent([Permission].self, forKey: .permissions) ?? []
        priority = try container.decodeIfPresent(Priority.self, forKey: .priority)
    }

    public static let moderator = Self(
        name: .moderator,
        publish: PublishRights(audio: true, video: true, screen: true),
        permissions: Permission.known
    )

    /// Roles of a room whose settings name none.
    public static let defaults: [Self] = [
        .moderator,
        Self(
            name: .participant,
            publish: PublishRights(audio: true, video: true, screen: true)
        ),
        Self(name: .viewer),
    ]
}

/// Media that a role may receive, with upper bounds.
public struct SubscribeRights: Codable, Hashable, Sendable {
    /// Roles whose media it may receive; `nil` for all.
    public var roles: [RoleName]?
    /// Pixels.
    public var maxWidth: Int?
    public var maxHeight: Int?
    /// Bits a second of each video, not of all together.
    public var maxBitrate: Int?

    public init(roles: [RoleName]? = nil) { self.roles = roles }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        roles = try container.decodeIfPresent([RoleName].self, forKey: .roles)
        maxWidth = try container.integer(in: Limits.pixels, .maxWidth)
        maxHeight = try container.integer(in: Limits.pixels, .maxHeight)
        maxBitrate = try container.integer(in: Limits.bitrate, .maxBitrate)
    }
}

/// A right beyond sending and receiving; an unknown one is kept and grants nothing.
public typealias Permission = Identifier<PublishRights>

extension Permission {
    public static let changeRole: Self = "changeRole"
    public static let mute: Self = "mute"
    public static let lock: Self = "lock"
    public static let drop: Self = "drop"
    public static let close: Self = "close"
    public static let approve: Self = "approve"
    public static let floor: Self = "floor"
    public static let pin: Self = "pin"
    public static let record: Self = "record"
    public static let stream: Self = "stream"
    public static let state: Self = "state"
    public static let update: Self = "update"
    public static let mode: Self = "mode"
    public static let unpublish: Self = "unpublish"

    public static let known: [Self] = [
        changeRole, mute, lock, drop, close, approve, floor, pin, record, stream, state, update,
        mode, unpublish,
    ]
}
