import RTP
import WorkerInterface

/// Bandwidth allocation, which selects the layer of each video slot of a subscriber.
///
/// It chooses from the layers on offer within the subscriber's bandwidth estimate.
extension LayerAllocator {
    /// Bytes on the path besides the publisher's RTP packet: IP and UDP headers, the SRTP tag, and
    /// header extensions added by the SFU.
    private static let packetOverhead = 28 + 16 + 8
    private static let audioPacketsPerSecond = 50
    /// Typical length of a video packet, in bytes.
    private static let videoPacketLength = 1_100
    /// Time that an estimate needs to recover after it overshot the path's capacity.
    private static let dipMilliseconds: Int64 = 2_500

    /// Distributes a subscriber's bandwidth among its slots, and switches them to the allotted
    /// layers.
    mutating func allocate(
        _ transport: TransportIndex,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: inout Receiver,
        _ forwarder: inout Forwarder
    ) {
        transports[transport].allocationDue = nil
        allocation.removeAll()
        claimants.removeAll()
        offers.removeAll()
        let estimate = transports[transport].bandwidth?.usableEstimate(at: now)
        for index in 0..<transports[transport].slots.count {
            claim(
                transports[transport].slots[index],
                within: estimate,
                at: now,
                transports,
                receiver,
                forwarder
            )
        }
        let other = audioBitrate(of: transport, transports, receiver, forwarder)
        transports[transport].allocatedEstimate = estimate
        transports.save(estimate: estimate, of: transport)
        transports[transport].allocatedAt = now
        let isDip = isDip(of: transport, to: estimate, beside: other, at: now, &transports)
        allocation.share(estimate, beside: other, isDip: isDip)
        for position in 0..<claimants.count {
            give(position, beside: other, at: now, &transports, &receiver, &forwarder)
        }
        transports[transport].allocated = other + allocation.given
        // A subscriber is probed only if it could use more.
        let isProbed = estimate != nil && allocation.wanted > 0
        let isPadded = forwarder.paddedSlot(of: transport, transports) != nil
        transports[transport].bandwidth?.estimator.setWanted(
            isProbed ? other + allocation.wanted : 0,
            allocated: other + allocation.given,
            next: allocation.needed.map { other + $0 } ?? 0,
            least: other + allocation.least,
            isStarved: isProbed && allocation.given == 0,
            isPadded: isPadded
        )
    }

    /// Whether the allocated layers have exceeded the estimate only for a short while.
    private mutating func isDip(
        of transport: TransportIndex,
        to estimate: Int?,
        beside audio: Int,
        at now: Instant,
        _ transports: inout Transports
    ) -> Bool {
        // On a full path the excess delays all that follows, sound included.
        guard let estimate, allocation.exceeds(estimate, beside: audio),
            transports[transport].bandwidth?.isFull() != true
        else {
            transports[transport].exceededSince = nil
            return false
        }
        let since = transports[transport].exceededSince ?? now
        transports[transport].exceededSince = since
        let end = since.advanced(milliseconds: Self.dipMilliseconds)
        guard end > now else { return false }
        transports.scheduleAllocation(of: transport, by: end, at: now)
        return true
    }

    /// Selects the layer of a video slot, by an allocation for its whole transport.
    mutating func chooseLayer(
        of slot: SlotIndex,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: inout Receiver,
        _ forwarder: inout Forwarder
    ) {
        guard forwarder.slots[slot].kind == .video else { return }
        allocate(forwarder.slots[slot].transport, at: now, &transports, &receiver, &forwarder)
    }

