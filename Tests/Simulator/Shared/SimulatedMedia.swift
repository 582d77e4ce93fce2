import RTP
import WorkerInterface

/// Mark at the end of each payload that identifies its origin wherever it is received.
package struct MediaMark: Hashable {
    static let length = 18
    private static let magic: UInt32 = 0x5346_5544

    /// Number of the room that it was sent in; a room created again has another number.
    var room: UInt32
    /// Index of the client that sent it.
    var publisher: UInt32
    var kind: MediaKind
    /// Number of the packet in this layer.
    var number: UInt32
    /// Simulcast layer, 0 the smallest.
    var layer: UInt8 = 0
    /// Role of a video packet within its frame.
    var part: Part = []

    struct Part: OptionSet, Hashable {
        var rawValue: UInt8

        static let keyframe = Self(rawValue: 1)
        static let start = Self(rawValue: 2)
        static let end = Self(rawValue: 4)
    }

    init(
        room: UInt32,
        publisher: UInt32,
        kind: MediaKind,
        number: UInt32,
        layer: UInt8 = 0,
        part: Part = []
    ) {
        self.room = room
        self.publisher = publisher
        self.kind = kind
        self.number = number
        self.layer = layer
        self.part = part
    }

    init?(_ payload: Span<UInt8>) {
        let start = payload.count - Self.length
        guard start >= 0, payload.u32(at: start) == Self.magic else { return nil }
        room = payload.u32(at: start + 4)
        publisher = payload.u32(at: start + 8)
        number = payload.u32(at: start + 12)
        kind = payload[start + 16] & 1 == 0 ? .audio : .video
        layer = payload[start + 16] >> 1
        part = Part(rawValue: payload[start + 17])
    }

    var bytes: [UInt8] {
        Self.magic.wire + room.wire + publisher.wire + number.wire
            + [layer << 1 | (kind == .audio ? 0 : 1), part.rawValue]
    }
}

/// A sending m-line of a client.
package struct SimulatedTrack {
    static let audioPayloadType: UInt8 = 111
    static let videoPayloadType: UInt8 = 96
    static let rtxPayloadType: UInt8 = 97

    let kind: MediaKind
    let ssrc: UInt32
    var sent: UInt32 = 0
    var wantsKeyframe = true

    /// Returns the next packet, a frame of its own, and its index with the roll-over counter.
    mutating func next(
        room: UInt32,
        publisher: UInt32,
        size: Int,
        at now: Instant
    ) -> (bytes: [UInt8], index: UInt64) {
        let index = UInt64(sent) + 1
        let isVideo = kind == .video
        let ticks = now.nanoseconds / 1_000 * (isVideo ? 90 : 48) / 1_000
        let type = isVideo ? Self.videoPayloadType | 0x80 : Self.audioPayloadType
        var bytes: [UInt8] = [0x80, type]
        bytes += UInt16(truncatingIfNeeded: index).wire
        bytes += UInt32(truncatingIfNeeded: ticks).wire + ssrc.wire
        if isVideo { bytes += frameStart } else { bytes.append(0x78) }
        bytes += [UInt8](repeating: 0x5a, count: size)
        let mark = MediaMark(room: room, publisher: publisher, kind: kind, number: sent)
        bytes += mark.bytes
        sent += 1
        wantsKeyframe = false
        return (bytes, index)
    }

    /// A VP8 descriptor with a long picture id and TL0PICIDX, and a frame's first bytes (RFC 7741).
    private var frameStart: [UInt8] {
        let descriptor: [UInt8] = [
            0x90, 0xe0, 0x80 | UInt8(sent >> 8 & 0x7f), UInt8(sent & 0xff),
            UInt8(truncatingIfNeeded: sent), 0,
        ]
        guard wantsKeyframe else { return descriptor + [0x11, 0, 0] }
        return descriptor + [0x10, 0, 0, 0x9d, 0x01, 0x2a, 0x80, 0x02, 0x68, 0x01]
    }
}

extension FixedWidthInteger {
    /// Big-endian bytes.
    var wire: [UInt8] {
        (0..<Self.bitWidth / 8).reversed().map { UInt8(truncatingIfNeeded: self >> ($0 * 8)) }
    }
}

/// An offer in Chromium's shape, of a client that encodes no real media.
package struct SimulatedOffer {
    var fragment: String
    var password: String
    var fingerprint: Fingerprint
    var tracks: [SimulatedTrack] = []
    /// Number of pairs of an audio and a video m-line to receive on.
    var slots = 0

    var text: String {
        var sections: [[String]] = []
        for track in tracks { sections.append(sending(track)) }
        for _ in 0..<slots {
            sections.append(Self.format(.audio) + ["a=recvonly"])
            sections.append(Self.format(.video) + ["a=recvonly"])
        }
        return OfferedDescription(
            version: 1,
            fragment: fragment,
            password: password,
            fingerprint: fingerprint
        ).text(of: sections)
    }

    private func sending(_ track: SimulatedTrack) -> [String] {
        let lines = Self.format(track.kind) + ["a=sendonly", "a=msid:load \(track.kind)"]
        guard track.kind == .video else { return lines + ["a=ssrc:\(track.ssrc) cname:c"] }
        let rtx = track.ssrc + 1
        return lines + [
            "a=ssrc-group:FID \(track.ssrc) \(rtx)", "a=ssrc:\(track.ssrc) cname:c",
            "a=ssrc:\(rtx) cname:c",
        ]
    }

    private static func format(_ kind: MediaKind) -> [String] {
        let audio = SimulatedTrack.audioPayloadType
        let (video, rtx) = (SimulatedTrack.videoPayloadType, SimulatedTrack.rtxPayloadType)
        guard kind == .video else {
            return ["m=audio 9 UDP/TLS/RTP/SAVPF \(audio)", "a=rtpmap:\(audio) opus/48000/2"]
        }
        return [
            "m=video 9 UDP/TLS/RTP/SAVPF \(video) \(rtx)", "a=rtpmap:\(video) VP8/90000",
            "a=rtcp-fb:\(video) nack", "a=rtcp-fb:\(video) nack pli",
            "a=rtpmap:\(rtx) rtx/90000", "a=fmtp:\(rtx) apt=\(video)",
        ]
    }
}
