package import RTP
package import WorkerInterface

/// A packet on its way from one node to another, without its bytes.
package struct LinkedPacket: Sendable {
    /// Handle of the publication in the link thread's core.
    package var publication: PublicationID
    /// Position of the encoding in its publication, in the order of the offer.
    package var position: Int
    /// Numbering of the encoding; a new one means that its sender restarted.
    package var epoch: UInt32
    /// Sequence number with its wraps counted.
    package var number: Int64
    /// Time of arrival from the publisher, on this machine's clock.
    package var arrival: Instant
    /// Capture time of an RTP timestamp, on this machine's clock.
    package var captured: (instant: Instant, timestamp: UInt32)?
    /// Whether it is video, which waits for its turn where a path is narrow.
    package var isVideo = false

    package init(
        publication: PublicationID,
        position: Int,
        epoch: UInt32,
        number: Int64,
        arrival: Instant
    ) {
        self.publication = publication
        self.position = position
        self.epoch = epoch
        self.number = number
        self.arrival = arrival
    }
}

/// Packets of a linked publication that are missing here.
package struct LinkedLoss: Hashable, Sendable {
    package var publication: PublicationID
    package var position: Int
    package var epoch: UInt32
    /// Sequence numbers, ascending.
    package var numbers: [UInt16]
}

/// Publications that come from other nodes: for this node's workers the link thread's core is
/// their home.
extension Core {
    /// Creates a publication that another node feeds, with its gate closed, or updates it.
    package mutating func addLinked(_ configuration: PublicationConfiguration, at now: Instant) {
        let id = configuration.id
        guard !receiver.publications.contains(id) else { return update(configuration, at: now) }
        var publication = Publication(configuration, origin: .link)
        publication.isOpen = false
        receiver.publications.insert(publication, at: id)
        receiver.mirrors.append(id.place)
        receiver.addEncodings(to: id.place, &transports)
        receiver.scheduleMirrors(by: now)
    }

    package mutating func removeLinked(_ id: PublicationID) {
        guard receiver.publications.contains(id) else { return }
        remove(publication: id.place)
    }

    /// Sets the encodings of a linked publication that the link does not carry now, one bit each;
    /// all mirrors are told.
    package mutating func setWithheld(_ id: PublicationID, _ encodings: UInt8) {
        guard receiver.publications.contains(id),
            case .link = receiver.publications[id.place].origin
        else { return }
        receiver.publications[id.place].withheld = encodings
        relays.tellWithholding(of: id.place)
    }

    /// Numbering of an encoding's packets as they come from other nodes; `nil` before the first.
    package func linkedEpoch(of id: PublicationID, position: Int) -> UInt32? {
        guard receiver.publications.contains(id), receiver.publications[id.place].isLinked,
            (0..<receiver.publications[id.place].encodings.count).contains(position)
        else { return nil }
        return receiver.encodings[receiver.publications[id.place].encodings[position]].homeEpoch
    }

    /// Whether there is room for one more packet in the batch.
    package var hasRoom: Bool { receiver.arrivalCount < Receiver.batchCapacity }

    /// Takes a packet of another node: the steps of ingress that remain for this one.
    ///
    /// Returns whether it is kept; a packet that has come before, is malformed, or meets a closed
    /// gate is counted as dropped.
    package mutating func receiveLinked(
        _ packet: LinkedPacket,
        _ bytes: Span<UInt8>,
        at now: Instant
    ) -> Bool {
        guard hasRoom, bytes.count <= Batch.maximumLength, let place = receiver.pool.allocate()
        else {
            receiver.relayDrops.count(.bufferFull)
            return false
        }
        var packets = receiver.pool.packets
        var target = packets.mutableBytes(at: place)
        for index in bytes.indices { target[index] = bytes[index] }
        do throws(DropReason) {
            try enterLinked(packet, place: place, length: bytes.count, at: now)
            return true
        } catch {
            receiver.relayDrops.count(error)
            receiver.pool.release(place)
            return false
        }
    }

