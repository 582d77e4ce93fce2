import RTP

/// Writes the publisher's RTP packets and keeps the last of its video for retransmission.
struct Packetizer {
    /// Bytes before the payload: fixed header, and an extension block of three words.
    static let headerLength = 28
    /// Bytes of the VP8 descriptor (RFC 7741 §4.2) and of what stands for the frame header.
    static let videoPrefix = 6 + 10

    private static let historyLength = 1_024
    private static let size = (width: 1_280, height: 720)

    private var transportSequence: UInt16 = 65_000
    private let filler = Filler()
    private var history = [[UInt8]](repeating: [], count: Self.historyLength)

    mutating func audio(_ stamp: Stamp, ssrc: UInt32, sequence: UInt16) -> [UInt8] {
        var packet = header(
            Wire.audioPayloadType,
            sequence,
            stamp.timestamp,
            ssrc,
            at: stamp.sent,
            mid: "0",
            isAudio: true
        )
        // TOC: CELT, fullband, 20 ms, mono, one frame (RFC 6716 §3.1).
        packet.append(0xf8)
        stamp.append(to: &packet)
        let rest = Int(stamp.length) - 1 - Stamp.size
        filler.append(rest, index: stamp.index, to: &packet)
        return packet
    }

    mutating func video(
        _ stamp: Stamp,
        ssrc: UInt32,
        sequence: UInt16,
        startsFrame: Bool,
        isKeyframe: Bool
    ) -> [UInt8] {
        var packet = header(
            Wire.videoPayloadType,
            sequence,
            stamp.timestamp,
            ssrc,
            at: stamp.sent,
            mid: "1",
            isAudio: false
        )
        if stamp.endsFrame { packet[1] |= 0x80 }
        packet.append(startsFrame ? 0x90 : 0x80)
        packet.append(0xe0)
        packet.append(UInt64(0x8000 | Self.pictureID(stamp.frame)), bytes: 2)
        packet.append(Self.tl0PictureIndex(stamp.frame))
        packet.append(0)
        packet += Self.frameHeader(startsFrame: startsFrame, isKeyframe: isKeyframe)
        stamp.append(to: &packet)
        let rest = Int(stamp.length) - Self.videoPrefix - Stamp.size
        filler.append(rest, index: stamp.index, to: &packet)
        history[Int(sequence) % Self.historyLength] = packet
        return packet
    }

    /// The packet again, on the RTX stream, if it is still held (RFC 4588 §4).
    mutating func retransmission(of original: UInt16, ssrc: UInt32, sequence: UInt16) -> [UInt8]? {
        let packet = history[Int(original) % Self.historyLength]
        guard packet.count > Self.headerLength,
            UInt16(packet[2]) << 8 | UInt16(packet[3]) == original
        else { return nil }
        var copy = Array(packet[..<Self.headerLength])
        copy[1] = packet[1] & 0x80 | Wire.rtxPayloadType
        copy.put(UInt64(sequence), bytes: 2, at: 2)
        copy.put(UInt64(ssrc), bytes: 4, at: 8)
        copy.put(UInt64(transportSequence), bytes: 2, at: 21)
        transportSequence &+= 1
        copy.append(UInt64(original), bytes: 2)
        copy += packet[Self.headerLength...]
        return copy
    }

    /// Fifteen bits that wrap soon after the start.
    static func pictureID(_ frame: UInt32) -> UInt16 {
        UInt16(truncatingIfNeeded: frame &+ 32_700) & 0x7fff
    }

    static func tl0PictureIndex(_ frame: UInt32) -> UInt8 {
        UInt8(truncatingIfNeeded: frame &+ 200)
    }

    /// What a decoder reads first (RFC 6386 §9.1), in the first packet of a frame; else zeros.
    private static func frameHeader(startsFrame: Bool, isKeyframe: Bool) -> [UInt8] {
        guard startsFrame else { return Array(repeating: 0, count: 10) }
        guard isKeyframe else { return [0x11, 0x02, 0, 0, 0, 0, 0, 0, 0, 0] }
        return [
            0x10, 0x02, 0, 0x9d, 0x01, 0x2a,
            UInt8(size.width & 0xff), UInt8(size.width >> 8),
            UInt8(size.height & 0xff), UInt8(size.height >> 8),
        ]
    }

    /// Fixed header and extensions (RFC 3550 §5.1, RFC 8285 §4.2).
    private mutating func header(
        _ payloadType: UInt8,
        _ sequence: UInt16,
        _ timestamp: UInt32,
        _ ssrc: UInt32,
        at nanoseconds: Int64,
        mid: Character,
        isAudio: Bool
    ) -> [UInt8] {
        var packet: [UInt8] = []
        packet.reserveCapacity(1_200)
        packet += [0x90, payloadType]
        packet.append(UInt64(sequence), bytes: 2)
        packet.append(UInt64(timestamp), bytes: 4)
        packet.append(UInt64(ssrc), bytes: 4)
        packet += [0xbe, 0xde, 0, 3]
        packet.append(Wire.sendTimeExtension << 4 | 2)
        // Seconds in 6.18 fixed point.
        packet.append(UInt64(bitPattern: nanoseconds / 1_000) &<< 18 / 1_000_000, bytes: 3)
        packet.append(Wire.transportSequenceExtension << 4 | 1)
        packet.append(UInt64(transportSequence), bytes: 2)
        transportSequence &+= 1
        packet += [Wire.midExtension << 4, mid.asciiValue ?? 0]
        // Audio level -30 dBov, voice (RFC 6464 §3); padding for video.
        packet += isAudio ? [Wire.audioLevelExtension << 4, 0x80 | 30] : [0, 0]
        packet += [0]
        return packet
    }
}

extension [UInt8] {
    /// Writes the low `bytes` bytes of `value`, the highest first.
    fileprivate mutating func put(_ value: UInt64, bytes: Int, at offset: Int) {
        for position in 0..<bytes {
            let shift = UInt64(8 * (bytes - 1 - position))
            self[offset + position] = UInt8(truncatingIfNeeded: value >> shift)
        }
    }
}

/// How large an encoder's frames are, and how they are cut into packets.
struct FrameSizes {
    /// Packets of the largest frame.
    static let maximumPackets = 512
    /// A keyframe is so many times as large as other frames.
    private static let keyframeFactor = 6

    private let average: Int
    private var debt = 0
    private var state: UInt64 = 0x9e37_79b9_7f4a_7c15

    init(bitrate: Int, frameRate: Int) { average = bitrate / 8 / frameRate }

    /// The payload lengths of the next frame's packets, even as libwebrtc makes them.
    mutating func next(isKeyframe: Bool) -> [Int] {
        var bytes = average
        if isKeyframe {
            bytes *= Self.keyframeFactor
            debt += bytes - average
        } else {
            // Three quarters to five quarters, less a share of what keyframes took too much.
            let repaid = min(debt, average / 5)
            debt -= repaid
            bytes = average * (75 + random(51)) / 100 - repaid
        }
        let least = Packetizer.videoPrefix + Stamp.size
        let most = Self.maximumPackets * Wire.videoPayload
        bytes = min(max(bytes, least), most)
        let count = (bytes + Wire.videoPayload - 1) / Wire.videoPayload
        let (share, longer) = bytes.quotientAndRemainder(dividingBy: count)
        return (0..<count).map { max(least, $0 < count - longer ? share : share + 1) }
    }

    /// 0 to `bound - 1`; the same numbers in every run.
    mutating func random(_ bound: Int) -> Int {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        return Int(truncatingIfNeeded: state >> 33) % bound
    }
}
