package import RTP
package import WorkerInterface

/// Publications that go to other nodes: mirrors in the link thread's core, and publications of
/// other nodes that pass by way of this one.
extension Core {
    /// Sets the encodings of a mirror or of a linked publication that other nodes want, one bit
    /// each.
    package mutating func setExported(_ id: PublicationID, _ encodings: UInt8) {
        guard receiver.publications.contains(id), receiver.publications[id.place].transport == nil
        else { return }
        receiver.publications[id.place].exported = encodings
    }

    /// Returns the video encodings of what goes out by position, with their bitrates in bits a
    /// second, the lowest first; `nil` if it is no video, or its gate is closed.
    ///
    /// A paused one counts as it was last, so that its place does not change.
    package mutating func exportedEncodings(
        of id: PublicationID
    ) -> (encodings: [(position: Int, bitrate: Int)], isScreen: Bool)? {
        guard receiver.publications.contains(id), receiver.publications[id.place].kind.isVideo,
            receiver.publications[id.place].isOpen
        else { return nil }
        var found: [(pixels: Int, bitrate: Int, position: Int)] = []
        for position in 0..<receiver.publications[id.place].encodings.count {
            let encoding = receiver.publications[id.place].encodings[position]
            let pixels = receiver.encodings[encoding].width * receiver.encodings[encoding].height
            let last = receiver.encodings[encoding].lastOption?.likelyBitrate ?? 0
            let bitrate = receiver.encodings[encoding].rate.bitrate
            found.append((pixels, bitrate > 0 ? bitrate : last, position))
        }
        found.sort { ($0.pixels, $0.bitrate, $0.position) < ($1.pixels, $1.bitrate, $1.position) }
        let isScreen = receiver.publications[id.place].configuration.isScreen
        return (found.map { ($0.position, $0.bitrate) }, isScreen)
    }

    /// Requests a keyframe for another node, like one for a viewer here.
    package mutating func requestLinkedKeyframe(
        of id: PublicationID,
        position: Int,
        at now: Instant
    ) {
        guard receiver.publications.contains(id), position >= 0 else { return }
        let publication = id.place
        guard receiver.publications[publication].kind == .video,
            receiver.publications[publication].isOpen,
            position < receiver.publications[publication].encodings.count
        else { return }
        let encoding = receiver.publications[publication].encodings[position]
        receiver.requestKeyframe(of: encoding, at: now, &transports)
    }

    /// Returns the packets of the batch that other nodes want, in order; flush after it.
    package mutating func takeExports() -> [(LinkedPacket, [UInt8])] {
        var packets: [(LinkedPacket, [UInt8])] = []
        for index in 0..<receiver.queued.count {
            let publication = receiver.queued[index]
            let wanted = receiver.publications[publication].exported
            guard wanted != 0, receiver.publications[publication].isOpen else { continue }
            var next = receiver.publications[publication].firstArrival
            while let place = next {
                next = receiver.pool[place].next.value
                guard wanted & receiver.bit(of: receiver.pool[place].encoding) != 0 else {
                    continue
                }
                guard let linked = linked(place, of: publication) else { continue }
                packets.append((linked, exported(place)))
                if !receiver.pool[place].flags.contains(.skipped) {
                    receiver.pool[place].drop = nil
                }
            }
        }
        return packets
    }

    /// Returns the packets of a sound that are held since `start`, in order; those of the
    /// batch are not among them.
    package mutating func heldAudio(
        of id: PublicationID,
        since start: Instant
    ) -> [(LinkedPacket, [UInt8])] {
        guard receiver.publications.contains(id), receiver.publications[id.place].isOpen,
            receiver.publications[id.place].kind == .audio,
            let encoding = receiver.publications[id.place].encodings.first
        else { return [] }
        let end = receiver.firstPending(of: id.place)
        var packets: [(LinkedPacket, [UInt8])] = []
        for number in receiver.encodings[encoding].history.numbers where number < end {
            guard let place = receiver.encodings[encoding].history.place(of: number),
                receiver.pool[place].arrival >= start
            else { continue }
            guard let linked = linked(place, of: id.place) else { continue }
            packets.append((linked, exported(place)))
        }
        return packets
    }