    private mutating func enterLinked(
        _ packet: LinkedPacket,
        place: PacketPlace,
        length: Int,
        at now: Instant
    ) throws(DropReason) {
        guard receiver.publications.contains(packet.publication) else { throw .unknownStream }
        let publication = packet.publication.place
        guard case .link = receiver.publications[publication].origin, packet.position >= 0,
            packet.position < receiver.publications[publication].encodings.count
        else { throw .unknownStream }
        guard receiver.publications[publication].isOpen else { throw .gated }
        let encoding = receiver.publications[publication].encodings[packet.position]
        var received = ReceivedPacket(
            transport: TransportIndex(0),
            place: place,
            length: length
        )
        received.encoding = encoding
        received.publication = publication
        received.info.arrival = packet.arrival
        received.info.encoding = encoding
        try parseLinked(&received)
        try numberLinked(&received, packet, at: now)
        try receiver.inspectPayload(of: &received)
        received.info.drop =
            received.info.flags.contains(.skipped) ? .padding : .noSubscriber
        if receiver.encodings[encoding].kind == .audio {
            // The next listener may join in the middle of a word.
            receiver.encodings[encoding].history.retentionMilliseconds = History.prerollMilliseconds
        } else if received.layers.mayChangeOffers {
            allocator.noteNews(
                of: publication,
                at: now,
                &transports,
                &receiver,
                &forwarder
            )
        }
        receiver.answerKeyframeRequests(
            with: received.info,
            received.layers,
            encoding: encoding,
            at: now,
            &transports
        )
        receiver.keep(
            received.info,
            place: place,
            encoding: encoding,
            publication: publication
        )
    }

    mutating func parseLinked(_ packet: inout ReceivedPacket) throws(DropReason) {
        let packets = receiver.pool.packets
        let extensions = receiver.publications[packet.publication].configuration.extensions
        do throws(PacketError) {
            let parsed = try Packet(packets.bytes(at: packet.place, count: packet.length))
            packet.ssrc = parsed.ssrc
            packet.info.describe(parsed)
            packet.labels.read(parsed, map: extensions, into: &packet.info)
        } catch {
            throw .malformedRTP
        }
    }

    /// Follows the origin's numbering, and notes what is missing.
    private mutating func numberLinked(
        _ packet: inout ReceivedPacket,
        _ linked: LinkedPacket,
        at now: Instant
    ) throws(DropReason) {
        let encoding = packet.encoding
        try followEpoch(linked.epoch, of: encoding, packet.ssrc, at: linked.arrival)
        // Ours count the wraps from the first packet that came; the low bits are the origin's.
        let sequence = SequenceNumber(rawValue: UInt16(truncatingIfNeeded: linked.number))
        guard sequence == packet.info.sequence else { throw .malformedRTP }
        let before = receiver.encodings[encoding].window.highest
        let verdict = receiver.encodings[encoding].window.insert(sequence)
        switch verdict {
        case .duplicate: throw .duplicate
        case .tooOld: throw .tooOld
        case .newest, .late, .restarted: break
        }
        let newest = receiver.encodings[encoding].window.highest ?? 0
        let extended = newest &+ sequence.distance(from: SequenceNumber(truncating: newest))
        packet.info.number = Int64(extended)
        packet.info.epoch = receiver.encodings[encoding].epoch
        switch verdict {
        case .newest(let gap):
            if before != nil { expectLinked(gap, before: newest, encoding, at: now) }
            receiver.encodings[encoding].isPictureOpen = false
        case .restarted: receiver.encodings[encoding].losses.removeAll()
        case .late, .duplicate, .tooOld: receiver.encodings[encoding].losses.found(extended)
        }
        if let captured = linked.captured {
            receiver.encodings[encoding].captured = CaptureTime(
                instant: captured.instant,
                timestamp: captured.timestamp
            )
        }
        receiver.encodings[encoding].watch
            .receive(
                number: packet.info.number,
                timestamp: packet.info.timestamp,
                clockRate: receiver.encodings[encoding].clockRate,
                at: packet.info.arrival
            )
        receiver.encodings[encoding].rate.receive(
            bytes: packet.length,
            endsFrame: packet.info.flags.contains(.marker),
            isMedia: packet.info.payloadLength > 0,
            at: packet.info.arrival
        )
    }

    /// Begins a new numbering where the origin has.
    ///
    /// A packet of a former one that was overtaken on its way is too old: an origin's epochs grow,
    /// but for those of a process that dies right after its start.
    mutating func followEpoch(
        _ epoch: UInt32,
        of encoding: EncodingIndex,
        _ ssrc: SSRC,
        at arrival: Instant
    ) throws(DropReason) {
        let mayBeginLower = receiver.encodings[encoding].mayBeginLower
        if mayBeginLower { receiver.encodings[encoding].mayBeginLower = false }
        if let present = receiver.encodings[encoding].homeEpoch {
            guard present != epoch else { return }
            guard mayBeginLower || !isFormer(epoch, before: present, of: encoding, at: arrival)
            else { throw .tooOld }
        }
        let own = receiver.takeEpoch()
        receiver.encodings[encoding].restart(with: ssrc, epoch: own, pool: &receiver.pool)
        receiver.encodings[encoding].homeEpoch = epoch
    }

