import RTP
package import WorkerInterface

extension Room {
    /// Subscription of one receiver to one stream, with the slots that carry it.
    package struct Subscription: Sendable, Codable {
        /// Number, unique in the process.
        package let number: UInt64
        package let participant: String
        package internal(set) var stream: String
        package internal(set) var audioSlot: SlotName?
        package internal(set) var videoSlot: SlotName?
        /// Whether the subscriber itself has audio and video on.
        package internal(set) var audioOn = true
        package internal(set) var videoOn = true
        package internal(set) var preferences: Preferences
        /// Reason why its video is disabled, as last announced.
        package internal(set) var videoDisabled: DisableReason?
        /// Reason why the worker withholds video that rights and switches allow.
        var held: VideoHold?
        /// Whether following slots made the subscription; it then ends with them.
        package internal(set) var follows = false
        /// Start of the audio to replay, sent with the next binding.
        var preroll: Instant?
        /// Media that its participant's session counts as received.
        var counted: Set<SessionMedia> = []
        /// Whether its first packet has been announced.
        package internal(set) var connected = false

        package var id: String { "sub-\(number)" }

        static func number(of id: String) -> UInt64? {
            guard id.hasPrefix("sub-") else { return nil }
            return UInt64(id.dropFirst(4))
        }

        package func slot(_ kind: MediaKind) -> SlotName? {
            switch kind {
            case .audio: audioSlot
            case .video: videoSlot
            }
        }

        var slots: [MediaKind: SlotName] {
            var slots: [MediaKind: SlotName] = [:]
            for kind in MediaKind.allCases { slots[kind] = slot(kind) }
            return slots
        }

        mutating func set(_ slot: SlotName?, for kind: MediaKind) {
            switch kind {
            case .audio: audioSlot = slot
            case .video: videoSlot = slot
            }
        }

        func isOn(_ kind: MediaKind) -> Bool {
            switch kind {
            case .audio: audioOn
            case .video: videoOn
            }
        }
    }

    /// Name of a slot within a participant: its transport and mid.
    package struct SlotName: Hashable, Sendable, Codable {
        package var transport: String
        package var mid: String
    }

    /// Subscriber's preferences, applied when layers are chosen.
    package struct Preferences: Hashable, Sendable, Codable {
        /// Preferred video size, in pixels.
        package var width: Int?
        package var height: Int?
        package var frameRate: Double?
        package var priority: Int?
        package var audioFallback: Bool?

        package init() {}

        /// Preferred size and frame rate as a layer cap for the worker.
        var cap: LayerCap { LayerCap(width: width, height: height, frameRate: frameRate) }
    }

    /// Reason why a subscriber gets no video.
    package enum DisableReason: String, Hashable, Sendable, Codable {
        case publisher, subscriber, quality, codec, muted, role, interrupted
    }
}
