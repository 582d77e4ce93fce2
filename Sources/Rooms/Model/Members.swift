import RTP
package import WorkerInterface

extension Room {
    package struct Participant: RosterElement, Codable {
        package let id: String
        /// Creation order within the room.
        package let birth: UInt64
        package internal(set) var name: String?
        package internal(set) var role: String
        package internal(set) var mode: Mode
        /// Kinds muted by a moderator; applies to later publications too, and after a return.
        package internal(set) var hardMuted: Set<MediaKind> = []
        /// Whether the participant has been admitted; `false` while it awaits approval.
        package internal(set) var admitted: Bool
        package internal(set) var connection: Connection {
            didSet { if connection != .disconnected { lost = nil } }
        }
        /// Time at which the last transport was lost; `nil` unless it is disconnected.
        var lost: Instant?
        /// Unix time, in seconds.
        package let joined: Double
        /// Account of its stay.
        package internal(set) var session = Session(began: Instant(nanoseconds: 0))
        package internal(set) var transports: [Transport] = []
        /// Whether the participant has had a transport since it joined.
        var hasConnected = false
        /// Subscription numbers, in creation order.
        package internal(set) var subscriptions: [UInt64] = []
        package internal(set) var streams: [String] = []
        /// Other node to which the participant connects; `nil` for this one.
        package internal(set) var node: String?
        /// Place where the participant has been asked to go; `nil` unless it is still to go there.
        package internal(set) var move: Move?

        /// Node of one of its transports; `nil`: this one.
        func node(of transport: Transport) -> String? {
            transport.site.map(\.node) ?? node
        }

        package var isListed: Bool { admitted }
        /// Whether it is a moderator who has been admitted.
        package var isMarked: Bool { admitted && role == Role.moderatorName }
    }

    package enum Connection: String, Hashable, Sendable, Codable {
        /// No transport yet, or the last one was closed.
        case none
        /// An offer was answered; ICE or DTLS has not completed.
        case connecting
        case connected, reconnecting, disconnected
    }

    /// WebRTC transport of a participant (ICE and DTLS).
    package struct Transport: Sendable, Codable {
        package internal(set) var name: String
        package internal(set) var place: TransportLocation
        package internal(set) var connection: Connection
        package internal(set) var tracks: [Track] = []
        /// Receiving m-lines, in m-line order.
        package internal(set) var slots: [Slot] = []
        /// Whether the publisher allows switching off video to keep audio, for all streams that
        /// say nothing else themselves; `nil`: only for those that are no screen share.
        var audioFallback: Bool?
        /// Attributes of the camera's and the screen's stream.
        var camera = StreamAttributes()
        var screen = StreamAttributes()
        /// Name of the transport whose place this one takes once it is connected; `nil` for most.
        var succeeds: String?
        /// Node where it is; `nil` for a transport that is older than this record of it.
        var site: Site?

        /// Default name of a transport.
        package static let defaultName = "main"

        func home(of track: Track) -> RelayTarget {
            RelayTarget(worker: place.worker, publication: track.publication)
        }
    }

    /// Published media of one m-line.
    package struct Track: Sendable, Codable {
        package internal(set) var source: MediaSource
        /// Configuration as last negotiated.
        package internal(set) var configuration: PublicationConfiguration
        /// Whether the track was unpublished; it stays silent until the client stops and restarts
        /// sending on its m-line.
        var withdrawn = false
        /// State of the worker's gate as last sent; `nil` if nothing was sent yet.
        var gate: Bool?
        /// Start of the present speech on this track; `nil` while nobody speaks.
        var speaking: Instant?

        package var mid: String { configuration.mid }
        package var kind: MediaKind { configuration.kind }
        package var publication: PublicationID { configuration.id }
        /// The most preferred of the negotiated codecs.
        var codec: Codec? { configuration.formats.first?.format.codec }
    }

