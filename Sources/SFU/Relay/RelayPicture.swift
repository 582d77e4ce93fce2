import RTP
import WorkerInterface

// The warm picture for a mirror that is created for its worker's first viewer: the mirror asks for
// it, and the home sends what it keeps.
extension Relays {
    /// Asks the home for the warm picture, until it comes.
    ///
    /// Returns the time of the next request, or `nil` if there is none. A home that has no picture
    /// does not answer.
    mutating func requestPicture(
        of publication: PublicationIndex,
        through port: inout RelayPort,
        at now: Instant,
        _ receiver: inout Receiver
    ) -> Instant? {
        guard receiver.publications[publication].wantsPicture,
            let home = receiver.publications[publication].home
        else { return nil }
        guard receiver.publications[publication].asks > 0 else {
            receiver.publications[publication].wantsPicture = false
            return nil
        }
        receiver.publications[publication].asks -= 1
        if port.reaches(home.worker) {
            let request = RelayMessage(
                .pictureRequest,
                to: home.publication,
                from: receiver.publications.handle(at: publication),
                position: 0
            )
            _ = port.write(request, Span(), to: home.worker)
        }
        return now.advanced(milliseconds: Self.askMilliseconds)
    }

    /// Records a mirror's request, which the next `relay` answers.
    mutating func notePictureRequest(
        _ message: RelayMessage,
        from worker: Int,
        _ receiver: inout Receiver
    ) {
        guard receiver.publications.contains(message.target) else { return }
        let publication = message.target.place
        let target = RelayTarget(worker: worker, publication: message.source)
        for mirror in 0..<receiver.publications[publication].mirrors.count
        where receiver.publications[publication].mirrors[mirror].target == target {
            receiver.publications[publication].mirrors[mirror].wantsPicture = true
            if !pictureRequests.contains(publication) { pictureRequests.append(publication) }
        }
    }

    /// Lets the next `relay` answer requests that came before the picture did.
    mutating func passOnPicture(of publication: PublicationIndex, _ receiver: borrowing Receiver) {
        for mirror in 0..<receiver.publications[publication].mirrors.count
        where receiver.publications[publication].mirrors[mirror].wantsPicture
            && !pictureRequests.contains(publication)
        {
            pictureRequests.append(publication)
        }
    }

    /// Messages of pictures after which no further one is begun before a batch's live packets.
    ///
    /// No picture is longer either, and a ring has 512 places.
    static let pictureMessages = 192

    /// Writes a publication's warm picture to the mirrors that have asked for it; returns how many
    /// messages that are.
    mutating func answerPictureRequests(
        of publication: PublicationIndex,
        into port: inout RelayPort,
        at now: Instant,
        _ receiver: inout Receiver
    ) -> Int {
        guard receiver.publications.isOccupied(publication) else { return 0 }
        var count = 0
        for mirror in 0..<receiver.publications[publication].mirrors.count
        where receiver.publications[publication].mirrors[mirror].wantsPicture {
            receiver.publications[publication].mirrors[mirror].wantsPicture = false
            let target = receiver.publications[publication].mirrors[mirror].target
            // No packet enters a ring from which a fence would have to recall it.
            guard receiver.publications[publication].isOpen, port.reaches(target.worker) else {
                continue
            }
            var written = 0
            if let encoding = receiver.lowestLive(of: publication) {
                written = writePicture(of: encoding, to: target, into: &port, at: now, receiver)
            }
            count &+= written
            if written == 0, receiver.publications[publication].isLinked {
                // It may be on its way from the other node.
                receiver.publications[publication].mirrors[mirror].wantsPicture = true
            }
        }
        return count
    }

    /// Writes the warm picture into a ring.
    ///
    /// If the ring is full, the rest is left out, and the mirror does not use its part.
    private func writePicture(
        of encoding: EncodingIndex,
        to target: RelayTarget,
        into port: inout RelayPort,
        at now: Instant,
        _ receiver: borrowing Receiver
    ) -> Int {
        let publication = receiver.encodings[encoding].publication
        var numbers = receiver.pictureNumbers(of: encoding, at: now)
        let count = numbers.count
        while !numbers.isEmpty {
            let (number, covered) = numbers.removeLast()
            guard let place = receiver.encodings[encoding].history.place(of: number) else {
                return count
            }
            var message = message(place, of: publication, to: target, receiver)
            message.kind = .picture
            message.covered = UInt16(clamping: covered)
            message.endsPicture = numbers.isEmpty
            let packets = receiver.pool.packets
            let packet = packets.bytes(at: place, count: Int(message.length))
            guard port.write(message, packet, to: target.worker) else { return count }
        }
        return count
    }

