import RTP

/// Writer of RTP packets like libwebrtc's, into a reused array.
struct Packetizer {
    /// Bytes of the VP8 payload descriptor (RFC 7741 §4.2).
    static let descriptorLength = 6

    private(set) var packet: [UInt8] = []
    private var transportSequence: UInt16 = 65_000

    init() { packet.reserveCapacity(1_500) }

    /// Header fields of a packet.
    struct Header {
        var payloadType: UInt8
        var ssrc: UInt32
        var sequence: UInt16
        var line: SendFormat.Line
        var rid: String?
        /// Original sequence number of a retransmission, its first two payload bytes (RFC 4588 §4).
        var originalSequence: UInt16?
    }

    /// Writes a packet, for its first transmission or for a retransmission.
    mutating func write(_ sent: SentPacket, of track: SentTrack, _ header: Header) {
        packet.removeAll(keepingCapacity: true)
        packet += [0x90, header.payloadType | (sent.marker ? 0x80 : 0)]
        packet.append(UInt64(header.sequence), bytes: 2)
        packet.append(UInt64(sent.timestamp), bytes: 4)
        packet.append(UInt64(header.ssrc), bytes: 4)
        writeExtensions(header, track.medium, at: sent.sentAt)
        if let number = header.originalSequence { packet.append(UInt64(number), bytes: 2) }
        if track.medium == .video { writeDescriptor(sent) }
        let frame = track.recording.frames[Int(sent.frame)]
        let start = frame.start + Int(sent.offset)
        packet += track.recording.bytes[start..<start + Int(sent.length)]
    }

    /// Writes the VP8 descriptor with all fields that libwebrtc sends; there is one temporal layer.
    private mutating func writeDescriptor(_ sent: SentPacket) {
        packet += [sent.startsFrame ? 0x90 : 0x80, 0xe0]
        packet.append(UInt64(0x8000 | sent.pictureID), bytes: 2)
        packet += [sent.tl0PictureIndex, 0]
    }

    /// Writes one-byte extension elements (RFC 8285 §4.2), padded to whole words.
    private mutating func writeExtensions(_ header: Header, _ medium: Medium, at time: Int64) {
        let ids = header.line.extensions
        let start = packet.count
        packet += [0xbe, 0xde, 0, 0]
        func element(_ kind: ExtensionKind, _ length: Int) -> UInt8? {
            let id = ids[kind]
            return id == 0 ? nil : id << 4 | UInt8(length - 1)
        }
        if let element = element(.absoluteSendTime, 3) {
            packet.append(element)
            // Seconds in 6.18 fixed point.
            packet.append(UInt64(bitPattern: time / 1_000) &<< 18 / 1_000_000, bytes: 3)
        }
        if let element = element(.transportSequenceNumber, 2) {
            packet.append(element)
            packet.append(UInt64(transportSequence), bytes: 2)
            transportSequence &+= 1
        }
        let mid = header.line.mid.utf8
        if let element = element(.mid, mid.count) {
            packet.append(element)
            packet += mid
        }
        let isRepair = header.originalSequence != nil
        if let rid = header.rid?.utf8,
            let element = element(isRepair ? .repairedRID : .rid, rid.count)
        {
            packet.append(element)
            packet += rid
        }
        if medium == .audio, let element = element(.audioLevel, 1) {
            // -30 dBov with the voice flag (RFC 6464 §3).
            packet += [element, 0x80 | 30]
        }
        while (packet.count - start) % 4 != 0 { packet.append(0) }
        let words = (packet.count - start) / 4 - 1
        packet[start + 3] = UInt8(truncatingIfNeeded: words)
    }

    /// Returns the sizes of a frame's packets: nearly equal, the later ones one byte longer.
    static func cut(_ length: Int) -> (count: Int, share: Int, longer: Int) {
        let most = OfferParameters.videoPayload - descriptorLength
        let count = max(1, (length + most - 1) / most)
        let (share, longer) = length.quotientAndRemainder(dividingBy: count)
        return (count, share, longer)
    }
}