    /// Receiving m-line of a participant.
    package struct Slot: Sendable, Codable {
        package let mid: String
        package let kind: MediaKind
        package internal(set) var id: SlotID
        /// Lip-sync pair: the client plays an audio and a video slot with the same number in sync.
        let pair: Int
        /// Codecs that the receiver can decode on this m-line.
        var codecs: CodecSet
        package internal(set) var subscription: UInt64?
        /// Whether the slot follows the active speakers; it then takes no explicit subscriptions.
        package internal(set) var follows = false
        /// Media last assigned to the slot in the worker.
        var bound: Feed?
    }

    /// Location of a transport: a worker and the handle there.
    package struct TransportLocation: Hashable, Sendable, Codable {
        package var worker: Int
        package var id: TransportID

        package init(worker: Int, id: TransportID) {
            self.worker = worker
            self.id = id
        }
    }

    /// Reference to a worker-side object of a room, by its handle there.
    package enum WorkerResource: Hashable, Sendable {
        case transport(worker: Int, TransportID)
        case publication(worker: Int, PublicationID)
        case slot(worker: Int, SlotID)
        /// A subscription; its number is unique in the process, so it needs no worker.
        case subscription(UInt64)
        case tap(OutputID)
    }

    /// Unit of subscription: a camera with its microphone, or a screen with its sound.
    ///
    /// It exists while one of its m-lines sends and the publisher's rights let others see it.
    package struct Stream: RosterElement, Codable {
        package let id: String
        package let birth: UInt64
        package let participant: String
        package let transport: String
        private(set) var worker: Int
        package let isScreen: Bool
        /// Unix time, in seconds.
        package let created: Double
        package internal(set) var audio: PublicationID?
        package internal(set) var video: PublicationID?
        /// Whether the publisher itself has audio and video on.
        package internal(set) var audioOn = true
        package internal(set) var videoOn = true
        package internal(set) var name: String?
        /// Callers' data, the JSON text of an object; `nil` for an empty one.
        package internal(set) var custom: String?
        /// Whether video may be switched off to keep audio, as its publisher allows.
        package internal(set) var audioFallback = true
        /// Kinds muted by a moderator, with the participant or with the room.
        package internal(set) var hardMuted: Set<MediaKind> = []
        /// Codecs in use; until media arrives, the preferred negotiated ones.
        package internal(set) var audioCodec: Codec?
        package internal(set) var videoCodec: Codec?
        /// Whether video of `videoCodec` has been received.
        var hasVideoCome = false
        package internal(set) var layers: [LayerDescription] = []
        /// Encodings that each worker's subscribers need, one bit each.
        var demand: [Int: UInt8] = [:]
        /// Needed encodings as last announced to the publisher; initially all.
        var announcedDemand = UInt8.max
        var subscribers: Set<UInt64> = []

        /// Goes on at another worker, where it carries nothing yet.
        mutating func move(to place: TransportLocation) {
            worker = place.worker
            audio = nil
            video = nil
        }

        package var isListed: Bool { true }

        /// Source shown in listings.
        package var source: MediaSource {
            if isScreen { return .screen }
            return video == nil ? .microphone : .camera
        }

        /// Whether subscribers of the stream receive this track.
        package func carries(_ track: Track) -> Bool {
            publication(track.kind) == track.publication
        }

        func publication(_ kind: MediaKind) -> PublicationID? {
            switch kind {
            case .audio: audio
            case .video: video
            }
        }

        /// Whether a kind is switched on by its publisher and not muted by a moderator.
        package func isEnabled(_ kind: MediaKind) -> Bool {
            isOn(kind) && !hardMuted.contains(kind)
        }

        /// Sets where the publication of a kind is; a stream's publications are in one worker.
        mutating func set(_ home: RelayTarget, for kind: MediaKind) {
            worker = home.worker
            switch kind {
            case .audio: audio = home.publication
            case .video: video = home.publication
            }
        }

        /// Returns the worker and handle that receive the publication of a kind.
        func home(_ kind: MediaKind) -> RelayTarget? {
            publication(kind).map { RelayTarget(worker: worker, publication: $0) }
        }

        func isOn(_ kind: MediaKind) -> Bool {
            switch kind {
            case .audio: audioOn
            case .video: videoOn
            }
        }
    }
}
