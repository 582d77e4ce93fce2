import RTP
import WorkerInterface

/// Step 6: bandwidth allocation, which selects the layer of each video slot of a subscriber.
///
/// It chooses from the layers on offer within the subscriber's bandwidth estimate.
extension Core {
    /// Bytes on the path besides the publisher's RTP packet: IP and UDP headers, the SRTP tag, and
    /// header extensions added by the SFU.
    private static let packetOverhead = 28 + 16 + 8
    private static let audioPacketsPerSecond = 50
    /// Typical length of a video packet, in bytes.
    private static let videoPacketLength = 1_100
    /// Divisor of the estimate that gives the smallest change that triggers an allocation: 2 %.
    private static let estimateStep = 50
    /// Shortest interval between allocations while the estimate grows, and while it falls.
    ///
    /// The second one is shorter because media above the path's rate builds up a queue meanwhile.
    private static let growthMilliseconds: Int64 = 100
    private static let fallMilliseconds: Int64 = 10
    /// Time that an estimate needs to recover after it overshot the path's capacity.
    private static let dipMilliseconds: Int64 = 2_500

    /// Distributes a subscriber's bandwidth among its slots, and switches them to the allotted
    /// layers.
    mutating func allocate(_ transport: Int, at now: Instant) {
        transports[transport].allocationDue = nil
        allocation.removeAll()
        claimants.removeAll()
        offers.removeAll()
        let estimate = transports[transport].bandwidth?.usableEstimate(at: now)
        for index in 0..<transports[transport].slots.count {
            claim(Int(transports[transport].slots[index]), within: estimate, at: now)
        }
        let other = audioBitrate(of: transport)
        transports[transport].allocatedEstimate = estimate
        transports[transport].allocatedAt = now
        let isDip = isDip(of: transport, to: estimate, beside: other, at: now)
        allocation.share(estimate, beside: other, isDip: isDip)
        for position in 0..<claimants.count {
            give(position, beside: other, at: now)
        }
        transports[transport].allocated = other + allocation.given
        // A subscriber is probed only if it could use more and a slot can send padding.
        let isProbed = estimate != nil && allocation.wanted > 0 && paddedSlot(of: transport) != nil
        transports[transport].bandwidth?.estimator.setWanted(
            isProbed ? other + allocation.wanted : 0,
            allocated: other + allocation.given,
            isStarved: isProbed && allocation.given == 0
        )
    }

