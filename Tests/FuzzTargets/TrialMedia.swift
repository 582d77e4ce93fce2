import HostilePeer
import RTP
import WorkerInterface

/// Negotiated media of the parties of a trial: each codec, with and without simulcast.
enum TrialMedia {
    /// Video payload types count from 96 in steps of two, RTX is one above; RED has 100, Opus 111.
    private static let video = [Codec.vp8, .vp9, .h264, .av1].enumerated().map { index, codec in
        FormatMapping(
            format: MediaFormat(codec: codec),
            payloadType: 96 + 2 * UInt8(index),
            rtxPayloadType: 97 + 2 * UInt8(index),
            feedback: [.nack, .pictureLoss, .fullIntraRequest, .transportWide]
        )
    }
    private static let audio = [
        FormatMapping(
            format: MediaFormat(codec: .opus),
            payloadType: 111,
            feedback: .transportWide
        ),
        FormatMapping(format: MediaFormat(codec: .red), payloadType: 112),
    ]

    private static func formats(_ kind: MediaKind) -> [FormatMapping] {
        kind == .audio ? audio : video
    }

    private static let extensions: ExtensionMap = {
        var map = ExtensionMap()
        map[.audioLevel] = 1
        map[.absoluteSendTime] = 2
        map[.transportSequenceNumber] = 3
        map[.mid] = 4
        map[.absoluteCaptureTime] = 9
        map[.rid] = 10
        map[.repairedRID] = 11
        map[.dependencyDescriptor] = 12
        map[.videoOrientation] = 13
        map[.playoutDelay] = 14
        map[.videoLayersAllocation] = 8
        return map
    }()

    /// Publications: audio; video that the SSRC 0x2222 names; video in three encodings.
    static let publications = (0..<3).map { index in
        let kind: MediaKind = index == 0 ? .audio : .video
        let encodings: [String?] = index == 2 ? ["a", "b", "c"] : [nil]
        return PublicationConfiguration(
            id: PublicationID(index: UInt32(index), generation: 1),
            mid: "\(index)",
            kind: kind,
            formats: formats(kind),
            extensions: extensions,
            encodings: encodings.map { rid in
                EncodingConfiguration(rid: rid, ssrc: index == 1 ? SSRC(rawValue: 0x2222) : nil)
            }
        )
    }

    /// Slots, one for each publication.
    static let slots = (0..<3).map { index in
        slot(UInt32(index), index == 0 ? .audio : .video, ssrc: 0xd000 + 16 * UInt32(index))
    }

    /// Slots of the sender, which watches itself too.
    static let ownSlots = [slot(3, .video, ssrc: 0xe000)]

    private static func slot(_ index: UInt32, _ kind: MediaKind, ssrc: UInt32) -> SlotConfiguration
    {
        SlotConfiguration(
            id: SlotID(index: index, generation: 1),
            mid: "v\(index)",
            kind: kind,
            ssrc: SSRC(rawValue: ssrc),
            rtxSSRC: kind == .video ? SSRC(rawValue: ssrc + 1) : nil,
            formats: formats(kind),
            extensions: extensions
        )
    }

    /// Ids of the header extensions that an adversary may put into its packets.
    static let forgedExtensions: ForgedMedia.Extensions = {
        var ids = ForgedMedia.Extensions()
        ids.audioLevel = extensions[.audioLevel]
        ids.sendTime = extensions[.absoluteSendTime]
        ids.transportSequence = extensions[.transportSequenceNumber]
        ids.captureTime = extensions[.absoluteCaptureTime]
        ids.descriptor = extensions[.dependencyDescriptor]
        ids.layersAllocation = extensions[.videoLayersAllocation]
        ids.mid = extensions[.mid]
        return ids
    }()

    static func binding(to publication: Int) -> Binding {
        Binding(publication: publications[publication].id, subscription: 7, open: true)
    }

    /// Makes a control-plane command to mix in.
    static func command(
        _ byte: UInt8,
        _ hostile: borrowing TrialParty,
        _ viewer: borrowing TrialParty
    ) -> WorkerCommand {
        let index = Int(byte & 0x03) % publications.count
        let isOn = byte & 0x04 != 0
        switch byte >> 3 & 0x07 {
        case 0: return .gate(publications[index].id, open: isOn)
        case 1: return .bind(slots[index].id, isOn ? binding(to: index) : nil)
        case 2:
            var binding = binding(to: index)
            binding.preference = isOn ? LayerCap(width: 320, height: 180) : .none
            binding.priority = isOn ? 1 : 0
            return .bind(slots[index].id, binding)
        case 3: return .explain(slots[index].id, token: 1)
        case 4:
            var configuration = hostile.configuration
            if !isOn { configuration.publications.remove(at: index) }
            return .configure(hostile.id, configuration)
        case 5:
            var configuration = hostile.configuration
            if !isOn { configuration.publications[2].encodings.removeLast() }
            return .configure(hostile.id, configuration)
        case 6:
            let cap = isOn ? LayerCap(width: 200, height: 200, bitrate: 100_000) : .none
            return .limit(publications[index].id, cap)
        default: return .fence(epoch: 1)
        }
    }
}