    /// Takes a packet of the home's warm picture, and shows the picture to who waits once it is
    /// whole.
    mutating func takePicture(
        _ message: RelayMessage,
        of reader: borrowing RelayReader,
        from other: Int,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: inout Receiver,
        _ forwarder: inout Forwarder,
        _ allocator: inout LayerAllocator
    ) {
        guard receiver.publications.contains(message.target) else { return }
        let publication = message.target.place
        let position = Int(message.position)
        guard let home = receiver.publications[publication].home, home.worker == other,
            home.publication == message.source,
            position < receiver.publications[publication].encodings.count,
            receiver.publications[publication].isOpen,
            message.info.arrival > receiver.publications[publication].openedAt
        else { return }
        let encoding = receiver.publications[publication].encodings[position]
        if followNumbering(message, encoding: encoding, &receiver) {
            requestKeyframesAfterGap(publication, at: now, &transports, &receiver, forwarder)
        }
        guard keepPicture(message, of: reader, encoding: encoding, &receiver) else { return }
        receiver.publications[publication].wantsPicture = false
        guard message.endsPicture else { return }
        allocator.refreshLayers(of: publication, at: now, &transports, &receiver, &forwarder)
        for index in 0..<receiver.publications[publication].subscribers.count {
            let slot = receiver.publications[publication].subscribers[index]
            forwarder.requestKeyframe(forSlot: slot, at: now, &transports, &receiver)
        }
    }

    /// Keeps a packet that continues the mirror's warm picture, or begins it; returns whether it
    /// does.
    private mutating func keepPicture(
        _ message: RelayMessage,
        of reader: borrowing RelayReader,
        encoding: EncodingIndex,
        _ receiver: inout Receiver
    ) -> Bool {
        guard receiver.beginsOrContinuesPicture(message.info, of: encoding) else { return false }
        guard let place = receiver.pool.allocate() else { return false }
        var packets = receiver.pool.packets
        var bytes = packets.mutableBytes(at: place)
        reader.copyPacket(length: Int(message.length), into: &bytes)
        var info = message.info
        info.encoding = encoding
        info.epoch = receiver.encodings[encoding].epoch
        info.padding = 0
        receiver.pool[place] = info
        _ = noteSizes(message, encoding: encoding, &receiver)
        if message.endsPicture {
            // Measurements begin with the present, not with the keyframe.
            _ = receiver.noteVideo(info, place, isNews: false, encoding: encoding)
            receiver.encodings[encoding].captured = message.captured
            receiver.encodings[encoding].rate.receive(
                bytes: Int(message.length),
                endsFrame: info.flags.contains(.marker),
                isMedia: true,
                at: info.arrival
            )
        }
        let isKept = receiver.keepPicture(
            info,
            place,
            covered: Int(message.covered),
            of: encoding
        )
        if !isKept { receiver.pool.release(place) }
        return isKept
    }
}

extension Receiver {
    /// Lists the packets of an encoding's warm picture that another worker or node is sent, the
    /// last one first, each with how many numbers it covers: those up to the next one, or to the
    /// end.
    ///
    /// The packets after its last one are among them: their picture ids tell how many pictures were
    /// left out. There are none if there is no picture that can be shown now.
    func pictureNumbers(
        of encoding: EncodingIndex,
        at now: Instant
    ) -> UncountedArray<(number: Int, covered: Int)> {
        guard let warm = encodings[encoding].history.warm, warm.isUsable(at: now),
            let end = firstUnsent(of: encoding, endingAt: warm.end), warm.start < end
        else { return UncountedArray() }
        var next = end
        var last = end - 1
        while last > warm.start, !isKept(last, of: encoding, in: warm) { last -= 1 }
        var numbers = UncountedArray<(number: Int, covered: Int)>(capacity: warm.packets)
        for number in (warm.start..<end).reversed() {
            guard encodings[encoding].history.place(of: number) != nil,
                number > last || isKept(number, of: encoding, in: warm)
            else { continue }
            numbers.append((number, next - number))
            next = number
        }
        // Without it a keyframe is asked for in the end.
        if numbers.count > Relays.pictureMessages { numbers.removeAll() }
        return numbers
    }

    private func isKept(_ number: Int, of encoding: EncodingIndex, in warm: WarmPicture) -> Bool {
        guard let place = encodings[encoding].history.place(of: number) else { return false }
        return warm.keeps(pool[place], number: number)
    }

    /// Prepares an encoding's history for a packet of a warm picture from elsewhere; returns
    /// whether it begins a picture or continues the one that there is.
    mutating func beginsOrContinuesPicture(
        _ info: PacketInfo,
        of encoding: EncodingIndex
    ) -> Bool {
        if let warm = encodings[encoding].history.warm {
            return Int(truncatingIfNeeded: info.number) == warm.end
        }
        guard info.flags.contains(.keyframeStart) else { return false }
        // Live packets that came before it are in it too.
        encodings[encoding].history.removeAll(from: &pool)
        return true
    }

    /// Keeps a packet of a warm picture from elsewhere, which covers so many numbers; returns
    /// whether it did.
    mutating func keepPicture(
        _ info: PacketInfo,
        _ place: PacketPlace,
        covered: Int,
        of encoding: EncodingIndex
    ) -> Bool {
        let isKept = encodings[encoding].history.insert(
            place,
            number: Int(truncatingIfNeeded: info.number),
            at: info.arrival,
            beginsPicture: info.flags.contains(.keyframeStart),
            pool: &pool
        )
        encodings[encoding].history.leaveOut(covered &- 1)
        return isKept
    }
}
