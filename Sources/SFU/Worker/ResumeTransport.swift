import RTP
import WorkerInterface

/// Continuation of what an earlier process has left.
struct Resumption {
    /// Its state; `nil` once all transports have been resumed, or are not awaited any longer.
    var previous: SavedState?
    /// Whether media flows though some transports are resumed later.
    var isPostponed = false
}

/// Continuation of the transports of an earlier process.
extension Core {
    /// Continues a transport where an earlier process left it: keys, indexes, path, streams and
    /// slots.
    ///
    /// A transport that cannot be continued ends, so that its peer makes a new one: numbers that
    /// may have been used are never used again.
    mutating func resume(
        _ id: TransportID,
        wasConnected: Bool,
        at now: Instant,
        into output: inout Batch
    ) {
        guard transports.contains(id), wasConnected || resumption.previous?.hasTransport(id) == true
        else {
            return
        }
        let transport = id.place
        transports[transport].opened = nil
        guard let previous = resumption.previous, let record = previous.transport(id),
            canResumeSlots(of: transport),
            transports.resume(
                transport,
                from: record,
                after: previous.transportSequence(of: id),
                at: now
            )
        else {
            transports.end(transport, because: .timeout, at: now, into: &output)
            return routeFindings(at: now)
        }
        if !wasConnected { transports.findings.append(.changed(id, .connected)) }
        bindStreams(of: transport, record)
        resumeSlots(of: transport)
        routeFindings(at: now)
    }

    /// Binds the SSRCs that the peer sends: browsers name the m-line only in the first packets of a
    /// stream.
    private mutating func bindStreams(of transport: TransportIndex, _ record: SavedTransport) {
        for index in 0..<Int(record.bindingCount) {
            let binding = record.bindings[index]
            let id = PublicationID(index: binding.publication, generation: binding.generation)
            guard receiver.publications.contains(id),
                receiver.publications[id.place].transport == transport,
                Int(binding.position) < receiver.publications[id.place].encodings.count
            else { continue }
            let stream = Transport.Stream(
                ssrc: SSRC(rawValue: binding.ssrc),
                encoding: receiver.publications[id.place].encodings[Int(binding.position)],
                isRetransmission: binding.isRetransmission == 1
            )
            // Those that the offer names are bound already.
            if let bound = transports[transport].stream(of: stream.ssrc) {
                guard bound.encoding == stream.encoding else { continue }
            } else {
                receiver.bind(stream, transport: transport, &transports)
            }
            guard !stream.isRetransmission,
                let newest = transports.savedIndex(of: stream.ssrc, transport)
            else { continue }
            receiver.resume(stream.encoding, from: binding, newest: newest)
        }
        receiver.saveBindings(of: transport, &transports)
    }

    /// Whether the numbering of each slot that the earlier process had is known.
    private mutating func canResumeSlots(of transport: TransportIndex) -> Bool {
        guard let previous = resumption.previous else { return false }
        for index in 0..<transports[transport].slots.count {
            let slot = transports[transport].slots[index]
            let id = forwarder.slots.handle(at: slot)
            // A slot that the earlier process never had has sent nothing.
            guard previous.hasSlot(id) else { continue }
            guard previous.slot(id)?.ssrc == forwarder.slots[slot].ssrc.rawValue else {
                return false
            }
        }
        return true
    }

    private mutating func resumeSlots(of transport: TransportIndex) {
        for index in 0..<transports[transport].slots.count {
            let slot = transports[transport].slots[index]
            guard let saved = resumption.previous?.slot(forwarder.slots.handle(at: slot)) else {
                continue
            }
            forwarder.resume(slot, saved)
        }
    }
}

extension Receiver {
    /// Continues the numbering of an encoding, so that losses over the end of the earlier process
    /// are repaired, and slots go on without a keyframe.
    fileprivate mutating func resume(
        _ encoding: EncodingIndex,
        from binding: SavedTransport.Binding,
        newest: UInt64
    ) {
        let number = binding.base &+ Int64(truncatingIfNeeded: newest)
        guard binding.base != .min, 0..<1 << 50 ~= number else { return }
        encodings[encoding].window.resume(at: Int(number))
        encodings[encoding].epoch = binding.epoch
        lastEpoch = max(lastEpoch, binding.epoch)
    }
}

// Slots that go on with what they carried.
extension Core {
    /// Whether nothing may be received yet, because it would be from strangers.
    ///
    /// Transports of an earlier process are still to be resumed; those whose turn is postponed keep
    /// nobody waiting.
    package var isResuming: Bool { resumption.previous != nil && !resumption.isPostponed }

    /// Lets media flow, though some transports are resumed later.
    mutating func postponeResumption() {
        resumption.isPostponed = true
        forwarder.earlierFlows = [:]
    }

    /// Ends the resumption: whatever is left of the earlier process is given up.
    mutating func endResumption() {
        resumption.previous = nil
        forwarder.earlierFlows = [:]
    }

