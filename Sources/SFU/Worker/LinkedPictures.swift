package import RTP
package import WorkerInterface

/// A packet of a warm picture on its way to another node, without its bytes.
package struct LinkedPicture: Sendable {
    package var packet: LinkedPacket
    /// Sequence numbers from this packet up to the next one of the picture, or to its end.
    package var covered: Int
    package var isLast: Bool

    package init(_ packet: LinkedPacket, covered: Int, isLast: Bool) {
        self.packet = packet
        self.covered = covered
        self.isLast = isLast
    }
}

/// Warm pictures for other nodes: who is the first viewer there has a picture at once, and the
/// publisher is asked for none.
extension Core {
    /// Returns the warm picture of the lowest encoding of what goes out, the first packet first, if
    /// it is among the encodings in `wanted`, one bit each; empty if there is none.
    ///
    /// Packets that arrive from now on continue it.
    package mutating func linkedPicture(
        of id: PublicationID,
        among wanted: UInt8,
        at now: Instant
    ) -> [(LinkedPicture, [UInt8])] {
        guard receiver.publications.contains(id), receiver.publications[id.place].isOpen,
            let encoding = receiver.lowestLive(of: id.place),
            wanted & receiver.bit(of: encoding) != 0
        else { return [] }
        var numbers = receiver.pictureNumbers(of: encoding, at: now)
        var packets: [(LinkedPicture, [UInt8])] = []
        while !numbers.isEmpty {
            let (number, covered) = numbers.removeLast()
            guard let place = receiver.encodings[encoding].history.place(of: number),
                let linked = linked(place, of: id.place)
            else { return [] }
            let picture = LinkedPicture(
                linked,
                covered: covered,
                isLast: numbers.isEmpty
            )
            packets.append((picture, exported(place)))
        }
        return packets
    }

    /// Lets the epochs begin above a number: those that another node has seen of an earlier process
    /// are not used again.
    package mutating func beginEpochs(after last: UInt32) { receiver.lastEpoch = last }

    /// Lets the next packets of encodings of a linked publication, one bit each, begin a new
    /// numbering: they were not wanted for a while, and what came before is of no use for them.
    package mutating func beginLinked(_ encodings: UInt8, of id: PublicationID) {
        guard receiver.publications.contains(id), receiver.publications[id.place].isLinked else {
            return
        }
        for position in 0..<receiver.publications[id.place].encodings.count {
            let encoding = receiver.publications[id.place].encodings[position]
            guard encodings & receiver.bit(of: encoding) != 0 else { continue }
            receiver.encodings[encoding].homeEpoch = nil
        }
    }

    /// Takes a packet of another node's warm picture; the picture is passed on once it is whole.
    ///
    /// Returns whether it is kept. A picture of which a packet is missing is given up: a keyframe
    /// is asked for instead.
    package mutating func receiveLinkedPicture(
        _ picture: LinkedPicture,
        _ bytes: Span<UInt8>,
        at now: Instant
    ) -> Bool {
        guard bytes.count <= Batch.maximumLength, let place = receiver.pool.allocate() else {
            receiver.relayDrops.count(.bufferFull)
            return false
        }
        var packets = receiver.pool.packets
        var target = packets.mutableBytes(at: place)
        for index in bytes.indices { target[index] = bytes[index] }
        do throws(DropReason) {
            try enterPicture(picture, place: place, length: bytes.count, at: now)
            return true
        } catch {
            receiver.relayDrops.count(error)
            receiver.pool.release(place)
            return false
        }
    }

    private mutating func enterPicture(
        _ picture: LinkedPicture,
        place: PacketPlace,
        length: Int,
        at now: Instant
    ) throws(DropReason) {
        let linked = picture.packet
        guard receiver.publications.contains(linked.publication) else { throw .unknownStream }
        let publication = linked.publication.place
        guard receiver.publications[publication].isLinked,
            receiver.publications[publication].kind == .video, linked.position >= 0,
            linked.position < receiver.publications[publication].encodings.count,
            (1...WarmPicture.rangeLimit).contains(picture.covered)
        else { throw .unknownStream }
        guard receiver.publications[publication].isOpen else { throw .gated }
        let encoding = receiver.publications[publication].encodings[linked.position]
        var received = ReceivedPacket(transport: TransportIndex(0), place: place, length: length)
        received.encoding = encoding
        received.publication = publication
        received.info.arrival = linked.arrival
        received.info.encoding = encoding
        try parseLinked(&received)
        try numberPicture(&received, picture)
        guard try receiver.inspectMedia(of: &received) != nil else { throw .padding }
        received.info.drop = .noSubscriber
        receiver.pool[place] = received.info
        guard
            receiver.beginsOrContinuesPicture(received.info, of: encoding),
            receiver.keepPicture(received.info, place, covered: picture.covered, of: encoding)
        else { throw .tooOld }
        guard picture.isLast else { return }
        passOn(linked, received.info, place, of: encoding, publication, at: now)
    }

    /// Gives the packet its number, unless live packets are further already.
    ///
    /// Nothing counts as missing that a picture leaves out, or that is lost with a part of it:
    /// nobody asks for any of it again.
    private mutating func numberPicture(
        _ packet: inout ReceivedPacket,
        _ picture: LinkedPicture
    ) throws(DropReason) {
        let encoding = packet.encoding
        let sequence = SequenceNumber(rawValue: UInt16(truncatingIfNeeded: picture.packet.number))
        guard sequence == packet.info.sequence else { throw .malformedRTP }
        // If it comes from another node than before, its viewers have what came before: live
        // packets go on, and what they leave out is asked for again.
        let isBegun =
            receiver.encodings[encoding].homeEpoch == picture.packet.epoch
            && receiver.encodings[encoding].window.highest != nil
        guard !isBegun || receiver.encodings[encoding].isPictureOpen else { throw .tooOld }
        try followEpoch(
            picture.packet.epoch,
            of: encoding,
            packet.ssrc,
            at: picture.packet.arrival
        )
        if let newest = receiver.encodings[encoding].window.highest,
            sequence.distance(from: SequenceNumber(truncating: newest)) <= 0
        {
            throw .tooOld
        }
        _ = receiver.encodings[encoding].window.insert(sequence)
        receiver.encodings[encoding].isPictureOpen = !picture.isLast
        packet.info.number = Int64(receiver.encodings[encoding].window.highest ?? 0)
        packet.info.epoch = receiver.encodings[encoding].epoch
    }

    /// Passes a whole picture on to the workers that have asked for it.
    private mutating func passOn(
        _ linked: LinkedPacket,
        _ info: PacketInfo,
        _ place: PacketPlace,
        of encoding: EncodingIndex,
        _ publication: PublicationIndex,
        at now: Instant
    ) {
        if let captured = linked.captured {
            receiver.encodings[encoding].captured = CaptureTime(
                instant: captured.instant,
                timestamp: captured.timestamp
            )
        }
        // Measurements begin with the present, not with the keyframe.
        _ = receiver.noteVideo(info, place, isNews: false, encoding: encoding)
        receiver.encodings[encoding].rate.receive(
            bytes: Int(info.payloadOffset) + Int(info.payloadLength),
            endsFrame: info.flags.contains(.marker),
            isMedia: true,
            at: now
        )
        allocator.refreshLayers(of: publication, at: now, &transports, &receiver, &forwarder)
        relays.passOnPicture(of: publication, receiver)
    }
}
