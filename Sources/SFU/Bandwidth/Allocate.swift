import RTP
import WorkerInterface

/// Step 6: what each viewer's slots are sent, of what is offered and what its path carries.
extension Core {
    /// What a packet has on its path besides its RTP packet, in bytes: IP, UDP, the SRTP tag, and
    /// extensions that the publisher did not send.
    private static let packetOverhead = 28 + 16 + 8
    private static let audioPacketsPerSecond = 50
    /// Video comes in packets of about so many bytes.
    private static let videoPacketLength = 1_100
    /// An estimate that moved by less than one in so many is as good as the one before.
    private static let estimateStep = 50
    /// Between two looks at an estimate that grows, and at one that falls: what is too much waits
    /// in the path's queue meanwhile.
    private static let growthMilliseconds: Int64 = 100
    private static let fallMilliseconds: Int64 = 10
    /// After having found the edge of a path an estimate needs so long to be near it again.
    private static let dipMilliseconds: Int64 = 2_500

    /// Shares a viewer's path out among its slots, and turns them to what they are given.
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
        // What has no use for more, or no packets to ask with, is not probed.
        let isProbed = estimate != nil && allocation.wanted > 0 && paddedSlot(of: transport) != nil
        transports[transport].bandwidth?.estimator.setWanted(
            isProbed ? other + allocation.wanted : 0,
            allocated: other + allocation.given,
            isStarved: isProbed && allocation.given == 0
        )
    }

    /// Whether what a viewer has has been too much for its path for a short while only.
    private mutating func isDip(
        of transport: Int,
        to estimate: Int?,
        beside sound: Int,
        at now: Instant
    ) -> Bool {
        guard let estimate, allocation.exceeds(estimate, beside: sound) else {
            transports[transport].exceededSince = nil
            return false
        }
        let since = transports[transport].exceededSince ?? now
        transports[transport].exceededSince = since
        let end = since.advanced(milliseconds: Self.dipMilliseconds)
        guard end > now else { return false }
        scheduleAllocation(of: transport, by: end)
        return true
    }

    /// A slot is to be turned to what it should be sent now.
    mutating func chooseLayer(of slot: Int, at now: Instant) {
        guard slots[slot].kind == .video else { return }
        allocate(slots[slot].transport, at: now)
    }

    /// Shares a viewer's path out anew soon, where the estimate has moved.
    mutating func noteEstimate(of transport: Int, at now: Instant) {
        transports[transport].bandwidth?.keepPace(at: now)
        let known = transports[transport].bandwidth?.usableEstimate(at: now)
        let before = transports[transport].allocatedEstimate
        guard known != before else { return }
        if let known, let before, abs(known - before) * Self.estimateStep < before { return }
        let isFall = before.map { (known ?? .max) < $0 } ?? (known != nil)
        let pause = isFall ? Self.fallMilliseconds : Self.growthMilliseconds
        let next = transports[transport].allocatedAt?.advanced(milliseconds: pause) ?? now
        scheduleAllocation(of: transport, by: max(now, next))
    }

    mutating func scheduleAllocation(of transport: Int, by due: Instant) {
        if let own = transports[transport].allocationDue, own <= due { return }
        transports[transport].allocationDue = due
        schedule(transport)
    }

    /// Enters a slot with its ladder, if it has one.
    private mutating func claim(_ slot: Int, within estimate: Int?, at now: Instant) {
        let publication = Int(slots[slot].publication)
        guard slots[slot].kind == .video, slots[slot].isOpen, publication >= 0,
            // What nothing is known of goes on as it was.
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
            // What it has is measured; for more there must be room for all that it may take.
            let isHeld = given.map { ladder.holds($0, at: index) } ?? false
            let bitrate = isHeld ? rung.likelyBitrate : rung.risingBitrate
            allocation.append(rung: Self.onThePath(bitrate))
            if isHeld { held = index }
            if slotRecords[slot].share.value.mayRise(to: rung, within: estimate, at: now) {
                ceiling = index
            }
        }
        let bandwidth = transports[slots[slot].transport].bandwidth?.isSettled(at: now)
        let cap = slotRecords[slot].roleCap.bitrate
        let lively = ladder.rungs.last?.livelyBitrate(within: cap) ?? 0
        allocation.append(
            Allocation.Claim(
                first: first,
                count: ladder.rungs.count,
                held: held,
                priority: Int(slotRecords[slot].priority),
                // Before the first probes are answered an estimate is a guess.
                mayStop: slotRecords[slot].mayFallBack && bandwidth == true,
                ceiling: ceiling,
                lively: Self.onThePath(lively)
            )
        )
        claimants.append(Claimant(slot: Int32(slot), limit: ladder.limit))
    }

    /// What media takes of a path with all that is around its payload, in bits a second.
    static func onThePath(_ bitrate: Int) -> Int {
        bitrate + bitrate / videoPacketLength * packetOverhead
    }

    /// What a viewer's sound takes of its path; it is never bargained about.
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

    /// Turns a slot to what it was given, and tells what that changes.
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
                scheduleAllocation(of: transport, by: due)
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
        if limit == .bandwidth, let before, let option, floods(slot, with: before, until: option) {
            // Until the keyframe comes the path would be flooded, and that would wait in it too.
            slots[slot].source = .waiting
            dropWaiting(of: slot)
            keyframeAt = now.advanced(milliseconds: pause(of: transport))
        }
        aim(slot, at: option?.target ?? .nothing, at: now, keyframeAt: keyframeAt)
        if let option, !encodings[Int(option.target.encoding)].isLive {
            // Its publisher is asked for it; one that sends nothing at all is not looked at
            // otherwise.
            scheduleReview(of: Int(slots[slot].publication), at: now)
        }
        // What was switched off as nobody could be sent it is no more room on the path.
        let isLeftOff =
            claim.count == 0 && slotRecords[slot].share.value.hold == .quality
            && !publications[Int(slots[slot].publication)].isInterrupted
        let isOff = option == nil && (claim.count > 0 || isLeftOff)
        hold(slot, because: isOff ? .quality : roleHold(slot, claim))
    }

    /// All that is offered may be more than the subscriber's role lets it see.
    private func roleHold(_ slot: Int, _ claim: Allocation.Claim) -> VideoHold? {
        let publication = Int(slots[slot].publication)
        if publications[publication].isInterrupted { return .interrupted }
        let isAbove = claim.count == 0 && !publications[publication].options.isEmpty
        return isAbove ? .role : nil
    }

    /// The slot carries something else now, or nothing.
    mutating func forgetShare(of slot: Int) {
        guard slots[slot].kind == .video else { return }
        hold(slot, because: nil)
        slotRecords[slot].share.value.forget()
    }

    /// Tells the control plane that a slot's video stands still, or moves again.
    private mutating func hold(_ slot: Int, because reason: VideoHold?) {
        guard slotRecords[slot].share.value.hold != reason else { return }
        slotRecords[slot].share.value.hold = reason
        let subscription = slotRecords[slot].subscription
        emit(.videoHeld(slots.handle(at: slot), subscription: subscription, reason))
    }

    /// Whether the publisher could send more than it does.
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

/// A slot in the allocation under way.
struct Claimant: BitwiseCopyable {
    var slot: Int32
    /// Why its ladder is not higher.
    var limit: LayerLimit
}