    /// Lets a slot that was just bound go on with the publication's encoding that it carried in the
    /// earlier process: no keyframe is needed then.
    mutating func continueFlow(of slot: SlotIndex, in publication: PublicationIndex) {
        guard let (flow, span) = forwarder.earlierFlows.removeValue(forKey: slot) else { return }
        let id = receiver.publications.handle(at: publication)
        guard id.index == flow.publication, id.generation == flow.generation,
            Int(flow.position) < receiver.publications[publication].encodings.count
        else { return }
        let encoding = receiver.publications[publication].encodings[Int(flow.position)]
        if receiver.publications[publication].transport == nil {
            // The first slot tells which numbering the home had; if it has another one now, the
            // mirror begins an epoch.
            let known = receiver.encodings[encoding].homeEpoch ?? flow.homeEpoch
            guard known == flow.homeEpoch else { return }
            receiver.encodings[encoding].homeEpoch = known
        } else {
            guard let newest = receiver.encodings[encoding].window.highest,
                receiver.encodings[encoding].epoch == flow.epoch
            else { return }
            // Packets that the earlier process read and did not forward are asked for again.
            let last = Int(forwarder.slots[slot].rewriter.highest &- span.offset)
            if last < newest, last > newest &- Self.reaskedAtMost {
                receiver.encodings[encoding].window.resume(at: last)
            }
        }
        let epoch = receiver.encodings[encoding].epoch
        forwarder.slots[slot].rewriter.resume(span, as: encoding, epoch: epoch)
        forwarder.slots[slot].source = .flowing(encoding)
        forwarder.slots[slot].point = span.point
        forwarder.slots[slot].isLayerNoted = false
        forwarder.slotRecords[slot].isContinued = true
        forwarder.noteFlow(of: encoding, in: slot, receiver)
    }

    /// Packets of one encoding that are asked for again at most.
    private static let reaskedAtMost = 256
}

extension Transports {
    /// Continues keys, paths, consent and the estimate; returns whether that was possible.
    fileprivate mutating func resume(
        _ transport: TransportIndex,
        from record: SavedTransport,
        after sequence: UInt16?,
        at now: Instant
    ) -> Bool {
        guard transports[transport].srtp == nil, transports[transport].path == nil, let sequence,
            let profile = SRTPProfile(rawValue: record.profile)
        else { return false }
        transports[transport].ssrc = SSRC(rawValue: record.ssrc)
        do throws(SRTPError) {
            transports[transport].srtp = try session(profile, record, of: transport)
        } catch {
            return false
        }
        transports[transport].profile = profile
        transports[transport].state = .connected
        takePaths(of: record, for: transport, at: now)
        destinations[transport].transportSequence = sequence
        if record.estimate > 0 {
            transports[transport].bandwidth?.resume(Int(record.estimate), at: now)
        }
        updateDestination(of: transport)
        save(estimate: record.estimate > 0 ? Int(record.estimate) : nil, of: transport)
        heard(from: transport, at: now)
        transports[transport].reportDue = Self.nextReport(after: now)
        schedule(transport, at: now)
        return true
    }

    private mutating func session(
        _ profile: SRTPProfile,
        _ record: SavedTransport,
        of transport: TransportIndex
    ) throws(SRTPError) -> SRTPSession {
        let length = 2 * (profile.keyLength + profile.saltLength)
        let keys = SRTPKeys(profile: profile, saved: record.keys.span.extracting(0..<length))
        let place = save(keysOf: transport, profile, keys)
        var session = try SRTPSession(
            profile: profile,
            keys: keys,
            context: srtpContext,
            maxStreams: limits.streamsPerTransport + Transport.unsignalledLimit + 1,
            saved: place
        )
        var association = record.dtls
        transports[transport].dtls = DTLSAssociation(
            resuming: &association,
            role: transports[transport].configuration.dtlsRole
        )
        if let place { transports[transport].dtls?.save(at: place) }
        let streams = (0..<Int(record.streamCount)).map { record.streams[$0] }
        try session.resume(streams, rtcpHighest: record.rtcpHighest, keys)
        return session
    }

    private mutating func takePaths(
        of record: SavedTransport,
        for transport: TransportIndex,
        at now: Instant
    ) {
        for index in 0..<Int(record.pathCount) {
            let path = record.path(at: index)
            _ = transports[transport].ice.validated(
                path,
                isNominated: index == Int(record.selected),
                underCurrentCredentials: true,
                limit: limits.pathsPerTransport
            )
            take(path, for: transport, at: now)
        }
        let selected = record.path(at: Int(record.selected))
        setPath(selected, of: transport, at: now)
        guard record.consentGiven != .min else { return }
        transports[transport].consent.resume(
            selected,
            given: Instant(nanoseconds: record.consentGiven),
            at: now,
            random: random.next()
        )
    }
}

extension Forwarder {
    /// Continues the numbering of a slot.
    fileprivate mutating func resume(_ slot: SlotIndex, _ saved: SavedState.SavedSlot) {
        slots[slot].resume(
            saved.numbering,
            packets: saved.packets,
            bytes: saved.bytes,
            octets: saved.octets
        )
        repairs[slot] = SavedRepair(after: saved.rtxIndex)
        earlierFlows[slot] = saved.flow.map { ($0, saved.numbering.span) }
        slotRecords[slot].firstRepeatable = saved.numbering.highest &+ 1
        slotRecords[slot].fencedPackets = saved.packets
    }
}

extension SavedTransport {
    fileprivate func path(at index: Int) -> WorkerInterface.Path {
        let path = paths[index]
        return WorkerInterface.Path(
            remote: Address(high: path.high, low: path.low, port: path.port),
            local: path.local
        )
    }
}
