import RTP
import WorkerInterface

/// A media packet that the core has written for a client, decrypted.
struct WrittenPacket {
    var bytes: [UInt8]
    var ssrc: UInt32
    var sequence: UInt16
    /// Mark of the payload; `nil`: padding, or an empty packet in place of an omitted one.
    var mark: MediaMark?
    var isRepeated: Bool
    /// Sequence number of the packet that it retransmits.
    var original: UInt16?
    /// Hash of the encrypted packet.
    var cipher: UInt64

    init?(clear bytes: [UInt8], cipher: UInt64) {
        guard let packet = try? Packet(bytes.span) else { return nil }
        self.bytes = bytes
        self.cipher = cipher
        ssrc = packet.ssrc.rawValue
        sequence = packet.sequenceNumber.rawValue
        isRepeated = packet.payloadType.rawValue == SimulatedTrack.rtxPayloadType
        let payload = packet.payload
        if isRepeated, payload.count >= 2 { original = payload.u16(at: 0) }
        mark = MediaMark(payload)
        guard mark != nil || payload.count <= (isRepeated ? 2 : 0) else { return nil }
    }
}

/// Ledger of the packets sent to one client under each number of each SSRC.
struct EgressLedger {
    private struct Sent {
        var index: Int64
        var packet: WrittenPacket
    }

    /// Key of a layer within an outgoing stream.
    private struct Layer: Hashable {
        var ssrc: UInt32
        var publisher: UInt32
        var kind: MediaKind
        var layer: UInt8
    }

    private struct Stream {
        var newest: Int64?
        /// Number of media packets.
        var count = 0
        /// Last packets, in a ring by index.
        var sent: [Sent?] = Array(repeating: nil, count: EgressLedger.memory)
    }

    /// Number of packets of a stream that are remembered.
    private static let memory = 1_024

    private var streams: [UInt32: Stream] = [:]

    /// Most retransmissions per packet sent, and in addition from the start.
    ///
    /// A viewer may have a quarter of its media again, and a burst of 256 packets of each process.
    private static let repeatedShare = 3
    private static let repeatedAtFirst = 300
    /// Parts of the first packet of a keyframe, with which a stream may begin again.
    private static let begins: MediaMark.Part = [.keyframe, .start]
    /// Recent indexes of each of a layer's packets.
    private var places: [Layer: [UInt32: Int64]] = [:]

    /// Returns the earlier packet with the very same bits: a retransmission to a viewer without
    /// RTX.
    func packet(_ ssrc: UInt32, _ sequence: UInt16, cipher: UInt64) -> WrittenPacket? {
        guard let stream = streams[ssrc] else { return nil }
        let index = Self.index(of: sequence, after: stream.newest)
        let sent = stream.sent[Int(index & Int64(Self.memory - 1))]
        guard let sent, sent.index == index, sent.packet.cipher == cipher else { return nil }
        return sent.packet
    }

    /// Returns the violation of other bits under a used index: two tags under one nonce.
    func objection(to ssrc: UInt32, _ sequence: UInt16, cipher: UInt64) -> (Invariant, String)? {
        guard let stream = streams[ssrc] else { return nil }
        let index = Self.index(of: sequence, after: stream.newest)
        let sent = stream.sent[Int(index & Int64(Self.memory - 1))]
        guard let sent, sent.index == index, sent.packet.cipher != cipher else { return nil }
        return (.indices, "index \(index) of \(ssrc) carries other bits than before")
    }

    /// Records a packet; returns a violation, if any.
    mutating func note(
        _ packet: WrittenPacket,
        repairing media: UInt32?,
        mayRepeat: Bool,
        processes: Int
    ) -> (Invariant, String)? {
        var stream = streams.removeValue(forKey: packet.ssrc) ?? Stream()
        defer { streams[packet.ssrc] = stream }
        let index = Self.index(of: packet.sequence, after: stream.newest)
        let place = Int(index & Int64(Self.memory - 1))
        if let before = stream.sent[place], before.index == index {
            guard before.packet.cipher == packet.cipher else {
                return (.indices, "index \(index) of \(packet.ssrc) carries two packets")
            }
            return nil
        }
        stream.sent[place] = Sent(index: index, packet: packet)
        stream.newest = max(index, stream.newest ?? index)
        if packet.mark != nil { stream.count += 1 }
        if packet.isRepeated {
            return objection(toRepeated: packet, of: media, count: stream.count, processes)
        }
        let again = objection(toFirst: packet, at: index)
        return mayRepeat ? nil : again
    }

    private func objection(
        toRepeated packet: WrittenPacket,
        of media: UInt32?,
        count: Int,
        _ processes: Int
    ) -> (Invariant, String)? {
        guard let mark = packet.mark, let original = packet.original else { return nil }
        guard let media, let stream = streams[media] else {
            return (.retransmissions, "\(packet.ssrc) repeats what was never sent")
        }
        let limit = stream.count / Self.repeatedShare + Self.repeatedAtFirst * processes
        guard count <= limit else {
            return (.bounds, "\(count) packets are sent again, of \(stream.count)")
        }
        let index = Self.index(of: original, after: stream.newest)
        guard let sent = stream.sent[Int(index & Int64(Self.memory - 1))], sent.index == index
        else { return nil }
        guard sent.packet.mark == mark else {
            return (.retransmissions, "\(original) of \(media) comes again as another packet")
        }
        return nil
    }

    private mutating func objection(
        toFirst packet: WrittenPacket,
        at index: Int64
    ) -> (Invariant, String)? {
        guard let mark = packet.mark else { return nil }
        let layer = Layer(
            ssrc: packet.ssrc,
            publisher: mark.publisher,
            kind: mark.kind,
            layer: mark.layer
        )
        var known = places.removeValue(forKey: layer) ?? [:]
        defer { places[layer] = known }
        if mark.part.isSuperset(of: Self.begins), known[mark.number].map({ $0 < index }) ?? true {
            // A returning viewer's warm picture: all of it from its keyframe on, of which the
            // viewer may have had only the end, where the beginning was withdrawn before it left.
            known = known.filter { $0.key < mark.number }
        } else if let before = known[mark.number], before != index {
            let text = "packet \(mark.number) of client \(mark.publisher) as \(before) and \(index)"
            return (.repetition, text)
        }
        known[mark.number] = index
        if known.count > 2 * Self.memory {
            known = known.filter { $0.key &+ UInt32(Self.memory) > mark.number }
        }
        return nil
    }

    /// Returns the number with its roll-over counter, as a receiver knows it (RFC 3711 §3.3.1).
    private static func index(of sequence: UInt16, after newest: Int64?) -> Int64 {
        guard let newest else { return Int64(sequence) + 0x1_0000 }
        let step = Int16(bitPattern: sequence &- UInt16(truncatingIfNeeded: newest))
        return newest + Int64(step)
    }
}
