import LoadPeer
import RTP
import SFU

/// The far end of a publication: makes frames as libwebrtc cuts them, and encrypts them.
///
/// A class, because an array holds no peers; nothing of it is counted or timed.
final class BenchPublisher {
    var peer: LoadPeer
    private var clear: [UInt8]
    private var sequence: UInt64 = 100
    private var left = 0
    private let framePackets: Int

    /// The first frame is a keyframe; `ssrc` is what the publication was declared with.
    init(peer: consuming LoadPeer, ssrc: UInt32, framePackets: Int) {
        self.peer = peer
        self.framePackets = framePackets
        clear = [0x90, 96, 0, 0, 0, 0, 0, 0]
        for shift in [24, 16, 8, 0] { clear.append(UInt8(truncatingIfNeeded: ssrc >> shift)) }
        clear += [0xbe, 0xde, 0, 1, 0x31, 0, 1, 0]
        clear += [0x90, 0xe0, 0x81, 0x23, 7, 0, 0x10, 0, 0, 0x9d, 0x01, 0x2a, 0x80, 2, 0x68, 1]
        clear += Array(repeating: 0x5a, count: Self.length - clear.count)
    }

    /// The next packet, encrypted, to the end of `sent`.
    func send(into sent: inout Batch) {
        if left == 0 { beginFrame() }
        clear[Self.payload] = left == framePackets ? 0x90 : 0x80
        left -= 1
        sequence += 1
        clear[1] = left == 0 ? 96 | 0x80 : 96
        clear[2] = UInt8(truncatingIfNeeded: sequence >> 8)
        clear[3] = UInt8(truncatingIfNeeded: sequence)
        // Cut evenly: the later packets of a frame are one byte longer.
        let longer = left < framePackets / 3 ? 1 : 0
        let packet = clear.prefix(Self.length - 1 + longer)
        peer.sendRTP(Array(packet).span, index: sequence, into: &sent)
    }

    /// What comes next begins no keyframe any more.
    func endKeyframe() { clear[Self.payload + 6] |= 1 }

    private func beginFrame() {
        left = framePackets
        frame &+= 1
        let timestamp = frame &* 3_000
        for index in 0..<4 {
            clear[4 + index] = UInt8(truncatingIfNeeded: timestamp >> UInt32(24 - 8 * index))
        }
        clear[Self.payload + 2] = 0x80 | UInt8(truncatingIfNeeded: frame >> 8) & 0x7f
        clear[Self.payload + 3] = UInt8(truncatingIfNeeded: frame)
        clear[Self.payload + 4] = UInt8(truncatingIfNeeded: frame)
    }

    private var frame: UInt32 = 0
    /// Bytes of the longest packet.
    static let length = 1_200
    private static let payload = 20
}
