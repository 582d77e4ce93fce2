import RTP
import SFU
import WorkerInterface

/// Assembler of frames from ordered packets; drops frames that could not be decoded.
package struct FrameAssembler {
    /// Largest number of packets of a frame; larger frames are dropped.
    package static let packetLimit = 4_096
    /// Largest number of payload bytes of a frame; larger frames are dropped.
    package static let byteLimit = 4 << 20

    /// Packets of the current frame; all have one timestamp.
    private var parts: [TapPacket] = []
    /// Bytes of their payloads.
    private var bytes = 0
    /// Whether a keyframe is needed, as a frame is missing or none has arrived.
    package private(set) var awaitsKeyframe = true
    private var h264 = H264Assembler()
    private var av1 = AV1Assembler()

    package init() {}

    /// Adds the next packet; appends the frames that it completes.
    package mutating func take(_ output: ReorderBuffer.Output, into frames: inout [Frame]) {
        let packet = output.packet
        if packet.codec.kind == .audio {
            guard !packet.isPadding, !packet.payload.isEmpty else { return }
            let frame = Frame(
                bytes: packet.payload,
                isKeyframe: true,
                format: .opus,
                packet: packet
            )
            frames.append(frame)
            return
        }
        if output.followsLoss { forget() }
        guard !packet.isPadding, !packet.payload.isEmpty else { return }
        if let first = parts.first, first.timestamp != packet.timestamp {
            finish(into: &frames)
        }
        let sum = bytes &+ packet.payload.count
        guard parts.count < Self.packetLimit, sum <= Self.byteLimit else { return forget() }
        parts.append(packet)
        bytes = sum
        if packet.isMarked { finish(into: &frames) }
    }

    /// Drops the current frame and all following ones up to a keyframe.
    package mutating func forget() {
        removeParts()
        awaitsKeyframe = true
    }

    private mutating func removeParts() {
        parts.removeAll(keepingCapacity: true)
        bytes = 0
    }

    private mutating func finish(into frames: inout [Frame]) {
        defer { removeParts() }
        guard let first = parts.first else { return }
        let isKeyframe =
            switch first.codec {
            // Parameter sets may precede the picture in packets of their own.
            case .h264: parts.contains { $0.isKeyframeStart }
            case .opus, .red, .vp8, .vp9, .av1: first.isKeyframeStart
            }
        guard isKeyframe || !awaitsKeyframe else { return }
        guard var frame = assemble(first, isKeyframe: isKeyframe) else {
            awaitsKeyframe = true
            return
        }
        if let format = frame.format, format.width == 0 || format.height == 0 {
            frame.format = nil
        }
        // A keyframe without a known resolution cannot start a file; treat it as lost.
        awaitsKeyframe = isKeyframe && frame.format == nil
        if !awaitsKeyframe { frames.append(frame) }
    }

    private mutating func assemble(_ first: TapPacket, isKeyframe: Bool) -> Frame? {
        var format = FrameFormat(
            codec: first.codec,
            width: parts.lazy.map(\.width).max() ?? 0,
            height: parts.lazy.map(\.height).max() ?? 0,
            configuration: []
        )
        let bytes: [UInt8]?
        switch first.codec {
        case .opus, .red: return nil
        case .vp8: bytes = VPXFrame.vp8(parts)
        case .vp9:
            bytes = VPXFrame.vp9(parts)
            if isKeyframe, format.width == 0, let bytes,
                let size = VPXFrame.vp9Resolution(bytes.span)
            {
                format.width = Int(size.width)
                format.height = Int(size.height)
            }
        case .h264:
            bytes = h264.assemble(parts)
            format.configuration = h264.configuration
            if isKeyframe, format.configuration.isEmpty { return nil }
        case .av1:
            bytes = av1.assemble(parts)
            format.configuration = av1.sequenceHeader
            if isKeyframe, let size = av1.resolution {
                format.width = Int(size.width)
                format.height = Int(size.height)
            }
        }
        guard let bytes, !bytes.isEmpty else { return nil }
        return Frame(
            bytes: bytes,
            isKeyframe: isKeyframe,
            format: isKeyframe ? format : nil,
            packet: first
        )
    }
}