    /// Adds a slot and its ladder to the allocation, if it carries open video.
    private mutating func claim(
        _ slot: SlotIndex,
        within estimate: Int?,
        at now: Instant,
        _ transports: borrowing Transports,
        _ receiver: borrowing Receiver,
        _ forwarder: borrowing Forwarder
    ) {
        guard forwarder.slots[slot].kind == .video, forwarder.slots[slot].isOpen,
            let publication = forwarder.slots[slot].publication,
            // While no layer of a publication is known, its slots keep the target that they have.
            !receiver.publications[publication].options.isEmpty
                || receiver.publications[publication].aboveCap == .all
                || forwarder.slotRecords[slot].target == nil
        else { return }
        ladder.removeAll()
        for index in 0..<receiver.publications[publication].options.count {
            ladder.offer(receiver.publications[publication].options[index])
        }
        ladder.build(
            within: Ladder.Bounds(
                preference: forwarder.slotRecords[slot].preference,
                roleCap: forwarder.slotRecords[slot].roleCap,
                isScreen: receiver.publications[publication].configuration.isScreen,
                current: forwarder.slotRecords[slot].target
            )
        )
        let first = allocation.rungCount
        var held = -1
        var ceiling = -1
        let given = shares[slot].value.given
        for index in 0..<ladder.rungs.count {
            let rung = ladder.rungs[index]
            offers.append(rung)
            // The present rung counts at its measured bitrate. A higher one is allotted only if its
            // peak fits.
            let isHeld = given.map { ladder.holds($0, at: index) } ?? false
            let bitrate = isHeld ? rung.likelyBitrate : rung.peakBitrate
            allocation.append(rung: Self.withOverhead(bitrate))
            if isHeld { held = index }
            if shares[slot].value.mayRise(to: rung, within: estimate, at: now) {
                ceiling = index
            }
        }
        let bandwidth = transports[forwarder.slots[slot].transport].bandwidth?.isSettled(at: now)
        let cap = forwarder.slotRecords[slot].roleCap.bitrate
        let motionBitrate = ladder.rungs.last?.motionBitrate(within: cap) ?? 0
        allocation.append(
            Allocation.Claim(
                first: first,
                count: ladder.rungs.count,
                held: held,
                priority: Int(forwarder.slotRecords[slot].priority),
                // The estimate is a guess until the first probes are answered.
                mayPause: forwarder.slotRecords[slot].mayFallBack && bandwidth == true,
                ceiling: ceiling,
                motionBitrate: Self.withOverhead(motionBitrate)
            )
        )
        claimants.append(Claimant(slot: slot, publication: publication, limit: ladder.limit))
    }

    /// Returns a media bitrate with all per-packet overhead added, in bits a second.
    static func withOverhead(_ bitrate: Int) -> Int {
        bitrate + bitrate / videoPacketLength * packetOverhead
    }

    /// Returns the bandwidth that a subscriber's audio takes, in bits a second; audio is never
    /// reduced.
    private func audioBitrate(
        of transport: TransportIndex,
        _ transports: borrowing Transports,
        _ receiver: borrowing Receiver,
        _ forwarder: borrowing Forwarder
    ) -> Int {
        var sum = 0
        for index in 0..<transports[transport].slots.count {
            let slot = transports[transport].slots[index]
            guard forwarder.slots[slot].kind == .audio, forwarder.slots[slot].isOpen,
                let publication = forwarder.slots[slot].publication,
                receiver.publications[publication].isOpen,
                let encoding = receiver.publications[publication].encodings.first
            else { continue }
            let payload = receiver.encodings[encoding].rate.bitrate
            guard payload > 0 else { continue }
            sum += payload + Self.audioPacketsPerSecond * Self.packetOverhead * 8
        }
        return sum
    }

    /// Applies the allocation's result to a slot, and reports what changes.
    private mutating func give(
        _ position: Int,
        beside other: Int,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: inout Receiver,
        _ forwarder: inout Forwarder
    ) {
        let claim = allocation.claims[position]
        let slot = claimants[position].slot
        let publication = claimants[position].publication
        let transport = forwarder.slots[slot].transport
        let whole = claim.given >= 0 ? offers[claim.first + claim.given] : nil
        let lowest = claim.count > 0 ? offers[claim.first] : nil
        let option = shares[slot].value.cutting(whole, lowest: lowest)
        var limit = claimants[position].limit
        var needed = 0
        if claim.given < claim.count - 1 {
            limit = .bandwidth
            needed = other + allocation.needed(byNextRungAt: position)
            if let due = shares[slot].value.nextChance(after: now) {
                transports.scheduleAllocation(of: transport, by: due, at: now)
            }
        } else if limit == .none, receiver.publications[publication].aboveCap != .none {
            limit = .role
        } else if limit == .none, lacksEncodings(publication, receiver) {
            limit =
                isLimitedByLink(slot, at: whole, of: publication, receiver, forwarder)
                ? .link : .publisher
        }
        if option?.target != whole?.target {
            limit = .overload
            needed = 0
        }
        shares[slot].value.needed = needed
        let decision = LayerDecision(
            at: now,
            from: name(shares[slot].value.given, receiver),
            to: name(option, receiver),
            cause: limit
        )
        let before = shares[slot].value.given
        var keyframeAt = now
        var bridge: UInt8 = 3
        shares[slot].value
            .give(option, limit: limit, within: transports[transport].allocatedEstimate, decision)
        forwarder.stopAboveCaps(slot, transports, receiver)
        if limit == .bandwidth, let before, let option, LayerOption.isLower(option, than: before),
            needsBridge(slot, from: before, to: option, forwarder)
        {
            let isFull = transports[transport].bandwidth?.isFull() == true
            let budget = (transports[transport].allocatedEstimate ?? 0) - other
            if let temporal = Self.bridge(
                from: before,
                to: option,
                within: budget - allocation.given + Self.withOverhead(option.likelyBitrate),
                isFull: isFull,
                receiver.publications[publication].options
            ) {
                bridge = temporal
            } else {
                // Until the new keyframe arrives the old layer would overload the path and delay
                // the keyframe too.
                forwarder.slots[slot].source = .waiting
                forwarder.dropPaced(of: slot, transports)
                keyframeAt = now.advanced(milliseconds: pause(of: transport, transports))
            }
        }
        forwarder.retarget(
            slot,
            at: option?.target,
            at: now,
            keyframeAt: keyframeAt,
            bridge: bridge,
            &transports,
            &receiver
        )
        if let option, !receiver.encodings[option.target.encoding].isLive {
            // The review asks the publisher to send this encoding. Nothing else triggers a review
            // of a publisher that sends nothing at all.
            receiver.scheduleReview(of: publication, at: now, &transports)
        }
        // An encoding paused because it fits no subscriber leaves an empty ladder. That is no sign
        // of more bandwidth, so the hold stays.
        let isLeftOff =
            claim.count == 0 && shares[slot].value.hold == .quality
            && !receiver.publications[publication].isInterrupted
            && receiver.publications[publication].aboveCap != .all
        let isOff = option == nil && (claim.count > 0 || isLeftOff)
        hold(
            slot,
            because: isOff ? .quality : roleHold(publication, claim, receiver),
            forwarder
        )
    }

