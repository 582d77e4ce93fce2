import CVPX
import RTP

/// Reassembly of one viewer's VP8 frames, which are decoded later.
struct VP8FrameAssembler: Sendable {
    /// Complete frames, in order.
    private(set) var frames: [[UInt8]] = []
    /// Frames that could not be reassembled.
    private(set) var broken = 0
    private var parts: [Int64: Part] = [:]
    private var next: Int64?
    private var window = ReceivedWindow()
    private var frame: [UInt8]?
    /// Whether a frame is missing, so that later frames would decode to a wrong picture.
    private var needsKeyframe = true
    private var bytes = 0

    private struct Part: Sendable {
        var content: [UInt8]
        var startsFrame: Bool
        var endsFrame: Bool
    }

    /// Most packets that wait for a missing one before it is given up.
    private static let patience = 256
    /// Most bytes kept: a minute of the video with the highest bitrate.
    private static let capacity = 64 << 20

    /// Processes a decrypted packet.
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

    /// Appends all consecutive packets that are available.
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

    /// Decodes all frames with libvpx; returns how many gave a picture without an error.
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