    /// Whether an epoch is a former one of an encoding whose packets still come under `present`.
    private mutating func isFormer(
        _ epoch: UInt32,
        before present: UInt32,
        of encoding: EncodingIndex,
        at arrival: Instant
    ) -> Bool {
        guard present &- epoch <= Self.formerEpochs,
            let last = receiver.encodings[encoding].rate.lastArrival
        else { return false }
        return arrival.milliseconds(since: last) < Self.overtakenMilliseconds
    }

    /// Epochs below the present one that are former ones; any others are of another clock.
    private static let formerEpochs: UInt32 = 1_000_000
    /// Time for which a packet of a former numbering may still come.
    private static let overtakenMilliseconds: Int64 = 1_000

    /// Follows whatever numbering comes next of a publication: its node's process may be another
    /// one.
    package mutating func expectAnyNumbering(of id: PublicationID) {
        guard receiver.publications.contains(id), receiver.publications[id.place].isLinked else {
            return
        }
        for position in 0..<receiver.publications[id.place].encodings.count {
            let encoding = receiver.publications[id.place].encodings[position]
            receiver.encodings[encoding].mayBeginLower = true
        }
    }

    private mutating func expectLinked(
        _ gap: Int,
        before newest: Int,
        _ encoding: EncodingIndex,
        at now: Instant
    ) {
        guard gap > 0 else { return }
        guard !receiver.encodings[encoding].isPictureOpen else {
            // It is the rest of a warm picture, which is of no use any more.
            return receiver.requestKeyframeAfterLoss(of: encoding, now, &transports)
        }
        let abandoned = receiver.encodings[encoding].losses.abandoned
        let silence =
            receiver.encodings[encoding].rate.lastArrival.map { now.milliseconds(since: $0) } ?? 0
        receiver.encodings[encoding].losses.expect(
            gap: gap,
            before: newest,
            silence: silence,
            at: now
        )
        if receiver.encodings[encoding].losses.abandoned != abandoned {
            receiver.requestKeyframeAfterLoss(of: encoding, now, &transports)
        }
    }

    /// Returns what to ask other nodes for again now.
    ///
    /// `retryMilliseconds` is called with a publication, and returns the time after which its
    /// packets are asked for again. Packets that are lost for good are left to a keyframe.
    package mutating func takeLinkedLosses(
        at now: Instant,
        retryMilliseconds: (PublicationID) -> Int64
    ) -> [LinkedLoss] {
        var losses: [LinkedLoss] = []
        for index in 0..<receiver.mirrors.count {
            let publication = receiver.mirrors[index]
            guard case .link = receiver.publications[publication].origin else { continue }
            for position in 0..<receiver.publications[publication].encodings.count {
                let encoding = receiver.publications[publication].encodings[position]
                guard !receiver.encodings[encoding].losses.isEmpty else { continue }
                let id = receiver.publications.handle(at: publication)
                var due = UncountedArray<SequenceNumber>()
                let abandoned = receiver.encodings[encoding].losses.abandoned
                receiver.encodings[encoding].losses.collect(
                    dueAt: now,
                    retryMilliseconds: retryMilliseconds(id),
                    into: &due
                )
                if receiver.encodings[encoding].losses.abandoned != abandoned {
                    receiver.requestKeyframeAfterLoss(of: encoding, now, &transports)
                }
                guard due.count > 0, let epoch = receiver.encodings[encoding].homeEpoch else {
                    continue
                }
                var loss = LinkedLoss(
                    publication: id,
                    position: position,
                    epoch: epoch,
                    numbers: []
                )
                for index in 0..<due.count { loss.numbers.append(due[index].rawValue) }
                losses.append(loss)
            }
        }
        return losses
    }

    /// Time of the next `takeLinkedLosses` with something to return.
    package var linkedLossDeadline: Instant? {
        var first: Instant?
        for index in 0..<receiver.mirrors.count {
            let publication = receiver.mirrors[index]
            guard case .link = receiver.publications[publication].origin else { continue }
            for position in 0..<receiver.publications[publication].encodings.count {
                let encoding = receiver.publications[publication].encodings[position]
                guard let due = receiver.encodings[encoding].losses.deadline else { continue }
                first = min(first ?? due, due)
            }
        }
        return first
    }

    /// Returns the keyframe requests for other nodes, with the positions of their encodings.
    package mutating func takeLinkedRequests() -> [(PublicationID, Int)] {
        guard !relays.linkRequests.isEmpty else { return [] }
        var requests: [(PublicationID, Int)] = []
        for (publication, position) in relays.linkRequests
        where receiver.publications.isOccupied(publication) {
            requests.append((receiver.publications.handle(at: publication), position))
        }
        relays.linkRequests = []
        return requests
    }
}