    /// Returns a kept packet for a node that has missed it; `nil` if it is not kept, or if it is
    /// video older than `ageMilliseconds`, which comes too late.
    package mutating func repeated(
        _ id: PublicationID,
        position: Int,
        epoch: UInt32,
        number: UInt16,
        ageMilliseconds: Int64,
        at now: Instant
    ) -> (LinkedPacket, [UInt8])? {
        guard receiver.publications.contains(id), position >= 0,
            receiver.publications[id.place].isOpen,
            position < receiver.publications[id.place].encodings.count
        else { return nil }
        let encoding = receiver.publications[id.place].encodings[position]
        guard exportedEpoch(of: encoding) == epoch else { return nil }
        let newest = receiver.encodings[encoding].history.numbers.upperBound &- 1
        let distance = SequenceNumber(rawValue: number)
            .distance(from: SequenceNumber(truncating: newest))
        guard let place = receiver.encodings[encoding].history.place(of: newest &+ distance)
        else { return nil }
        let age = now.milliseconds(since: receiver.pool[place].arrival)
        guard receiver.encodings[encoding].kind.isAudio || age < ageMilliseconds else { return nil }
        return linked(place, of: id.place).map { ($0, exported(place)) }
    }

    /// Numbering of an encoding as other nodes know it; `nil` where that of a linked publication
    /// has yet to come.
    ///
    /// A publication that passes by way of this node keeps the origin's, so that a node can take it
    /// from another one without a new picture.
    private mutating func exportedEpoch(of encoding: EncodingIndex) -> UInt32? {
        let publication = receiver.encodings[encoding].publication
        return receiver.publications[publication].isLinked
            ? receiver.encodings[encoding].homeEpoch : receiver.encodings[encoding].epoch
    }

    /// Describes a packet for other nodes; `nil` if it is of a former numbering of the origin's.
    mutating func linked(_ place: PacketPlace, of publication: PublicationIndex) -> LinkedPacket? {
        let encoding = receiver.pool[place].encoding
        var epoch: UInt32? = receiver.pool[place].epoch
        if receiver.publications[publication].isLinked {
            let isPresent = receiver.encodings[encoding].epoch == epoch
            epoch = isPresent ? receiver.encodings[encoding].homeEpoch : nil
        }
        guard let epoch else { return nil }
        var packet = LinkedPacket(
            publication: receiver.publications.handle(at: publication),
            position: receiver.encodings[encoding].position,
            epoch: epoch,
            number: receiver.pool[place].number,
            arrival: receiver.pool[place].arrival
        )
        packet.isVideo = receiver.encodings[encoding].kind.isVideo
        if let captured = receiver.encodings[encoding].captured {
            packet.captured = (captured.instant, captured.timestamp)
        }
        return packet
    }

    /// Returns a packet's bytes as its publisher first sent them, without padding.
    mutating func exported(_ place: PacketPlace) -> [UInt8] {
        let info = receiver.pool[place]
        let end = Int(info.payloadOffset) + Int(info.payloadLength)
        // A retransmission has the original number before its payload (RFC 4588 §4).
        let header = Int(info.payloadOffset) - (info.flags.contains(.repaired) ? 2 : 0)
        guard header >= 12 else { return [] }
        let payload = Int(info.payloadOffset)..<end
        var packet = receiver.pool.packets.copy(at: place, header: header, payload: payload)
        packet[0] &= 0b1101_1111
        packet[1] = info.payloadType | (info.flags.contains(.marker) ? 0x80 : 0)
        let sequence = UInt16(truncatingIfNeeded: info.number)
        packet[2] = UInt8(truncatingIfNeeded: sequence >> 8)
        packet[3] = UInt8(truncatingIfNeeded: sequence)
        return packet
    }
}
