import RTP

/// One sent packet of a track.
struct SentPacket {
    /// Number of earlier packets of the track, which `SentTrack.append` assigns.
    var index: Int64 = 0
    /// Nanoseconds of the monotonic clock; both ends run in one process.
    var sentAt: Int64 = 0
    var timestamp: UInt32 = 0
    /// Frame of the recording; `offset` and `length` give the part of it.
    var frame: Int32 = 0
    var offset: Int32 = 0
    var length: UInt16 = 0
    var pictureID: UInt16 = 0
    var tl0PictureIndex: UInt8 = 0
    var startsFrame = false
    /// RTP marker bit: set on the last packet of a video frame.
    var marker = false
}

/// One stream of a publisher, audio or a video layer, with its recently sent packets.
final class SentTrack {
    let medium: Medium
    let ssrc: UInt32
    let rtxSSRC: UInt32
    let recording: Recording
    /// Payload bytes of a packet in addition to the recording's: the VP8 descriptor.
    let prefix: Int
    private(set) var count: Int64 = 0
    /// Octet count of sender reports (RFC 3550 §6.4.1).
    private(set) var octets: UInt32 = 0
    private var packets: [SentPacket] = []

    /// Sequence number of the first packet; it wraps soon.
    static let firstSequence: Int64 = 65_000
    /// Packets that are remembered: seven seconds of screen share, eighty of audio.
    private static let capacity = 4_096
    /// Packets that `find` searches, from the newest.
    private static let searchLength: Int64 = 4_096

    init(_ medium: Medium, ssrc: UInt32, rtxSSRC: UInt32, recording: Recording) {
        self.medium = medium
        self.ssrc = ssrc
        self.rtxSSRC = rtxSSRC
        self.recording = recording
        prefix = medium == .video ? Packetizer.descriptorLength : 0
        packets.reserveCapacity(Self.capacity)
    }

    /// Stores the next packet and assigns its index.
    func append(_ packet: SentPacket) -> SentPacket {
        var packet = packet
        packet.index = count
        if packets.count < Self.capacity {
            packets.append(packet)
        } else {
            packets[Int(count) & (Self.capacity - 1)] = packet
        }
        count += 1
        octets &+= UInt32(packet.length) + UInt32(prefix)
        return packet
    }

    /// Returns the packet of that index, if it is still stored.
    func packet(_ index: Int64) -> SentPacket? {
        guard index >= 0, index < count else { return nil }
        let packet = packets[Int(index) & (Self.capacity - 1)]
        return packet.index == index ? packet : nil
    }

    /// Returns the packet of this sequence number, if it is still stored.
    func packet(sequence: UInt16) -> SentPacket? {
        let last = Self.firstSequence + count - 1
        let newest = SequenceNumber(rawValue: UInt16(truncatingIfNeeded: last))
        let behind = newest.distance(from: SequenceNumber(rawValue: sequence))
        return packet(count - 1 - Int64(behind))
    }

    /// Whether `content`, a payload without descriptor, equals what was sent.
    func matches(_ content: Span<UInt8>, _ packet: SentPacket) -> Bool {
        guard content.count == Int(packet.length) else { return false }
        return recording.withPart(Int(packet.frame), Int(packet.offset), content.count) { sent in
            var difference: UInt8 = 0
            for index in sent.indices { difference |= sent[index] ^ content[index] }
            return difference == 0
        }
    }

    /// Returns the newest packet with this content.
    func find(_ content: Span<UInt8>) -> SentPacket? {
        let oldest = max(0, count - Self.searchLength)
        var index = count - 1
        while index >= oldest {
            if let packet = packet(index), matches(content, packet) { return packet }
            index -= 1
        }
        return nil
    }
}
