import LoadPeer
import RTP

@testable import SFU
@testable import WorkerInterface

/// Disruptive events: viewers need not get a continuous stream, but no index may repeat.
extension IndexRandomWalk {
    /// Adds a microphone that both viewers hear, and brings the numbers close to their wrap.
    mutating func prepareDisruptiveRun() {
        call.reconfigure(publishers[0]) { $0.publications.append(Media.audio(0, ssrc: nil)) }
        for (place, viewer) in viewers.enumerated() {
            let index = UInt32(slots.count + place)
            let slot = Media.slot(index, kind: .audio, ssrc: 0xa500 + 2 * index)
            call.reconfigure(viewer) { $0.slots.append(slot) }
        }
        listen()
        var source = Source(publisher: 0, ssrc: 0x1111, rid: nil, index: 65_000)
        source.isAudio = true
        sources.append(source)
        for slot in slots { nearWrap(slot) }
    }

    /// Lets a slot that has sent nothing begin shortly before its numbers wrap.
    private mutating func nearWrap(_ slot: SlotID) {
        let fresh = call.core.forwarder.slots[slot.place].rewriter
        call.core.forwarder.slots[slot.place].rewriter.resume(
            RTPRewriter.Saved(
                highest: 65_200,
                lastArrival: fresh.lastArrival,
                lastTimestamp: fresh.lastTimestamp,
                lastPicture: fresh.lastPicture,
                lastTL0: fresh.lastTL0,
                hasStarted: fresh.hasStarted,
                span: fresh.current
            )
        )
        call.core.forwarder.repairs[slot.place] = SavedRepair(after: 65_530)
    }

    private mutating func listen() {
        for place in 0..<viewers.count {
            let slot = SlotID(index: UInt32(slots.count + place), generation: 1)
            let binding = Binding(publication: microphone, subscription: 8, open: true)
            call.apply(.bind(slot, binding))
        }
    }

    /// Runs one step of the story, often one that does not occur in a calm call.
    mutating func disruptiveStep() {
        switch Int.random(in: 0..<80, using: &noise) {
        case 0: restartICE(of: viewers.randomElement(using: &noise) ?? 2)
        case 1: move(viewers.randomElement(using: &noise) ?? 2)
        case 2: replacePublisher(Int.random(in: 0...1, using: &noise))
        case 3: replaceSlot(Int.random(in: 0...1, using: &noise))
        case 4: loseMany()
        case 5, 6: toggleQuiet()
        case 7...16: askForMany()
        case 17...40:
            let publisher = Int.random(in: 0...1, using: &noise)
            let all = sources.indices.filter { sources[$0].publisher == publisher }
            burst(of: all, count: Int.random(in: 1...60, using: &noise))
            call.run(milliseconds: Int64.random(in: 1...20, using: &noise))
        case 41, 42: rename(Int.random(in: sources.indices, using: &noise))
        default: step()
        }
    }

    /// Restarts ICE: new credentials under the old DTLS keys (RFC 8445 §9).
    private mutating func restartICE(of peer: Int) {
        names += 1
        let fragment = "again\(names)"
        let password = "another-password-\(names)"
        call.reconfigure(peer) { configuration in
            configuration.ice.localFragment = fragment
            configuration.ice.localPassword = password
        }
        var sent = Batch(capacity: 4)
        call.peers[peer].peer.connect(
            fragment: fragment,
            password: password,
            fingerprint: call.identity.fingerprint,
            at: call.now,
            into: &sent
        )
        call.deliver(&sent, from: peer)
    }

    /// Moves the viewer to another network.
    private mutating func move(_ peer: Int) {
        names += 1
        call.peers[peer].path = .from(port: UInt16(20_000 + names))
        call.check(from: peer)
    }

    /// Removes the publisher and adds it again, or another in its place.
    private mutating func replacePublisher(_ publisher: Int) {
        call.apply(.close(call.peers[publishers[publisher]].id))
        call.silent.insert(publishers[publisher])
        publications[publisher].generation += 1
        let id = publications[publisher]
        var video = Media.video(id.index, rids: publisher == 0 ? ["q", "h"] : [nil])
        video.id = id
        var media = [video]
        if publisher == 0 {
            microphone.generation += 1
            var audio = Media.audio(microphone.index, ssrc: nil)
            audio.id = microphone
            media.append(audio)
        }
        publishers[publisher] = call.join(publications: media)
        call.connect(publishers[publisher])
        if publisher == 0 { listen() }
        for index in sources.indices where sources[index].publisher == publisher {
            rename(index)
        }
        for slot in slots.indices { bind(slot: slot) }
        burst(of: sources.indices.filter { sources[$0].publisher == publisher }, count: 30)
    }

    /// Ends the m-line and reuses it for another, with a new SSRC, as in the answer.
    private mutating func replaceSlot(_ slot: Int) {
        names += 1
        let old = slots[slot]
        let ssrc = 0xb000_0000 + UInt32(4 * names)
        let id = SlotID(index: old.index, generation: old.generation + 1)
        call.reconfigure(viewers[slot]) { configuration in
            configuration.slots[0].id = id
            configuration.slots[0].ssrc = SSRC(rawValue: ssrc)
            if configuration.slots[0].rtxSSRC != nil {
                configuration.slots[0].rtxSSRC = SSRC(rawValue: ssrc + 1)
            }
        }
        slots[slot] = id
        ssrcs[slot] = ssrc
        nearWrap(id)
        bind(slot: slot)
    }

    private mutating func loseMany() {
        let index = Int.random(in: sources.indices, using: &noise)
        sources[index].index += UInt64.random(in: 1...2_900, using: &noise)
    }

    /// Pauses or resumes a layer, as its publisher's path allows.
    private mutating func toggleQuiet() {
        let index = Int.random(in: sources.indices, using: &noise)
        sources[index].isQuiet = Int.random(in: 0..<3, using: &noise) == 0
    }

    /// Requests all recent packets with one NACK, as if none had arrived.
    private mutating func askForMany() {
        for (peer, ssrc) in zip(viewers, ssrcs) {
            let lost = call.peers[peer].received.suffix(60).filter { $0.ssrc == ssrc }
                .map { SequenceNumber(rawValue: $0.u16(2)) }
            guard !lost.isEmpty else { continue }
            call.sendRTCP(from: peer) { output in
                GenericNACK.encode(
                    sender: SSRC(rawValue: 1),
                    media: SSRC(rawValue: ssrc),
                    lost: lost.span,
                    into: &output
                )
            }
        }
    }

    /// Sends packets so fast that the core takes them in one batch.
    private mutating func burst(of indices: [Int], count: Int) {
        let awake = indices.filter { !sources[$0].isQuiet }
        guard let first = awake.first else { return }
        var packets: [(bytes: [UInt8], rollover: UInt64)] = []
        for _ in 0..<count {
            let index = awake.randomElement(using: &noise) ?? first
            let rollover = sources[index].index >> 16
            packets.append((packet(of: index), rollover))
            sources[index].index += 1
        }
        // Some are reordered.
        for place in packets.indices.dropFirst(8) where Int.random(in: 0..<6, using: &noise) == 0 {
            packets.swapAt(place, place - Int.random(in: 1...8, using: &noise))
        }
        call.send(packets, from: publishers[sources[first].publisher])
    }
}
