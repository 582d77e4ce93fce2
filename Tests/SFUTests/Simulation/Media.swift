import RTP
import SFU
import WorkerInterface

/// Configurations and packets as Chromium sends them.
enum Media {
    static let opus = FormatMapping(
        format: MediaFormat(codec: .opus),
        payloadType: 111,
        feedback: .transportWide
    )
    static let vp8 = FormatMapping(
        format: MediaFormat(codec: .vp8),
        payloadType: 96,
        rtxPayloadType: 97,
        feedback: [.nack, .pictureLoss, .fullIntraRequest, .transportWide]
    )
    /// A viewer's format with other payload types.
    static let viewerVP8 = FormatMapping(
        format: MediaFormat(codec: .vp8),
        payloadType: 120,
        rtxPayloadType: 124,
        feedback: [.nack, .pictureLoss, .transportWide]
    )

    static var extensions: ExtensionMap {
        var map = ExtensionMap()
        map[.mid] = 4
        map[.rid] = 10
        map[.repairedRID] = 11
        map[.audioLevel] = 1
        map[.absoluteSendTime] = 2
        map[.transportSequenceNumber] = 3
        return map
    }

    static var viewerExtensions: ExtensionMap {
        var map = ExtensionMap()
        map[.mid] = 9
        map[.absoluteSendTime] = 5
        map[.transportSequenceNumber] = 7
        map[.audioLevel] = 6
        return map
    }

    static func audio(_ index: UInt32, ssrc: UInt32? = 0x1111) -> PublicationConfiguration {
        PublicationConfiguration(
            id: PublicationID(index: index, generation: 1),
            mid: "0",
            kind: .audio,
            formats: [opus],
            extensions: extensions,
            encodings: [EncodingConfiguration(ssrc: ssrc.map(SSRC.init(rawValue:)))]
        )
    }

    static func video(
        _ index: UInt32,
        rids: [String?] = [nil],
        ssrc: UInt32? = nil
    ) -> PublicationConfiguration {
        PublicationConfiguration(
            id: PublicationID(index: index, generation: 1),
            mid: "1",
            kind: .video,
            formats: [vp8],
            extensions: extensions,
            encodings: rids.map {
                EncodingConfiguration(rid: $0, ssrc: ssrc.map(SSRC.init(rawValue:)))
            }
        )
    }

    static func slot(
        _ index: UInt32,
        kind: MediaKind = .video,
        ssrc: UInt32 = 0xaaaa,
        hasRTX: Bool = true,
        formats: [FormatMapping]? = nil
    ) -> SlotConfiguration {
        SlotConfiguration(
            id: SlotID(index: index, generation: 1),
            mid: "v\(index)",
            kind: kind,
            ssrc: SSRC(rawValue: ssrc),
            rtxSSRC: kind == .video && hasRTX ? SSRC(rawValue: ssrc + 1) : nil,
            formats: formats ?? [kind == .video ? viewerVP8 : opus],
            extensions: viewerExtensions
        )
    }

    /// Makes an RTP packet with one-byte header extensions.
    static func packet(
        payloadType: UInt8,
        sequence: UInt16,
        timestamp: UInt32,
        ssrc: UInt32,
        marker: Bool = false,
        elements: [(id: UInt8, data: [UInt8])] = [],
        payload: [UInt8]
    ) -> [UInt8] {
        var bytes: [UInt8] = [elements.isEmpty ? 0x80 : 0x90, payloadType | (marker ? 0x80 : 0)]
        bytes += sequence.bytes + timestamp.bytes + ssrc.bytes
        if !elements.isEmpty {
            var block: [UInt8] = []
            for (id, data) in elements { block += [id << 4 | UInt8(data.count - 1)] + data }
            while block.count % 4 != 0 { block.append(0) }
            bytes += [0xbe, 0xde] + UInt16(block.count / 4).bytes + block
        }
        return bytes + payload
    }

    /// Makes a VP8 payload: a long picture id, TL0PICIDX, and a keyframe's or delta frame's start.
    static func vp8Payload(
        pictureID: UInt16,
        tl0: UInt8 = 0,
        isKeyframe: Bool,
        startsFrame: Bool = true,
        width: UInt16 = 640,
        height: UInt16 = 360,
        size: Int = 200
    ) -> [UInt8] {
        let descriptor: [UInt8] = [
            startsFrame ? 0x90 : 0x80, 0xe0, 0x80 | UInt8(pictureID >> 8), UInt8(pictureID & 0xff),
            tl0, 0x00,
        ]
        var frame: [UInt8] = []
        if startsFrame, isKeyframe {
            frame = [0x10, 0, 0, 0x9d, 0x01, 0x2a]
            frame += [UInt8(width & 0xff), UInt8(width >> 8)]
            frame += [UInt8(height & 0xff), UInt8(height >> 8)]
        } else if startsFrame {
            frame = [0x11, 0, 0]
        }
        let rest = (0..<max(0, size - frame.count)).map { UInt8(truncatingIfNeeded: $0) }
        return descriptor + frame + rest
    }
}

extension FixedWidthInteger {
    /// Big-endian bytes.
    var bytes: [UInt8] {
        (0..<Self.bitWidth / 8).reversed().map { UInt8(truncatingIfNeeded: self >> ($0 * 8)) }
    }
}
