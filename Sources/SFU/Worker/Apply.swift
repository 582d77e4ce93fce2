package import RTP
package import WorkerInterface

/// Execution of control-plane commands, between two batches.
extension Core {
    /// Executes a command, which takes effect with the very next packet.
    package mutating func apply(
        _ command: WorkerCommand,
        at now: Instant,
        into output: inout Batch
    ) {
        switch command {
        case .configure(let id, let configuration):
            configure(id, configuration, at: now)
        case .close(let id):
            close(id, at: now, into: &output)
        case .resume(let id, let wasConnected):
            resume(id, wasConnected: wasConnected, at: now, into: &output)
        case .endResumption:
            endResumption()
        case .postponeResumption:
            postponeResumption()
        case .gate(let id, let open):
            gate(id, open: open, at: now)
        case .bind(let id, let binding):
            bind(id, to: binding, at: now)
        case .limit(let id, let cap):
            limit(id, to: cap, at: now)
        case .feature(let id, let isFeatured):
            guard receiver.publications.contains(id) else { break }
            receiver.publications[id.place].configuration.isFeatured = isFeatured
        case .mirror(let mirror):
            self.mirror(mirror, at: now)
        case .unmirror(let id):
            unmirror(id)
        case .relay(let id, let targets):
            relays.relay(id, to: targets, &receiver)
        case .explain(let id, let token):
            emit(
                .explained(
                    token: token,
                    allocator.explain(id, at: now, transports, receiver, forwarder)
                )
            )
        case .hold(let id, let target):
            relays.hold(id, for: target, at: now, &receiver)
        case .lease(let id, let home): lease(id, of: home, at: now)
        case .tap: break  // Only the recorder thread handles these.
        case .link: break  // Only the link thread handles these.
        case .report(let token):
            emit(.statistics(token: token, report(at: now)))
        case .reportTransports(let ids, let token):
            emit(.statistics(token: token, report(of: ids, at: now)))
        case .fence(let epoch):
            // Flows of an earlier process go on with the commands that resume their transport.
            if resumption.isPostponed { forwarder.earlierFlows = [:] }
            emit(.fenced(epoch: epoch, at: now, packets: forwarder.takePacketsUnderRevokedRights()))
        }
        transports.srtpContext.finish()
    }

    private mutating func configure(
        _ id: TransportID,
        _ configuration: TransportConfiguration,
        at now: Instant
    ) {
        transports.configure(id, configuration, at: now)
        configurePublications(of: id.place, at: now)
        configureSlots(of: id.place, configuration.slots)
    }

    private mutating func close(_ id: TransportID, at now: Instant, into output: inout Batch) {
        guard transports.contains(id) else { return }
        let transport = id.place
        endFreezes(of: transport, at: now)
        emit(.closed(id, transports[transport].quality))
        transports.noteRemoval(of: transport)
        if let path = transports[transport].path {
            transports[transport].dtls?.close()
            transports.sendDTLS(transport, to: path, into: &output)
        }
        while let publication = transports[transport].publications.first {
            remove(publication: publication)
        }
        while let slot = transports[transport].slots.first { remove(slot: slot) }
        forwarder.clearPacer(of: transport, &transports)
        transports.forgetFragments(of: transport, keepingCurrent: false)
        transports.release(transport)
        transports.remove(at: transport)
    }

    private mutating func bind(_ id: SlotID, to binding: Binding?, at now: Instant) {
        guard forwarder.slots.contains(id) else { return }
        let slot = id.place
        let named = binding?.publication
        let target = named.flatMap { receiver.publications.contains($0) ? $0.place : nil }
        let isOpen = binding?.open == true && target != nil
        let isSame = target == forwarder.slots[slot].publication
        if forwarder.slots[slot].isOpen, !isOpen || !isSame {
            forwarder.revokeRight(of: slot, transports)
            forwarder.endFreeze(of: slot, at: now, &transports)
        }
        if !isSame { forwarder.move(slot, to: target, &receiver) }
        let wasLimited = forwarder.takeLimits(of: slot, from: binding)
        let wasOpen = forwarder.slots[slot].isOpen
        if !isOpen || !isSame {
            allocator.forgetShare(of: slot, forwarder)
            forwarder.slotRecords[slot].bindings &+= 1
        }
        if let binding, binding.subscription != forwarder.slotRecords[slot].subscription {
            forwarder.slotRecords[slot].subscription = binding.subscription
            forwarder.slotRecords[slot].hasStarted = false
            forwarder.forgetLayer(of: slot)
            forgetFreezes(of: slot)
        }
        forwarder.slots[slot].isOpen = isOpen
        if isOpen { watchFreezes(ofSlot: slot, at: now) }
        guard isOpen, let target else {
            forwarder.slots[slot].source = .idle
            if wasOpen {
                allocator.chooseLayer(of: slot, at: now, &transports, &receiver, &forwarder)
            }
            return
        }
        guard !wasOpen || !isSame else {
            if wasLimited {
                allocator.chooseLayer(of: slot, at: now, &transports, &receiver, &forwarder)
                _ = allocator.reviewDemand(of: target, at: now, transports, &receiver, forwarder)
            }
            return
        }
        forwarder.slots[slot].source = .waiting
        forwarder.slotRecords[slot].isFresh = true
        forwarder.slotRecords[slot].isContinued = false
        continueFlow(of: slot, in: target)
        allocator.chooseLayer(of: slot, at: now, &transports, &receiver, &forwarder)
        _ = allocator.reviewDemand(of: target, at: now, transports, &receiver, forwarder)
        forwarder.requestKeyframe(forSlot: slot, at: now, &transports, &receiver)
        if let start = binding?.from {
            forwarder.prepareReplay(to: slot, since: start, transports, receiver)
        }
    }

    private mutating func limit(_ id: PublicationID, to cap: LayerCap, at now: Instant) {
        guard receiver.publications.contains(id) else { return }
        let publication = id.place
        guard receiver.publications[publication].configuration.cap != cap else { return }
        receiver.publications[publication].configuration.cap = cap
        allocator.applyCap(to: publication, at: now, &transports, &receiver, &forwarder)
    }
}
