import CVPX
import RTP

/// Puts the VP8 frames of one viewer together again, to be decoded when there is time.
struct FrameKeeper: Sendable {
    /// Frames that came whole and in order.
    private(set) var frames: [[UInt8]] = []
    /// Frames that could not be put together.
    private(set) var broken = 0
    private var parts: [Int64: Part] = [:]
    private var next: Int64?
    private var window = NumberWindow()
    private var frame: [UInt8]?
    /// What follows a frame that is missing shows something else than was sent.
    private var needsKeyframe = true
    private var bytes = 0

    private struct Part: Sendable {
        var content: [UInt8]
        var startsFrame: Bool
        var endsFrame: Bool
    }

    /// Packets that wait for one before them; past it that one is given up.
    private static let patience = 256
    /// Bytes kept: a minute of the dearest video.
    private static let capacity = 64 << 20

    /// Takes a packet in clear.
    mutating func take(_ packet: Packet) {
        guard bytes < Self.capacity, let descriptor = VP8Descriptor(packet.payload) else { return }
        let number = window.extended(packet.sequenceNumber)
        _ = window.note(number)
        guard number >= next ?? number else { return }
        let content = packet.payload.extracting(descriptor.length..<packet.payload.count)
        parts[number] = Part(
            content: content.indices.map { content[$0] },
            startsFrame: descriptor.startsFrame,
            endsFrame: packet.marker
        )
        bytes += content.count
        if next == nil { next = number }
        join()
        if parts.count > Self.patience, let first = parts.keys.min() {
            giveUp()
            next = first
            join()
        }
    }

    /// Takes over what goes on from what there is.
    private mutating func join() {
        while let number = next, let part = parts.removeValue(forKey: number) {
            next = number + 1
            if part.startsFrame {
                if frame != nil { giveUp() }
                let isKeyframe = part.content.first.map { $0 & 1 == 0 } ?? false
                if isKeyframe { needsKeyframe = false }
                frame = needsKeyframe ? nil : []
            }
            frame?.append(contentsOf: part.content)
            if part.endsFrame, let whole = frame {
                frames.append(whole)
                frame = nil
            }
        }
    }

    private mutating func giveUp() {
        broken += 1
        frame = nil
        needsKeyframe = true
    }

    /// Decodes all frames with libvpx; returns how many had a picture and no error.
    func decode() -> Int {
        guard let decoder = unsafe vp8_decoder_create() else { return 0 }
        defer { unsafe vp8_decoder_destroy(decoder) }
        var decoded = 0
        for frame in frames {
            var width: Int32 = 0
            var height: Int32 = 0
            let isGood = unsafe vp8_decoder_decode(
                decoder,
                frame,
                UInt32(frame.count),
                &width,
                &height
            )
            if isGood { decoded += 1 }
        }
        return decoded
    }
}
