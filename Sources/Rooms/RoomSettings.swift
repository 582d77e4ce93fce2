package import WorkerInterface

extension Room {
    /// What kind of meeting it is; it never changes.
    package enum Kind: String, Hashable, Sendable, CaseIterable {
        case group
        case lecture
        case singleHost = "single_host"
        case singleHostAudioOnly = "single_host_audio_only"

        /// Live events have the four states and hosts; the others are always `ongoing`.
        package var isLiveEvent: Bool {
            switch self {
            case .group, .lecture: false
            case .singleHost, .singleHostAudioOnly: true
            }
        }
    }

    package enum State: String, Hashable, Sendable { case created, ready, ongoing, ended }

    /// How a room was set up, as far as it decides something here.
    package struct Settings: Hashable, Sendable {
        package var kind = Kind.group
        /// Joiners other than moderators wait until they are approved.
        package var knock = false
        /// `nil`: as many as the daemon allows.
        package var maxParticipants: Int?
        /// Hosts of a live event whose streams go out at one time.
        package var maxHosts = 1
        /// Refuses the old mode names in a room that has heard the new ones, and the reverse.
        package var strictModeVocabulary = false
        /// Pins leave one of these places free.
        package var maxActiveTalkers = 6
        /// Roles that a change of all roles leaves alone.
        package var protectedRoles: Set<String> = []
        /// It is recorded from its first stream on.
        package var autoRecord = false
        /// How long a request to change role stays open, in seconds.
        package var roleRequestSeconds = 60
        package var roles = Role.builtIn

        package init() {}

        package func role(named name: String) -> Role? { roles.first { $0.name == name } }
    }

    /// What its holders may send, see and do.
    package struct Role: Hashable, Sendable {
        package var name: String
        package var publish: PublishRights
        /// The roles whose streams they may watch; `nil`: all.
        package var watches: Set<String>?
        /// The most of a video that they are sent.
        package var subscribeCap = LayerCap.none
        /// Words that grant nothing here are kept: a room may mean something by them.
        package var permissions: Set<String>

        package init(
            name: String,
            publish: PublishRights = PublishRights(),
            watches: Set<String>? = nil,
            permissions: Set<String> = []
        ) {
            self.name = name
            self.publish = publish
            self.watches = watches
            self.permissions = permissions
        }

        /// The host of a live event; every room has this role.
        package static let moderatorName = "moderator"
        package static let participantName = "participant"

        package static let moderator = Self(
            name: moderatorName,
            publish: .all,
            permissions: Set(Permission.allCases.map(\.rawValue))
        )

        /// The roles of a room that was given none.
        package static let builtIn = [
            moderator,
            Self(name: participantName, publish: .all),
            Self(name: "viewer"),
        ]
    }

    package struct PublishRights: Hashable, Sendable {
        package var audio = false
        package var video = false
        /// A screen's picture and its sound.
        package var screen = false
        /// Layers of a video above it are forwarded to nobody.
        package var cap = LayerCap.none
        package init() {}

        package static let all: Self = {
            var rights = Self()
            rights.audio = true
            rights.video = true
            rights.screen = true
            return rights
        }()
    }

    package enum Permission: String, Hashable, Sendable, CaseIterable {
        case changeRole, mute, lock, drop, close, approve, floor, pin, record, stream
        case state, update, mode, unpublish
    }

    /// What a participant does in the room.
    package enum Mode: String, Hashable, Sendable, CaseIterable {
        case sendAndReceive = "SEND_AND_RECV"
        case receiveOnly = "RECV_ONLY"
        /// Is in the room and hears of it, but has no transport.
        case signallingOnly = "SIGNALLING_ONLY"
    }

    /// Which set of mode names a caller speaks; `old` is CONFERENCE and VIEWER.
    package enum ModeVocabulary: Hashable, Sendable { case current, old }
}
