import HostilePeer
import LoadPeer
import RTP
import SFU
import WorkerInterface

// Output of the workers' sockets, and input of clients.
extension World: SimulatedNetwork {
    /// Reads a media packet as its receiver will, the moment the core has written it.
    func written(_ bytes: [UInt8], to path: Path, by worker: Int) {
        guard case .rtp = Datagram(bytes.span) else { return }
        guard let client = client(at: path), !client.isGone, client.isConnected else { return }
        let cipher = Self.hash(bytes)
        let (ssrc, sequence) = (bytes.span.u32(at: 8), bytes.span.u16(at: 2))
        violate(ledgers[client.index]?.objection(to: ssrc, sequence, cipher: cipher))
        if let again = ledgers[client.index]?.packet(ssrc, sequence, cipher: cipher) {
            underWay[Wire(path: path, ssrc: ssrc, sequence: sequence)] = again
            return
        }
        let found = client.peer.receive(bytes.span, at: now, into: &unsaid)
        guard case .rtp(let length) = found else {
            return violate(.readable, "client \(client.index) cannot decrypt a packet")
        }
        let clear = client.peer.clear(length: length)
        guard var packet = WrittenPacket(clear: clear, cipher: cipher) else {
            return violate(.readable, "client \(client.index) is sent a packet without a mark")
        }
        let wire = Wire(path: path, ssrc: packet.ssrc, sequence: packet.sequence)
        tamper(with: &packet, for: client)
        tally.media += 1
        trace.note(client.index)
        trace.note(packet.ssrc)
        trace.note(packet.sequence)
        trace.note(packet.mark?.number ?? 0)
        let media = client.repaired[packet.ssrc]
        violate(
            ledgers[client.index, default: EgressLedger()].note(
                packet,
                repairing: media,
                mayRepeat: mayRepeat(packet, for: client),
                processes: tally.restarts + 1
            )
        )
        underWay[wire] = packet
        guard !packet.isRepeated, packet.mark != nil else { return }
        if strikes(.wrongRoom, oneIn: 1_000) {
            stray(packet) { $0.room != client.room }
        } else if strikes(.wrongViewer, oneIn: 1_000) {
            stray(packet) { $0.room == client.room && $0.index != client.index }
        }
    }

    /// Whether a returning listener may be sent a packet again under another number.
    ///
    /// A recreated mirror has another sequence than the one before it, so its worker does not know
    /// which of the first words the listener has received. An adversary's packets do not say where
    /// a picture begins, so neither can the ledger tell a returning viewer's warm one.
    private func mayRepeat(_ packet: WrittenPacket, for client: WorldClient) -> Bool {
        guard let mark = packet.mark else { return false }
        guard mark.kind == .audio else { return mark.layer == Adversary.layer }
        return clients[Int(mark.publisher)].map { $0.worker != client.worker } ?? true
    }

    private static func hash(_ bytes: [UInt8]) -> UInt64 {
        var hash = TraceHash()
        var place = 0
        while place + 8 <= bytes.count {
            hash.note(bytes.span.u32(at: place))
            hash.note(bytes.span.u32(at: place + 4))
            place += 8
        }
        for byte in bytes[place...] { hash.note(byte) }
        return hash.value
    }

    /// Alters a packet as some planted bugs do.
    private func tamper(with packet: inout WrittenPacket, for client: WorldClient) {
        guard plant != nil, packet.mark != nil else { return }
        if packet.isRepeated {
            guard strikes(.wrongCache, oneIn: 20), let other = lastMark, other != packet.mark
            else { return }
            packet.mark = other
            return
        }
        if strikes(.numberTwice, oneIn: 500) { packet.sequence &-= 1 }
        if strikes(.numberMovedTwice, oneIn: 500) { packet.sequence &+= 1 }
        lastMark = packet.mark
    }

    /// Sends a packet to a client that must not get it.
    private func stray(_ packet: WrittenPacket, to isMeant: (WorldClient) -> Bool) {
        let others = clients.values.filter { $0.isConnected && !$0.isGone && isMeant($0) }
        guard let other = others.min(by: { $0.index < $1.index }), let mark = packet.mark else {
            return
        }
        violate(rights.objection(to: mark, for: other))
    }

    /// Takes a datagram that has left a worker's socket.
    func leave(_ bytes: [UInt8], to path: Path, from worker: Int) {
        violate(consent.noteOut(bytes, to: path, at: now))
        guard !Adversary.isStranger(path) else { return }
        guard let client = client(at: path) else {
            return violate(.readable, "a datagram goes to \(path.remote), where nobody ever was")
        }
        trace.note(now.nanoseconds)
        trace.note(bytes.first ?? 0)
        var parcel = Parcel.datagram(bytes)
        if case .rtp = Datagram(bytes.span) {
            let wire = Wire(
                path: path,
                ssrc: bytes.span.u32(at: 8),
                sequence: bytes.span.u16(at: 2)
            )
            guard !client.isGone else {
                guard !client.mayHear else { return }
                return violate(.rights, "media goes to client \(client.index), which has ended")
            }
            // Packets before the keys cannot be read.
            guard let packet = underWay.removeValue(forKey: wire) else { return }
            violate(consent.objection(toMediaFor: path, at: now, since: lastStall))
            if let mark = packet.mark { violate(rights.objection(to: mark, for: client)) }
            parcel = .media(packet.bytes)
            // The bug changed its number, so a viewer misses the original one.
            if packet.sequence != wire.sequence { return }
            if client.path != WorldClient.path(of: client.index), strikes(.staleAddress) { return }
        }
        guard !client.isGone, client.path == path else { return }
        carry(parcel, to: client)
    }

