import RTP
import TestSupport

@testable import SFU
@testable import WorkerInterface

/// Pictures of a capture beside the repository, as one encoding sends them.
enum CapturedStream {
    /// Returns the pictures; empty where the capture is missing.
    ///
    /// Sequence numbers and times are made even, since the packets that the capture lost cannot be
    /// restored.
    static func pictures(
        _ name: String,
        coding: Coding
    ) -> [[(bytes: [UInt8], origin: Origin)]] {
        var frames: [[[UInt8]]] = []
        var last: UInt32?
        var isBegun = false
        for datagram in Samples.datagrams(capture: name) {
            guard let packet = try? Packet(datagram.span), packet.headerLength < datagram.count
            else { continue }
            let payload = Array(
                datagram[packet.headerLength..<datagram.count - packet.paddingLength]
            )
            guard !payload.isEmpty else { continue }
            if isKeyframeStart(payload, coding.codec) { isBegun = true }
            guard isBegun else { continue }
            if packet.timestamp != last { frames.append([]) }
            last = packet.timestamp
            frames[frames.count - 1].append(payload)
        }
        return packets(of: frames, coding: coding)
    }

    private static func packets(
        of frames: [[[UInt8]]],
        coding: Coding
    ) -> [[(bytes: [UInt8], origin: Origin)]] {
        var number: UInt32 = 1_000
        return frames.enumerated().map { index, payloads in
            payloads.enumerated().map { position, payload in
                var origin = Origin()
                origin.number = number
                origin.frame = UInt32(index + 1)
                origin.timestamp = UInt32(index) &* 3_000
                origin.position = UInt8(clamping: position)
                origin.count = UInt8(clamping: payloads.count)
                origin.isKeyframe = isKeyframeStart(payloads[0], coding.codec)
                origin.temporal = temporal(payload, coding.codec)
                number += 1
                let rid = coding.rids[0].map { [(id: UInt8(10), data: Array($0.utf8))] } ?? []
                let bytes = Media.twoByteFormPacket(
                    payloadType: 96,
                    sequence: UInt16(truncatingIfNeeded: origin.number),
                    timestamp: origin.timestamp,
                    ssrc: 0x5000,
                    marker: position == payloads.count - 1,
                    elements: [(id: 4, data: Array("1".utf8))] + rid,
                    payload: renumbered(payload, index, coding.codec) + origin.bytes
                )
                return (bytes, origin)
            }
        }
    }

    /// Sets the picture id that a sender without losses would have used.
    private static func renumbered(_ payload: [UInt8], _ index: Int, _ codec: Codec) -> [UInt8] {
        var payload = payload
        var offset = 0
        switch codec {
        case .vp8:
            guard let descriptor = VP8Descriptor(payload.span), descriptor.hasLongPictureID else {
                return payload
            }
            offset = descriptor.pictureIDOffset
        case .vp9:
            guard let descriptor = VP9Descriptor(payload.span), descriptor.hasLongPictureID else {
                return payload
            }
            offset = descriptor.pictureIDOffset
        case .av1, .h264, .opus, .red: return payload
        }
        payload.replaceSubrange(offset..<offset + 2, with: (0x8000 | UInt16(index & 0x7fff)).bytes)
        return payload
    }

    private static func isKeyframeStart(_ payload: [UInt8], _ codec: Codec) -> Bool {
        switch codec {
        case .vp8: VP8Descriptor(payload.span)?.isKeyframeStart(payload.span) == true
        case .vp9: VP9Descriptor(payload.span)?.isKeyframeStart == true
        case .h264: H264Payload.isKeyframeStart(payload.span)
        case .av1: AV1AggregationHeader(payload.span)?.isKeyframeStart == true
        case .opus, .red: false
        }
    }

    private static func temporal(_ payload: [UInt8], _ codec: Codec) -> UInt8 {
        switch codec {
        case .vp8: VP8Descriptor(payload.span)?.temporalID ?? 0
        case .vp9: VP9Descriptor(payload.span)?.temporalID ?? 0
        case .h264, .av1, .opus, .red: 0
        }
    }
}