    /// Whether the allocated layers have exceeded the estimate only for a short while.
    private mutating func isDip(
        of transport: Int,
        to estimate: Int?,
        beside audio: Int,
        at now: Instant
    ) -> Bool {
        guard let estimate, allocation.exceeds(estimate, beside: audio) else {
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
    mutating func chooseLayer(of slot: Int, at now: Instant) {
        guard slots[slot].kind == .video else { return }
        allocate(slots[slot].transport, at: now)
    }

    /// Schedules an allocation if the estimate has moved noticeably.
    mutating func noteEstimate(of transport: Int, at now: Instant) {
        transports[transport].bandwidth?.updatePacingRate(at: now)
        let known = transports[transport].bandwidth?.usableEstimate(at: now)
        let before = transports[transport].allocatedEstimate
        guard known != before else { return }
        if let known, let before, abs(known - before) * Self.estimateStep < before { return }
        let isFall = before.map { (known ?? .max) < $0 } ?? (known != nil)
        let pause = isFall ? Self.fallMilliseconds : Self.growthMilliseconds
        let next = transports[transport].allocatedAt?.advanced(milliseconds: pause) ?? now
        transports.scheduleAllocation(of: transport, by: max(now, next), at: now)
    }

    /// Adds a slot and its ladder to the allocation, if it carries open video.
    private mutating func claim(_ slot: Int, within estimate: Int?, at now: Instant) {
        let publication = Int(slots[slot].publication)
        guard slots[slot].kind == .video, slots[slot].isOpen, publication >= 0,
            // While no layer of a publication is known, its slots keep the target that they have.
            !publications[publication].options.isEmpty || slotRecords[slot].target == .nothing
        else { return }
        ladder.removeAll()
        for index in 0..<publications[publication].options.count {
            ladder.offer(publications[publication].options[index])
        }
        ladder.build(
            within: Ladder.Bounds(
                preference: slotRecords[slot].preference,
                roleCap: slotRecords[slot].roleCap,
                isScreen: publications[publication].configuration.isScreen,
                current: slotRecords[slot].target
            )
        )
        let first = allocation.rungCount
        var held = -1
        var ceiling = -1
        let given = slotRecords[slot].share.value.given
        for index in 0..<ladder.rungs.count {
            let rung = ladder.rungs[index]
            offers.append(rung)
            // The present rung counts at its measured bitrate. A higher one is allotted only if its
            // peak fits.
            let isHeld = given.map { ladder.holds($0, at: index) } ?? false
            let bitrate = isHeld ? rung.likelyBitrate : rung.peakBitrate
            allocation.append(rung: Self.withOverhead(bitrate))
            if isHeld { held = index }
            if slotRecords[slot].share.value.mayRise(to: rung, within: estimate, at: now) {
                ceiling = index
            }
        }
        let bandwidth = transports[slots[slot].transport].bandwidth?.isSettled(at: now)
        let cap = slotRecords[slot].roleCap.bitrate
        let motionBitrate = ladder.rungs.last?.motionBitrate(within: cap) ?? 0
        allocation.append(
            Allocation.Claim(
                first: first,
                count: ladder.rungs.count,
                held: held,
                priority: Int(slotRecords[slot].priority),
                // The estimate is a guess until the first probes are answered.
                mayPause: slotRecords[slot].mayFallBack && bandwidth == true,
                ceiling: ceiling,
                motionBitrate: Self.withOverhead(motionBitrate)
            )
        )
        claimants.append(Claimant(slot: Int32(slot), limit: ladder.limit))
    }

    /// Returns a media bitrate with all per-packet overhead added, in bits a second.
    static func withOverhead(_ bitrate: Int) -> Int {
        bitrate + bitrate / videoPacketLength * packetOverhead
    }

    /// Returns the bandwidth that a subscriber's audio takes, in bits a second; audio is never
    /// reduced.
    private func audioBitrate(of transport: Int) -> Int {
        var sum = 0
        for index in 0..<transports[transport].slots.count {
            let slot = Int(transports[transport].slots[index])
            let publication = Int(slots[slot].publication)
            guard slots[slot].kind == .audio, slots[slot].isOpen, publication >= 0,
                publications[publication].isOpen,
                let encoding = publications[publication].encodings.first
            else { continue }
            let payload = encodings[Int(encoding)].rate.bitrate
            guard payload > 0 else { continue }
            sum += payload + Self.audioPacketsPerSecond * Self.packetOverhead * 8
        }
        return sum
    }

    /// Applies the allocation's result to a slot, and reports what changes.
    private mutating func give(_ position: Int, beside other: Int, at now: Instant) {
        let claim = allocation.claims[position]
        let slot = Int(claimants[position].slot)
        let transport = slots[slot].transport
        let whole = claim.given >= 0 ? offers[claim.first + claim.given] : nil
        let lowest = claim.count > 0 ? offers[claim.first] : nil
        let option = slotRecords[slot].share.value.cutting(whole, lowest: lowest)
        var limit = claimants[position].limit
        var needed = 0
        if claim.given < claim.count - 1 {
            limit = .bandwidth
            needed = other + allocation.needed(byNextRungAt: position)
            if let due = slotRecords[slot].share.value.nextChance(after: now) {
                transports.scheduleAllocation(of: transport, by: due, at: now)
            }
        } else if limit == .none, lacksEncodings(Int(slots[slot].publication)) {
            limit = .publisher
        }
        if option?.target != whole?.target {
            limit = .overload
            needed = 0
        }
        slotRecords[slot].share.value.needed = needed
        let decision = LayerDecision(
            at: now,
            from: name(slotRecords[slot].share.value.given),
            to: name(option),
            cause: limit
        )
        let before = slotRecords[slot].share.value.given
        var keyframeAt = now
        slotRecords[slot].share.value
            .give(option, limit: limit, within: transports[transport].allocatedEstimate, decision)
        if limit == .bandwidth, let before, let option,
            wouldSaturate(slot, with: before, until: option)
        {
            // Until the new keyframe arrives the old layer would overload the path and delay the
            // keyframe too.
            slots[slot].source = .waiting
            dropPaced(of: slot)
            keyframeAt = now.advanced(milliseconds: pause(of: transport))
        }
        retarget(slot, at: option?.target ?? .nothing, at: now, keyframeAt: keyframeAt)
        if let option, !encodings[Int(option.target.encoding)].isLive {
            // The review asks the publisher to send this encoding. Nothing else triggers a review
            // of a publisher that sends nothing at all.
            scheduleReview(of: Int(slots[slot].publication), at: now)
        }
        // An encoding paused because it fits no subscriber leaves an empty ladder. That is no sign
        // of more bandwidth, so the hold stays.
        let isLeftOff =
            claim.count == 0 && slotRecords[slot].share.value.hold == .quality
            && !publications[Int(slots[slot].publication)].isInterrupted
        let isOff = option == nil && (claim.count > 0 || isLeftOff)
        hold(slot, because: isOff ? .quality : roleHold(slot, claim))
    }

    /// Returns the hold for interrupted video, or for a publication whose layers all exceed the
    /// role's cap.
    private func roleHold(_ slot: Int, _ claim: Allocation.Claim) -> VideoHold? {
        let publication = Int(slots[slot].publication)
        if publications[publication].isInterrupted { return .interrupted }
        let isAbove = claim.count == 0 && !publications[publication].options.isEmpty
        return isAbove ? .role : nil
    }

    /// Clears the allocation state of a slot that is bound to another publication, or to none.
    mutating func forgetShare(of slot: Int) {
        guard slots[slot].kind == .video else { return }
        hold(slot, because: nil)
        slotRecords[slot].share.value.forget()
    }

    /// Records why a slot's video is paused, and notifies the control plane of a change.
    private mutating func hold(_ slot: Int, because reason: VideoHold?) {
        guard slotRecords[slot].share.value.hold != reason else { return }
        slotRecords[slot].share.value.hold = reason
        let subscription = slotRecords[slot].subscription
        emit(.videoHeld(slots.handle(at: slot), subscription: subscription, reason))
    }

    /// Whether a configured encoding is not on offer.
    private func lacksEncodings(_ publication: Int) -> Bool {
        for position in 0..<publications[publication].encodings.count {
            let encoding = Int(publications[publication].encodings[position])
            if !encodings[encoding].isOffered { return true }
        }
        return false
    }

    private func name(_ option: LayerOption?) -> LayerDecision.Layer? {
        guard let option, encodings.isOccupied(Int(option.target.encoding)) else { return nil }
        return LayerDecision.Layer(
            position: UInt8(clamping: encodings[Int(option.target.encoding)].position),
            frameRate: UInt8(clamping: Int(saturating: option.frameRate.rounded())),
            width: UInt16(clamping: option.width),
            height: UInt16(clamping: option.height)
        )
    }
}

/// Slot that takes part in the current allocation.
struct Claimant: BitwiseCopyable {
    var slot: Int32
    /// Limit that keeps its ladder from reaching the highest layer.
    var limit: LayerLimit
}
