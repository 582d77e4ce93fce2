import RTP

@testable import Recording
@testable import SFU
@testable import WorkerInterface

/// Packets as a tap gets them: one sequence, whose clock began when ours showed a second.
struct Packets {
    static let publication = PublicationID(index: 1, generation: 1)

    var codec = Codec.vp8
    var number: Int64 = 100
    var timestamp: UInt32 = 0xffff_f000
    var now = Instant(nanoseconds: 1_000_000_000)

    /// Returns the next packet in order.
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

    /// Advances both clocks.
    mutating func pass(milliseconds: Int64) {
        now = now.advanced(milliseconds: milliseconds)
        timestamp &+= UInt32(milliseconds) * UInt32(codec.clockRate / 1_000)
    }

    /// Makes a whole VP8 frame in one packet; its last byte identifies it.
    mutating func vp8(_ mark: UInt8, isKeyframe: Bool = false) -> TapPacket {
        next([0x10, isKeyframe ? 0x10 : 0x11, 0, 0, mark], isKeyframe: isKeyframe)
    }
}

extension FrameAssembler {
    /// Returns the frames assembled from packets in order.
    mutating func frames(of packets: [TapPacket], followsLoss: Bool = false) -> [Frame] {
        var frames: [Frame] = []
        for packet in packets {
            let output = ReorderBuffer.Output(packet: packet, followsLoss: followsLoss)
            take(output, into: &frames)
        }
        return frames
    }
}
