import Contract
import RTP
import WorkerInterface

/// A client's stream under one SSRC: a microphone, or one encoding of a camera.
struct SentLayer {
    let kind: MediaKind
    let mid: String
    /// RID of a simulcast encoding.
    let rid: String?
    /// Simulcast layer, 0 the smallest.
    let layer: UInt8
    let ssrc: UInt32
    /// Whether a keyframe has been requested.
    var wantsKeyframe = true
    private let firstIndex: UInt64
    private(set) var sent: UInt32 = 0
    private var frames: UInt32 = 0
    private var resent: UInt64 = 0
    /// Last packets, in a ring.
    private var kept: [[UInt8]] = []

    static let levelID: UInt8 = 1
    static let midID: UInt8 = 4
    static let ridID: UInt8 = 10
    static let repairedID: UInt8 = 11
    static let transportNumberID: UInt8 = 3
    private static let keptCount = 256

    var rtxSSRC: UInt32 { ssrc + 1 }

    /// Makes a stream; `firstIndex` is below 2^16, and a large one makes the numbers wrap soon.
    init(
        _ kind: MediaKind,
        mid: String,
        rid: String?,
        layer: UInt8,
        ssrc: UInt32,
        firstIndex: UInt64
    ) {
        self.kind = kind
        self.mid = mid
        self.rid = rid
        self.layer = layer
        self.ssrc = ssrc
        self.firstIndex = firstIndex
    }

    /// Returns the packets of the next frame, each with its index (RFC 3711 §3.3.1).
    mutating func nextFrame(
        room: UInt32,
        publisher: UInt32,
        size: Int,
        isTalking: Bool,
        at now: Instant
    ) -> [(bytes: [UInt8], index: UInt64)] {
        let isKeyframe = kind == .video && wantsKeyframe
        let packets = kind == .audio ? 1 : isKeyframe ? 3 : 1 + Int(layer)
        wantsKeyframe = false
        frames &+= 1
        return (0..<packets).map { place in
            var part: MediaMark.Part = []
            if isKeyframe { part.insert(.keyframe) }
            if place == 0 { part.insert(.start) }
            if place == packets - 1 { part.insert(.end) }
            let mark = MediaMark(
                room: room,
                publisher: publisher,
                kind: kind,
                number: sent,
                layer: layer,
                part: part
            )
            let index = firstIndex + UInt64(sent)
            let bytes = packet(
                mark,
                index: index,
                size: size,
                isTalking: isTalking,
                at: now
            )
            sent += 1
            keep(bytes)
            return (bytes, index)
        }
    }

    private func packet(
        _ mark: MediaMark,
        index: UInt64,
        size: Int,
        isTalking: Bool,
        at now: Instant
    ) -> [UInt8] {
        let isVideo = kind == .video
        let ticks = now.nanoseconds / 1_000 * (isVideo ? 90 : 48) / 1_000
        var type = isVideo ? SimulatedTrack.videoPayloadType : SimulatedTrack.audioPayloadType
        if isVideo, mark.part.contains(.end) { type |= 0x80 }
        var bytes: [UInt8] = [0x90, type]
        bytes += UInt16(truncatingIfNeeded: index).wire
        bytes += UInt32(truncatingIfNeeded: ticks).wire + ssrc.wire
        // A voice's level varies from packet to packet: a steady one is no speech.
        let voice = 0x80 | (frames % 2 == 0 ? 18 : 22 as UInt8)
        let level: [UInt8] = isVideo ? [] : [Self.levelID << 4, isTalking ? voice : 90]
        bytes += extensions(ridID: Self.ridID, level)
        bytes += isVideo ? descriptor(mark) : [0x78]
        bytes += [UInt8](repeating: 0x5a, count: size)
        return bytes + mark.bytes
    }

    /// Encodes a VP8 descriptor with a long picture id and TL0PICIDX (RFC 7741 §4.2), and the first
    /// bytes of a frame where one begins.
    private func descriptor(_ mark: MediaMark) -> [UInt8] {
        let starts = mark.part.contains(.start)
        let descriptor: [UInt8] = [
            starts ? 0x90 : 0x80, 0xe0, 0x80 | UInt8(frames >> 8 & 0x7f), UInt8(frames & 0xff),
            UInt8(truncatingIfNeeded: frames), 0,
        ]
        guard starts else { return descriptor }
        guard mark.part.contains(.keyframe) else { return descriptor + [0x11, 0, 0] }
        let size: [UInt8] = layer == 0 ? [0x40, 0x01, 0xb4, 0] : [0x80, 0x02, 0x68, 0x01]
        return descriptor + [0x10, 0, 0, 0x9d, 0x01, 0x2a] + size
    }

    /// Encodes the extensions, with the audio level of sound (RFC 6464).
    private func extensions(ridID: UInt8, _ level: [UInt8] = []) -> [UInt8] {
        var elements = level
        for (id, text) in [(Self.midID, mid), (ridID, rid ?? "")] where !text.isEmpty {
            elements.append(id << 4 | UInt8(text.utf8.count - 1))
            elements += Array(text.utf8)
        }
        while elements.count % 4 != 0 { elements.append(0) }
        return [0xbe, 0xde] + UInt16(elements.count / 4).wire + elements
    }

    private mutating func keep(_ bytes: [UInt8]) {
        if kept.count < Self.keptCount {
            kept.append(bytes)
        } else {
            kept[Int(sent - 1) % Self.keptCount] = bytes
        }
    }

    /// Returns the last packet under the next number, as a replay window with a hole would accept
    /// it.
    mutating func replay() -> (bytes: [UInt8], index: UInt64)? {
        guard sent > 0, kind == .audio else { return nil }
        var bytes = kept[Int(sent - 1) % Self.keptCount]
        let index = firstIndex + UInt64(sent)
        bytes.replaceSubrange(2..<4, with: UInt16(truncatingIfNeeded: index).wire)
        sent += 1
        keep(bytes)
        return (bytes, index)
    }

    /// Returns a packet again as RTX (RFC 4588), if it is still kept.
    mutating func resend(_ number: UInt16) -> (bytes: [UInt8], index: UInt64)? {
        let newest = firstIndex + UInt64(sent)
        let behind = Int(UInt16(truncatingIfNeeded: newest) &- number)
        guard kind == .video, behind > 0, behind <= kept.count, behind <= Int(sent) else {
            return nil
        }
        let place = (Int(sent) - behind) % Self.keptCount
        let original = kept[place]
        guard let packet = try? Packet(original.span) else { return nil }
        resent += 1
        var bytes: [UInt8] = [0x90, original[1] & 0x80 | SimulatedTrack.rtxPayloadType]
        bytes += UInt16(truncatingIfNeeded: resent).wire
        bytes += original[4..<8] + rtxSSRC.wire + extensions(ridID: Self.repairedID)
        bytes += original[2..<4] + original[packet.headerLength...]
        return (bytes, resent)
    }
}
