import RTP
import WorkerInterface

/// Evidence of freezes, collected from the parts that have it.
extension Core {
    /// Nanoseconds within which a publisher's other packets show that its path works.
    private static let heardNanoseconds: Int64 = 300_000_000
    /// Bounds of a layer's frame rate, in frames a second, and the rate while it is unknown.
    private static let frameRates = 0.2...120.0
    private static let usualFrameRate = 15.0

    /// Judges the video slots of a transport, and schedules the next look at them.
    mutating func watchFreezes(of transport: TransportIndex, at now: Instant) {
        transports[transport].freezeDue = nil
        var next: Instant?
        for index in 0..<transports[transport].slots.count {
            let slot = transports[transport].slots[index]
            guard forwarder.slotRecords[slot].freezes.isMade, forwarder.slots[slot].isOpen else {
                continue
            }
            let evidence = freezeEvidence(of: slot, at: now)
            let (due, ended) = forwarder.slotRecords[slot].freezes.value.check(evidence)
            forwarder.count(ended, of: transport, &transports)
            next = min(next ?? due, due)
        }
        transports[transport].freezeDue = next
    }

    /// Begins to watch a slot that is to carry video.
    mutating func watchFreezes(ofSlot slot: SlotIndex, at now: Instant) {
        guard forwarder.slots[slot].kind.isVideo else { return }
        if !forwarder.slotRecords[slot].freezes.isMade {
            forwarder.slotRecords[slot].freezes.make(FreezeDetector())
        }
        let transport = forwarder.slots[slot].transport
        transports[transport].freezeDue = now
        transports.schedule(transport, at: now)
    }

    /// Clears a slot's account for another subscription.
    mutating func forgetFreezes(of slot: SlotIndex) {
        guard forwarder.slotRecords[slot].freezes.isMade else { return }
        forwarder.slotRecords[slot].freezes.value.forget()
    }

    /// Ends the freezes of a transport that ends.
    mutating func endFreezes(of transport: TransportIndex, at now: Instant) {
        for index in 0..<transports[transport].slots.count {
            forwarder.endFreeze(of: transports[transport].slots[index], at: now, &transports)
        }
    }

    private mutating func freezeEvidence(of slot: SlotIndex, at now: Instant) -> FreezeEvidence {
        var evidence = FreezeEvidence(now: now)
        guard let publication = forwarder.slots[slot].publication,
            receiver.publications[publication].isOpen,
            allocator.shares[slot].value.hold != .role
        else { return evidence }
        evidence.stretch = FreezeEvidence.Stretch(
            bindings: forwarder.slotRecords[slot].bindings,
            openedAt: receiver.publications[publication].openedAt
        )
        evidence.leftAt = forwarder.slots[slot].rewriter.lastArrival
        evidence.mayRest = receiver.publications[publication].configuration.isScreen
        let transport = forwarder.slots[slot].transport
        if let waiting = transports[transport].bandwidth?.waiting() {
            evidence.pacedSince = waiting.since
            evidence.roundTrip = waiting.roundTrip ?? evidence.roundTrip
        }
        if let stall = transports.lastStall {
            evidence.stall = FreezeEvidence.Stall(from: stall.from, to: stall.to)
        }
        if let acknowledged = forwarder.slotRecords[slot].freezes.value.acknowledged {
            evidence.frameLeftAt = transports[transport].bandwidth?
                .newestFrame(of: slot, after: acknowledged)
        }
        let encoding = forwarder.followedEncoding(of: slot, receiver)
        evidence.interval = forwarder.slotRecords[slot].freezes.value
            .interval(received: frameInterval(of: slot, encoding))
        if let encoding { add(receiver.encodings[encoding].watch, to: &evidence) }
        if let encoding {
            evidence.keyframeAt = receiver.encodings[encoding].keyframes.lastKeyframeAt
            evidence.isKeyframeOverdue = isKeyframeOverdue(of: encoding, at: now)
        }
        let rest = now.nanoseconds(since: evidence.leftAt)
        if rest > FreezeEvidence.usualRest(evidence.interval) {
            evidence.standstill = standstill(of: slot, evidence.interval, at: now)
        }
        return evidence
    }

