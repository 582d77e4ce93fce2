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
        self.now = now
        switch command {
        case .configure(let id, let configuration):
            configure(id, configuration, at: now)
        case .close(let id):
            close(id, into: &output)
        case .gate(let id, let open):
            gate(id, open: open, at: now)
        case .bind(let id, let binding):
            bind(id, to: binding, at: now)
        case .limit(let id, let cap):
            limit(id, to: cap, at: now)
        case .feature(let id, let isFeatured):
            guard publications.contains(id) else { break }
            publications[Int(id.index)].configuration.isFeatured = isFeatured
        case .mirror(let mirror):
            self.mirror(mirror, at: now)
        case .unmirror(let id):
            unmirror(id)
        case .relay(let id, let targets):
            relay(id, to: targets)
        case .explain(let id, let token):
            emit(.explained(token: token, explain(id, at: now)))
        case .hold(let id, let target):
            hold(id, for: target, at: now)
        case .tap: break  // Only the recorder thread handles these.
        case .report(let token):
            emit(.statistics(token: token, report(at: now)))
        case .fence(let epoch):
            emit(.fenced(epoch: epoch, at: now, packets: packetsUnderRevokedRights))
            packetsUnderRevokedRights = 0
        }
        srtpContext.finish()
    }

    private mutating func configure(
        _ id: TransportID,
        _ configuration: TransportConfiguration,
        at now: Instant
    ) {
        transports.configure(id, configuration, at: now)
        configurePublications(of: Int(id.index), at: now)
        configureSlots(of: Int(id.index), configuration.slots)
    }

    private mutating func close(_ id: TransportID, into output: inout Batch) {
        guard transports.contains(id) else { return }
        let transport = Int(id.index)
        if let path = transports[transport].path {
            transports[transport].dtls?.close()
            transports.sendDTLS(transport, to: path, into: &output)
        }
        while let publication = transports[transport].publications.first {
            remove(publication: Int(publication))
        }
        while let slot = transports[transport].slots.first { remove(slot: Int(slot)) }
        clearPacer(of: transport)
        transports.forgetFragments(of: transport, keepingCurrent: false)
        transports.release(transport)
        transports.remove(at: transport)
    }

    private mutating func bind(_ id: SlotID, to binding: Binding?, at now: Instant) {
        guard slots.contains(id) else { return }
        let slot = Int(id.index)
        var target = -1
        if let binding, publications.contains(binding.publication) {
            target = Int(binding.publication.index)
        }
        let isOpen = binding?.open == true && target >= 0
        let isSame = Int32(target) == slots[slot].publication
        if slots[slot].isOpen, !isOpen || !isSame {
            revokeRight(of: slot)
        }
        if !isSame { move(slot, to: target) }
        let wasLimited = takeLimits(of: slot, from: binding)
        let wasOpen = slots[slot].isOpen
        if !isOpen || !isSame {
            forgetShare(of: slot)
            slotRecords[slot].bindings &+= 1
        }
        if let binding, binding.subscription != slotRecords[slot].subscription {
            slotRecords[slot].subscription = binding.subscription
            slotRecords[slot].hasStarted = false
            forgetLayer(of: slot)
        }
        slots[slot].isOpen = isOpen
        guard isOpen else {
            slots[slot].source = .idle
            if wasOpen { chooseLayer(of: slot, at: now) }
            return
        }
        guard !wasOpen || !isSame else {
            if wasLimited {
                chooseLayer(of: slot, at: now)
                _ = reviewDemand(of: target, at: now)
            }
            return
        }
        slots[slot].source = .waiting
        chooseLayer(of: slot, at: now)
        _ = reviewDemand(of: target, at: now)
        requestKeyframe(forSlot: slot, at: now)
        if let start = binding?.from { prepareReplay(to: slot, since: start) }
    }

    /// Stores the binding's limits, and returns whether they differ from the previous ones.
    private mutating func takeLimits(of slot: Int, from binding: Binding?) -> Bool {
        let preference = binding?.preference ?? .none
        let roleCap = binding?.roleCap ?? .none
        let priority = Int16(clamping: binding?.priority ?? 0)
        let mayFallBack = binding?.mayFallBack ?? true
        let isOther =
            preference != slotRecords[slot].preference || roleCap != slotRecords[slot].roleCap
            || priority != slotRecords[slot].priority
            || mayFallBack != slotRecords[slot].mayFallBack
        slotRecords[slot].preference = preference
        slotRecords[slot].roleCap = roleCap
        slotRecords[slot].priority = priority
        slotRecords[slot].mayFallBack = mayFallBack
        return isOther
    }

    /// Moves a slot from one publication's subscribers to another's; -1 stands for no publication.
    private mutating func move(_ slot: Int, to publication: Int) {
        let old = Int(slots[slot].publication)
        if old >= 0 { publications[old].subscribers.remove(sorted: Int32(slot)) }
        if publication >= 0 { publications[publication].subscribers.insert(sorted: Int32(slot)) }
        slots[slot].publication = Int32(publication)
        slotRecords[slot].target = .nothing
        slots[slot].incomingPayloadType = 0xff
        slots[slot].payloadType = nil
        slotRecords[slot].outgoing = nil
    }

    private mutating func limit(_ id: PublicationID, to cap: LayerCap, at now: Instant) {
        guard publications.contains(id) else { return }
        let publication = Int(id.index)
        guard publications[publication].configuration.cap != cap else { return }
        publications[publication].configuration.cap = cap
        limitRate(of: publication)
        refreshLayers(of: publication, at: now)
    }
}