    /// Whether a slot would be sent a higher layer if a link from another node carried it.
    func isLimitedByLink(
        _ slot: SlotIndex,
        at given: LayerOption?,
        of publication: PublicationIndex,
        _ receiver: borrowing Receiver,
        _ forwarder: borrowing Forwarder
    ) -> Bool {
        guard receiver.publications[publication].withheld != 0 else { return false }
        for position in 0..<receiver.publications[publication].encodings.count {
            let encoding = receiver.publications[publication].encodings[position]
            guard receiver.isWithheld(encoding) else { continue }
            guard let last = receiver.encodings[encoding].lastOption else { return true }
            if LayerOption.isLower(given, than: last) || given?.target == last.target,
                forwarder.slotRecords[slot].preference.admits(last),
                forwarder.slotRecords[slot].roleCap.admits(last)
            {
                return true
            }
        }
        return false
    }

    /// Returns the hold for interrupted video, or for a publication whose layers all exceed the cap
    /// of its publisher's role or of the subscriber's.
    private func roleHold(
        _ publication: PublicationIndex,
        _ claim: Allocation.Claim,
        _ receiver: borrowing Receiver
    ) -> VideoHold? {
        if receiver.publications[publication].isInterrupted {
            return receiver.publications[publication].withheld == 0 ? .interrupted : .quality
        }
        let isAbove =
            receiver.publications[publication].aboveCap == .all
            || claim.count == 0 && !receiver.publications[publication].options.isEmpty
        return isAbove ? .role : nil
    }

    /// Clears the allocation state of a slot that is bound to another publication, or to none.
    mutating func forgetShare(of slot: SlotIndex, _ forwarder: borrowing Forwarder) {
        guard forwarder.slots[slot].kind == .video else { return }
        hold(slot, because: nil, forwarder)
        shares[slot].value.forget()
    }

    /// Forgets which layers a transport's slots could not be sent: its path is another one now.
    mutating func forgetFailures(of transport: TransportIndex, _ transports: borrowing Transports) {
        for position in 0..<transports[transport].slots.count {
            let slot = transports[transport].slots[position]
            if shares[slot].isMade { shares[slot].value.forgetFailures() }
        }
    }

    /// Records why a slot's video is paused, and notifies the control plane of a change.
    private mutating func hold(
        _ slot: SlotIndex,
        because reason: VideoHold?,
        _ forwarder: borrowing Forwarder
    ) {
        guard shares[slot].value.hold != reason else { return }
        shares[slot].value.hold = reason
        let subscription = forwarder.slotRecords[slot].subscription
        events.append(
            .videoHeld(forwarder.slots.handle(at: slot), subscription: subscription, reason)
        )
    }

    /// Whether a configured encoding is not on offer.
    private func lacksEncodings(
        _ publication: PublicationIndex,
        _ receiver: borrowing Receiver
    ) -> Bool {
        for position in 0..<receiver.publications[publication].encodings.count {
            let encoding = receiver.publications[publication].encodings[position]
            if !receiver.encodings[encoding].isOffered { return true }
        }
        return false
    }

    private func name(
        _ option: LayerOption?,
        _ receiver: borrowing Receiver
    ) -> LayerDecision.Layer? {
        guard let option, receiver.encodings.isOccupied(option.target.encoding) else {
            return nil
        }
        return LayerDecision.Layer(
            position: UInt8(clamping: receiver.encodings[option.target.encoding].position),
            frameRate: UInt8(clamping: Int(saturating: option.frameRate.rounded())),
            width: UInt16(clamping: option.width),
            height: UInt16(clamping: option.height)
        )
    }
}