    private func carry(_ parcel: Parcel, to client: WorldClient) {
        let (first, second) = client.down.arrivals(at: now, using: &random)
        for arrival in [first, second] {
            guard let arrival else { continue }
            schedule.add(.toClient(client.index, parcel), at: arrival)
        }
    }

    /// Delivers a datagram to a client.
    func arrive(_ parcel: Parcel, at index: Int) {
        guard let client = clients[index], !client.isGone, !client.isStill,
            !client.isDeaf
        else { return }
        switch parcel {
        case .media(let bytes): client.take(clear: bytes, at: now)
        case .datagram(let bytes):
            let found = client.peer.receive(bytes.span, at: now, into: &sent)
            switch found {
            case .rtcp(let length):
                if !strikes(.lostKeyframeRequest) || !Self.asksForKeyframe(client, length) {
                    client.take(report: client.peer.clear(length: length), into: &sent)
                }
            case .connected:
                trace.note(index)
                trace.note(now.nanoseconds)
            case .nothing, .rtp, .undecryptable, .failed: break
            }
        }
        sendAll(from: client)
        plan(client, at: now)
    }

    private static func asksForKeyframe(_ client: WorldClient, _ length: Int) -> Bool {
        let report = client.peer.clear(length: length)
        var blocks = RTCPBlocks(report.span)
        while let block = blocks.next() {
            if (try? PictureLossIndication(block)) != nil { return true }
        }
        return false
    }

    /// Performs what is due for a client.
    func tick(_ index: Int) {
        guard let client = clients[index], !client.isGone, client.nextTick == now else { return }
        client.nextTick = nil
        client.audioInterval = pace.audio
        client.videoInterval = pace.video
        guard !client.isStill else { return plan(client, at: now.advanced(milliseconds: 500)) }
        let next = client.tick(at: now, using: &random, into: &sent)
        sendAll(from: client)
        plan(client, at: next)
    }

    /// Schedules a client's next turn no later than `time`.
    func plan(_ client: WorldClient, at time: Instant) {
        let due = max(time, now.advanced(nanoseconds: 1_000))
        if let known = client.nextTick, known <= due { return }
        client.nextTick = due
        schedule.add(.tick(client: client.index), at: due)
    }

    /// Puts a client's output into its link.
    func sendAll(from client: WorldClient) {
        for position in 0..<sent.count {
            let (first, second) = client.up.arrivals(at: now, using: &random)
            let bytes = sent.bytes(at: position)
            client.keep(flight: bytes)
            for arrival in [first, second] {
                guard let arrival else { continue }
                schedule.add(.toWorker(client.worker, client.path, bytes), at: arrival)
            }
            if second != nil, strikes(.replayedPacket, oneIn: 8) { client.replays = true }
        }
        sent.removeAll()
    }

    private func client(at path: Path) -> WorldClient? {
        clientsByPath[path].flatMap { clients[$0] }
    }

    /// Changes a client's address, as a NAT does that has lost its binding.
    func move(_ client: WorldClient) {
        moves += 1
        client.path = WorldClient.path(of: client.index, move: moves)
        clientsByPath[client.path] = client.index
        tell("client \(client.index) moves to \(client.path.remote)")
    }
}

// Sums of the workers' counters.
extension World {
    /// Requests the workers' statistics at intervals.
    func askForSums() {
        for worker in workers {
            lastToken += 1
            worker.mailbox.append(.report(token: lastToken))
            wake(worker.index)
        }
    }

    func check(_ statistics: WorkerStatistics, _ token: UInt64, of worker: Int) {
        tally.checks += 1
        let first = DropReason.allCases.firstIndex(of: .malformedRTP) ?? 0
        let early = statistics.drops[..<first].reduce(0, +)
        let classes =
            statistics.stunIn + statistics.dtlsIn + statistics.rtcpIn + statistics.rtpIn
        if statistics.datagramsIn != classes + early {
            violate(
                .accounting,
                "\(statistics.datagramsIn) datagrams in, \(classes) of a kind, \(early) dropped"
            )
        }
        let late = zip(DropReason.allCases, statistics.drops).dropFirst(first)
            .filter { !$0.0.isOutgoing }.reduce(0) { $0 + $1.1 }
        if statistics.rtpIn != statistics.rtpForwarded + late {
            violate(
                .accounting,
                "\(statistics.rtpIn) packets in, \(statistics.rtpForwarded) on, \(late) dropped"
            )
        }
        let relayed = statistics.relayDrops.reduce(0, +)
        if statistics.relayedIn != statistics.relayedForwarded + relayed {
            violate(
                .accounting,
                "\(statistics.relayedIn) from workers, \(statistics.relayedForwarded) on, "
                    + "\(relayed) dropped"
            )
        }
        checkReports(statistics, of: worker)
        let given = workers[worker].takenAtReport.removeValue(forKey: token)
        if statistics.datagramsIn != given {
            violate(
                .accounting,
                "\(given ?? 0) datagrams were taken, \(statistics.datagramsIn) are counted"
            )
        }
    }
}