    private func add(_ watch: ArrivalWatch, to evidence: inout FreezeEvidence) {
        evidence.missingSince = watch.missingSince
        evidence.missing = watch.missing
        guard let silence = watch.silence else { return }
        let reason: FreezeReason =
            switch silence.cause {
            case .lost: .packetsMissing
            case .late: .packetsLate
            case .paused: .noFrame
            }
        evidence.silence = FreezeEvidence.Silence(
            from: silence.from,
            to: silence.to,
            reason: reason
        )
    }

    /// Returns the mean interval of the frames of the forwarded layer, in nanoseconds.
    private mutating func frameInterval(of slot: SlotIndex, _ encoding: EncodingIndex?) -> Int64 {
        let point = forwarder.slots[slot].rewriter.current.point
        var rate = 0.0
        if let encoding {
            let publication = receiver.encodings[encoding].publication
            rate = receiver.encodings[encoding].rate.frameRate
            for index in 0..<receiver.publications[publication].options.count {
                let option = receiver.publications[publication].options[index]
                guard option.target.encoding == encoding, option.frameRate > 0,
                    option.target.spatial <= point.spatial,
                    option.target.temporal <= point.temporal
                else { continue }
                rate = option.frameRate
            }
        }
        if rate <= 0 { rate = Self.usualFrameRate }
        let bounded = min(max(rate, Self.frameRates.lowerBound), Self.frameRates.upperBound)
        return Int64(saturating: 1e9 / bounded)
    }

    /// Returns the reason why nothing has been forwarded for longer than usual.
    private mutating func standstill(
        of slot: SlotIndex,
        _ interval: Int64,
        at now: Instant
    ) -> FreezeEvidence.Standstill {
        if allocator.shares[slot].value.hold == .quality {
            return .known(allocator.shares[slot].value.cut == .off ? .shed : .tooNarrow)
        }
        guard transports[forwarder.slots[slot].transport].canSend else {
            return .known(.unacknowledged)
        }
        guard let encoding = forwarder.followedEncoding(of: slot, receiver) else {
            return .silence(isHeard: false)
        }
        var awaited = encoding
        if case .switching(from: _, to: let next) = forwarder.slots[slot].source,
            receiver.encodings.isOccupied(next)
        {
            awaited = next
        }
        let rest = now.nanoseconds(since: receiver.encodings[awaited].watch.lastArrival)
        guard rest <= FreezeEvidence.usualRest(interval) else {
            return .silence(isHeard: isHeard(publisherOf: encoding, at: now))
        }
        return .known(keyframeReason(of: slot, awaited, at: now))
    }

    /// Whether anything has just arrived from the publisher of an encoding.
    private mutating func isHeard(publisherOf encoding: EncodingIndex, at now: Instant) -> Bool {
        let publication = receiver.encodings[encoding].publication
        // A mirror does not see what else its home receives.
        guard let transport = receiver.publications[publication].transport else { return true }
        return now.nanoseconds(since: transports[transport].lastHeard) < Self.heardNanoseconds
    }

    /// Whether the publisher was asked for a keyframe of the encoding and has not sent it in time.
    private mutating func isKeyframeOverdue(of encoding: EncodingIndex, at now: Instant) -> Bool {
        receiver.encodings[encoding].keyframes
            .isOverdue(after: FreezeDetector.keyframePatience, at: now)
    }

    /// Returns the reason why packets of an encoding arrive and are not forwarded.
    private mutating func keyframeReason(
        of slot: SlotIndex,
        _ encoding: EncodingIndex,
        at now: Instant
    ) -> FreezeReason {
        let isSteppingDown = allocator.shares[slot].value.limit == .bandwidth
        if isKeyframeOverdue(of: encoding, at: now) { return .noKeyframe }
        switch forwarder.slots[slot].source {
        case .idle, .flowing: return .discarded
        case .waiting, .switching: return isSteppingDown ? .steppingDown : .switching
        }
    }
}
