import RTP

@testable import Recording
@testable import SFU
@testable import WorkerInterface

/// Packets as a tap gets them: one numbering, whose clock began when ours showed a second.
struct Packets {
    static let publication = PublicationID(index: 1, generation: 1)

    var codec = Codec.vp8
    var number: Int64 = 100
    var timestamp: UInt32 = 0xffff_f000
    var now = Instant(nanoseconds: 1_000_000_000)

    /// The next packet in order.
    mutating func next(
        _ payload: [UInt8],
        isKeyframe: Bool = false,
        isMarked: Bool = true
    ) -> TapPacket {
        var packet = TapPacket(
            publication: Self.publication,
            codec: codec,
            number: number,
            timestamp: timestamp,
            arrival: now,
            payload: payload
        )
        packet.isKeyframeStart = isKeyframe
        packet.isMarked = isMarked
        packet.width = codec.kind == .video ? 640 : 0
        packet.height = codec.kind == .video ? 360 : 0
        number += 1
        return packet
    }

    /// Lets time pass for both clocks.
    mutating func pass(milliseconds: Int64) {
        now = now.advanced(milliseconds: milliseconds)
        timestamp &+= UInt32(milliseconds) * UInt32(codec.clockRate / 1_000)
    }

    /// A whole VP8 frame in one packet; its last byte tells it from others.
    mutating func vp8(_ mark: UInt8, isKeyframe: Bool = false) -> TapPacket {
        next([0x10, isKeyframe ? 0x10 : 0x11, 0, 0, mark], isKeyframe: isKeyframe)
    }
}

/// Hexadecimal digits, with spaces where one likes.
func hex(_ text: String) -> [UInt8] {
    let digits = text.compactMap(\.hexDigitValue)
    return stride(from: 0, to: digits.count - 1, by: 2).map { place in
        let byte: Int = digits[place] << 4 | digits[place + 1]
        return UInt8(byte)
    }
}

extension FrameAssembler {
    /// What comes of packets that are in order.
    mutating func frames(of packets: [TapPacket], followsLoss: Bool = false) -> [Frame] {
        var frames: [Frame] = []
        for packet in packets {
            let output = ReorderBuffer.Output(packet: packet, followsLoss: followsLoss)
            take(output, into: &frames)
        }
        return frames
    }
}
