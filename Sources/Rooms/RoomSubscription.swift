import RTP
package import WorkerInterface

extension Room {
    /// One viewer's wish to have one stream, and the slots that carry it.
    package struct Subscription: Sendable {
        /// Unique in the process.
        package let number: UInt64
        package let participant: String
        package internal(set) var stream: String
        package internal(set) var audioSlot: SlotName?
        package internal(set) var videoSlot: SlotName?
        /// The subscriber's own switches.
        package internal(set) var audioOn = true
        package internal(set) var videoOn = true
        package internal(set) var wishes: Wishes
        /// Why its video stands still, as last announced.
        package internal(set) var videoDisabled: DisableReason?
        /// Why its worker sends it no video though it might have it.
        var held: VideoHold?
        /// It is there because slots follow the active talkers, and ends with that.
        package internal(set) var follows = false
        /// Its sound begins there, to be told with the next binding.
        var preroll: Instant?
        /// Its first packet has been announced.
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

    package struct SlotName: Hashable, Sendable {
        package var transport: String
        package var mid: String
    }

    /// What a subscriber would like best; kept and shown, and met where layers are chosen.
    package struct Wishes: Hashable, Sendable {
        /// Pixels.
        package var width: Int?
        package var height: Int?
        package var frameRate: Double?
        package var priority: Int?
        package var audioFallback: Bool?

        package init() {}

        /// As what a worker is told.
        var cap: LayerCap { LayerCap(width: width, height: height, frameRate: frameRate) }
    }

    /// Why a subscriber gets no video.
    package enum DisableReason: String, Hashable, Sendable {
        case publisher, subscriber, quality, codec, muted, role, interrupted
    }
}
