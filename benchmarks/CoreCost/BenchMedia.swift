import RTP
import WorkerInterface

/// The m-lines and packets of the core benchmark.
enum BenchMedia {
    static func path(_ index: Int) -> Path {
        Path(remote: Address(ipv4: 0x0a00_0000 + UInt32(index), port: 4_000), local: 0)
    }

    /// Formats of an m-line, as many as a browser offers.
    private static var formats: [FormatMapping] {
        let all = [
            MediaFormat(codec: .vp8), MediaFormat(codec: .vp9),
            MediaFormat(codec: .vp9, profile: 2), MediaFormat(codec: .h264),
            MediaFormat(codec: .h264, profile: 2), MediaFormat(codec: .h264, profile: 4),
            MediaFormat(codec: .av1),
        ]
        return all.enumerated().map { position, format in
            FormatMapping(
                format: format,
                payloadType: UInt8(96 + 2 * position),
                rtxPayloadType: UInt8(97 + 2 * position),
                feedback: [.nack, .pictureLoss, .transportWide]
            )
        }
    }

    static func publication(_ index: Int) -> PublicationConfiguration {
        var extensions = ExtensionMap()
        extensions[.mid] = 4
        extensions[.transportSequenceNumber] = 3
        return PublicationConfiguration(
            id: PublicationID(index: UInt32(index), generation: 1),
            mid: "\(index)",
            kind: .video,
            formats: formats,
            extensions: extensions,
            encodings: [EncodingConfiguration(ssrc: SSRC(rawValue: 0x2200 + UInt32(index)))]
        )
    }

    static func slot(_ index: Int) -> SlotConfiguration {
        var extensions = ExtensionMap()
        extensions[.mid] = 4
        extensions[.absoluteSendTime] = 2
        extensions[.transportSequenceNumber] = 3
        return SlotConfiguration(
            id: SlotID(index: UInt32(index), generation: 1),
            mid: "\(index)",
            kind: .video,
            ssrc: SSRC(rawValue: 0x10_0000 + UInt32(index)),
            rtxSSRC: SSRC(rawValue: 0x20_0000 + UInt32(index)),
            formats: formats,
            extensions: extensions
        )
    }

    /// Returns 1,200 bytes of VP8 that start a keyframe; one bit makes it a delta frame.
    static func keyframePacket() -> [UInt8] {
        var packet: [UInt8] = [0x90, 96, 0, 0, 0, 0, 0, 0, 0, 0, 0x22, 0]
        packet += [0xbe, 0xde, 0, 1, 0x31, 0, 1, 0]
        packet += [0x90, 0xe0, 0x81, 0x23, 7, 0, 0x10, 0, 0, 0x9d, 0x01, 0x2a, 0x80, 2, 0x68, 1]
        packet += Array(repeating: 0x5a, count: 1_200 - packet.count)
        return packet
    }
}
