import RTP
package import WorkerInterface

extension Room {
    package struct Participant: Registered {
        package let id: String
        /// Orders participants by when they came.
        package let birth: UInt64
        package internal(set) var name: String?
        package internal(set) var role: String
        package internal(set) var mode: Mode
        /// What a moderator has muted; it holds for what is published later too.
        package internal(set) var hardMuted: Set<MediaKind> = []
        /// `false`: has knocked and waits.
        package internal(set) var admitted: Bool
        package internal(set) var connection: Connection
        /// Unix time, in seconds.
        package let joined: Double
        package internal(set) var transports: [Transport] = []
        /// It has had a transport since it joined.
        var hasConnected = false
        /// In the order in which they were made.
        package internal(set) var subscriptions: [UInt64] = []
        package internal(set) var streams: [String] = []

        package var isListed: Bool { admitted }
    }

    package enum Connection: String, Hashable, Sendable {
        /// Has had no transport yet, or closed it.
        case none
        /// An offer was answered; ICE or DTLS are not done.
        case connecting
        case connected, reconnecting, disconnected
    }

    /// One WebRTC association of a participant.
    package struct Transport: Sendable {
        package let name: String
        package let place: TransportPlace
        var negotiation: Negotiation
        package internal(set) var connection: Connection
        package internal(set) var tracks: [Track] = []
        /// In m-line order.
        package internal(set) var slots: [Slot] = []
        /// The publisher allows its viewers' video to be switched off where the path is too thin.
        var audioFallback = true

        /// What a transport is called that was given no name.
        package static let usualName = "main"

        func home(of track: Track) -> RelayTarget {
            RelayTarget(worker: place.worker, publication: track.publication)
        }
    }

    /// An m-line on which a participant sends.
    package struct Track: Sendable {
        package internal(set) var source: MediaSource
        /// As last agreed on.
        package internal(set) var configuration: PublicationConfiguration
        /// It was unpublished: it carries nothing until the m-line stops sending and starts anew.
        var withdrawn = false
        /// The worker's gate, as last told; `nil` for a worker that was told nothing yet.
        var gate: Bool?
        /// Since when somebody has been speaking into it.
        var speaking: Instant?

        package var mid: String { configuration.mid }
        package var kind: MediaKind { configuration.kind }
        package var publication: PublicationID { configuration.id }
        /// The most preferred of those agreed on.
        var codec: Codec? { configuration.formats.first?.format.codec }
    }

    /// An m-line on which a participant receives.
    package struct Slot: Sendable {
        package let mid: String
        package let kind: MediaKind
        package let id: SlotID
        /// The client plays an audio and a video slot of one number in sync.
        let pair: Int
        /// What the receiver can decode here.
        var codecs: CodecSet
        package internal(set) var subscription: UInt64?
        /// It carries who talks, and nothing that is asked for by name.
        package internal(set) var follows = false
        /// What the worker was last told to put here.
        var bound: Feed?
    }

    /// Where a transport lives: the worker, and its place there.
    package struct TransportPlace: Hashable, Sendable {
        package var worker: Int
        package var id: TransportID

        package init(worker: Int, id: TransportID) {
            self.worker = worker
            self.id = id
        }
    }

    /// Anything of a room that lives in a worker, by its handle there.
    package enum Place: Hashable, Sendable {
        case transport(worker: Int, TransportID)
        case publication(worker: Int, PublicationID)
        case slot(worker: Int, SlotID)
        /// Unique in the process, so no worker is named.
        case subscription(UInt64)
        case tap(TapID)
    }

    /// What others can subscribe to: a camera with its microphone, or a screen with its sound.
    ///
    /// It lasts while one of its m-lines sends and its publisher is on stage.
    package struct Stream: Registered {
        package let id: String
        package let birth: UInt64
        package let participant: String
        package let transport: String
        let worker: Int
        package let isScreen: Bool
        /// Unix time, in seconds.
        package let created: Double
        package internal(set) var audio: PublicationID?
        package internal(set) var video: PublicationID?
        /// The publisher's own switches.
        package internal(set) var audioOn = true
        package internal(set) var videoOn = true
        package internal(set) var audioFallback: Bool
        /// What a moderator has muted.
        package internal(set) var hardMuted: Set<MediaKind> = []
        /// As they last came; before that, as they were agreed on.
        package internal(set) var audioCodec: Codec?
        package internal(set) var videoCodec: Codec?
        /// Video of `videoCodec` has come.
        var hasVideoCome = false
        package internal(set) var layers: [LayerDescription] = []
        /// Which encodings of its video each worker has viewers for, a bit each.
        var wanted: [Int: UInt8] = [:]
        /// What of that its publisher was told last; before, it sends all that it likes.
        var wantedTold = UInt8.max
        var subscribers: Set<UInt64> = []

        package var isListed: Bool { true }

        /// As a listing names it.
        package var source: MediaSource {
            if isScreen { return .screen }
            return video == nil ? .microphone : .camera
        }

        /// Whether this m-line is the one that the stream's viewers get.
        package func carries(_ track: Track) -> Bool {
            publication(track.kind) == track.publication
        }

        func publication(_ kind: MediaKind) -> PublicationID? {
            switch kind {
            case .audio: audio
            case .video: video
            }
        }

        /// Whether neither its publisher nor a moderator has switched a kind off.
        package func isHeard(_ kind: MediaKind) -> Bool {
            isOn(kind) && !hardMuted.contains(kind)
        }

        /// Where the publication of a kind comes in.
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
