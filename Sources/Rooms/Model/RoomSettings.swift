package import WorkerInterface

extension Room {
    /// Kind of meeting; fixed at creation.
    package enum Kind: String, Hashable, Sendable, CaseIterable, Codable {
        case group
        case lecture
        case singleHost = "single_host"
        case singleHostAudioOnly = "single_host_audio_only"

        /// Whether the room is a live event.
        ///
        /// Live events have hosts and the four states; other rooms are always `ongoing`.
        package var isLiveEvent: Bool {
            switch self {
            case .group, .lecture: false
            case .singleHost, .singleHostAudioOnly: true
            }
        }
    }

    package enum State: String, Hashable, Sendable, Codable { case created, ready, ongoing, ended }

    /// Settings of a room that affect its behavior here.
    package struct Settings: Hashable, Sendable, Codable {
        package var kind = Kind.group
        /// Whether joiners other than moderators wait for approval.
        package var knock = false
        /// Maximum number of participants; `nil`: the daemon's limit.
        package var maxParticipants: Int?
        /// Maximum number of hosts of a live event that are forwarded at a time.
        package var maxHosts = 1
        /// Whether mode names of only one vocabulary, old or new, are accepted.
        package var strictModeVocabulary = false
        /// Length of the active-speaker list; pins leave one entry free.
        package var maxActiveTalkers = 6
        /// Whether pins are limited to the length of that list, less one; else they extend it.
        package var strictPins = true
        /// Roles exempt from a change of all roles.
        package var protectedRoles: Set<String> = []
        /// Whether the room is recorded from its first stream on.
        package var autoRecord = false
        /// Seconds until a role-change request expires.
        package var roleRequestSeconds = 60
        /// Seconds until a room that nobody is in ends; `nil`: never.
        package var emptySeconds: Int? = 60
        /// Seconds until a participant whose last transport was lost leaves; `nil`: never.
        package var disconnectedSeconds: Int? = 120
        package var roles = Role.builtIn

        package init() {}

        package func role(named name: String) -> Role? { roles.first { $0.name == name } }
    }

    /// Role: the rights to publish, receive and moderate.
    package struct Role: Hashable, Sendable, Codable {
        package var name: String
        package var publish: PublishRights
        /// Roles whose streams a holder may receive; `nil`: all.
        package var watches: Set<String>?
        /// Maximum layer that a holder is sent.
        package var subscribeCap = LayerCap.none
        /// Permission words; unknown ones are kept, because the application may use them.
        package var permissions: Set<String>
        /// Priority of holders' videos for subscribers that state none, 0 to 1000.
        package var priority = 0

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

        /// Name of the moderator role, also the host of a live event; every room has it.
        package static let moderatorName = "moderator"
        package static let participantName = "participant"

        package static let moderator = Self(
            name: moderatorName,
            publish: .all,
            permissions: Set(Permission.allCases.map(\.rawValue))
        )

        /// Roles of a room created without any.
        package static let builtIn = [
            moderator,
            Self(name: participantName, publish: .all),
            Self(name: "viewer"),
        ]
    }

    package struct PublishRights: Hashable, Sendable, Codable {
        package var audio = false
        package var video = false
        /// Whether screen video and screen audio may be sent.
        package var screen = false
        /// Maximum layer of a camera; higher ones are forwarded to nobody.
        package var cap = LayerCap.none
        /// Maximum layer of a screen; without one, screens are free of `cap` too.
        package var screenCap = LayerCap.none
        /// Maximum bitrate of a microphone, in bits a second.
        package var audioBitrate: Int?
        /// Whether an answer accepts several encodings of a video.
        package var simulcast = true
        package init() {}

        func allows(_ kind: MediaKind, from source: MediaSource) -> Bool {
            switch (source, kind) {
            case (.screen, _): screen
            case (.camera, .audio), (.microphone, .audio): audio
            case (.camera, .video), (.microphone, .video): video
            }
        }

        /// Returns the cap of a publication; a screen's audio has none.
        func cap(of kind: MediaKind, from source: MediaSource) -> LayerCap {
            switch (source, kind) {
            case (.screen, .video): screenCap
            case (.screen, .audio): .none
            case (.camera, .video), (.microphone, .video): cap
            case (.camera, .audio), (.microphone, .audio): LayerCap(bitrate: audioBitrate)
            }
        }

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

    /// Participation mode: sending, receiving or signalling only.
    package enum Mode: String, Hashable, Sendable, CaseIterable, Codable {
        case sendAndReceive = "SEND_AND_RECV"
        case receiveOnly = "RECV_ONLY"
        /// Receives the room's events, but has no transport.
        case signallingOnly = "SIGNALLING_ONLY"
    }

    /// Set of mode names that a caller uses; `old` is CONFERENCE and VIEWER.
    package enum ModeVocabulary: String, Hashable, Sendable, Codable { case current, old }
}
