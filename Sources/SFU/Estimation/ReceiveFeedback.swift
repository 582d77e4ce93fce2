import RTP
import WorkerInterface

/// Processing of congestion feedback from subscribers.
extension BandwidthEstimator {
    /// Takes transport-wide feedback (draft-holmer-rmcat-transport-wide-cc-extensions-01 §3.1).
    ///
    /// The time it takes is proportional to the message's bytes and to the packets in flight,
    /// whatever the message claims. Sequence numbers that were never sent, or are already settled,
    /// are ignored.
    mutating func receive(_ feedback: borrowing TransportFeedback, at now: Instant) {
        arrivedFrames.removeAll()
        hasNewClock = false
        guard detectors.isMade else { return }
        let time = now.nanoseconds
        if let last = lastFeedback, time &- last > Self.staleness { detectors.value.resetDelays() }
        if detectors.value.clock.advance(to: feedback.referenceTime, at: time) {
            detectors.value.resetDelays()
            detectors.value.forgetStartupTrain()
            prober.forgetArrivals()
            hasNewClock = true
        }

        var walk = copy feedback
        var newest: Int64?
        var shown: ProbeResult?
        while let (number, arrival) = walk.nextArrived() {
            guard let place = packets.place(of: number.rawValue) else { continue }
            let entry = packets[place]
            guard entry.state != .unused, entry.state != .arrived else { continue }
            packets.settle(place, as: .arrived)
            newest = max(newest ?? entry.time, entry.time)
            let arrived = detectors.value.clock.time(of: arrival)
            detectors.value.noteArrival(entry, arrived)
            noteFrame(entry, arrived)
            if entry.probe != 0 {
                shown =
                    prober.noteArrival(
                        entry.probe,
                        bytes: Int(entry.bytes),
                        sent: entry.time,
                        arrived: arrived
                    ) ?? shown
            }
        }
        noteLosses(feedback)
        packets.forget(before: time &- Self.memory)
        guard let newest else { return }
        lastFeedback = time
        beforeSilence = nil
        noteRoundTrip(max(0, time &- newest))
        adjust(shown: shown, at: time)
    }

    /// Takes a REMB estimate; it counts only without transport-wide feedback.
    mutating func receiveREMB(
        _ bitsPerSecond: Int,
        of sources: EstimatedSources = .all,
        at now: Instant
    ) {
        let time = now.nanoseconds
        limits.noteEstimate(max(Double(bitsPerSecond), Self.minimum), of: sources, at: time)
        guard !hasFeedback(at: time) else { return }
        let before = current
        // It may exceed the send rate by as much as our own estimate may.
        let lead = max(current, 1.5 * second.rate + 10_000)
        current = min(limits.cap(at: time), lead, maximum)
        rates.learn(current, at: time)
        finish(.receiverEstimate, from: before, at: time)
    }

    /// Takes a receiver report's loss; it counts only without transport-wide feedback.
    ///
    /// - Parameters:
    ///   - fraction: The share lost, in 256ths (RFC 3550 §6.4.1).
    ///   - roundTripMilliseconds: The round-trip time, if the report allows to compute it.
    ///   - now: The time of arrival.
    mutating func receiveLoss(fraction: UInt8, roundTripMilliseconds: Int?, at now: Instant) {
        let time = now.nanoseconds
        guard !hasFeedback(at: time) else { return }
        if let roundTripMilliseconds {
            let bounded = min(max(roundTripMilliseconds, 0), 10_000)
            noteRoundTrip(Int64(bounded) &* 1_000_000)
        }
        let before = current
        let rate = limits.rate(
            after: Double(fraction) / 256,
            from: current,
            sending: second.rate,
            roundTrip: roundTrip ?? 0,
            at: time
        )
        current = min(max(rate, Self.minimum), limits.cap(at: time), maximum)
        rates.learn(current, at: time)
        finish(.receiverLoss, from: before, at: time)
    }

    private func hasFeedback(at now: Int64) -> Bool {
        lastFeedback.map { now &- $0 < 2 &* Self.staleness } ?? false
    }

    /// Marks packets as missing that the message covers and does not report as arrived.
    ///
    /// They stay missing until later feedback reports them or a later packet; then they are judged.
    private mutating func noteLosses(_ feedback: borrowing TransportFeedback) {
        guard !packets.isEmpty else { return }
        let newest = packets.end &- 1
        let step = SequenceNumber(rawValue: UInt16(truncatingIfNeeded: newest))
        let first = newest &+ feedback.baseSequence.distance(from: step)
        let start = max(first, packets.oldest)
        let end = min(first &+ feedback.statusCount, packets.end)
        guard start < end else { return }
        for place in start..<end {
            switch packets[place].state {
            case .inFlight:
                packets.settle(place, as: .missing)
                firstMissing = min(firstMissing ?? place, place)
            case .arrived:
                if let missing = firstMissing { judge(missing, until: place) }
            case .unused, .missing, .lost: break
            }
        }
    }

    /// Declares the missing packets from `first` to `end` lost; `end` itself arrived.
    ///
    /// If all of them are missing, it may be an outage of the path, which does not count as loss.
    private mutating func judge(_ first: Int, until end: Int) {
        firstMissing = nil
        let start = max(first, packets.oldest)
        guard start < end else { return }
        let isAll = (start..<end).allSatisfy { packets[$0].state == .missing }
        if isAll,
            detectors.value.outages.isOutage(
                from: packets[start].time,
                to: packets[end].time,
                packets: end &- start
            )
        {
            // No send rate caused the outage, so the estimate is restored.
            if let before = beforeSilence { rates.raise(to: before) }
            return
        }
        for place in start..<end where packets[place].state == .missing {
            packets.settle(place, as: .lost)
            detectors.value.noteLoss(packets[place], roundTrip: roundTrip)
        }
    }

    private mutating func noteRoundTrip(_ sample: Int64) {
        roundTrip = roundTrip.map { $0 &+ (sample &- $0) / 8 } ?? sample
    }

    /// Updates the estimate after a feedback message.
    private mutating func adjust(shown: ProbeResult?, at now: Int64) {
        if followAcknowledgedRate(at: now) { return }
        let before = rates.estimate
        let input = detectors.value.conclude(
            roundTrip: roundTrip,
            isApplicationLimited: load.isLimited,
            sinceProbe: prober.sinceProbe(at: now),
            least: min(Double(least), maximum),
            bounds: Self.minimum...maximum,
            at: now
        )
        var reason = BandwidthExplanation.Cause.growth
        if rates.update(input, at: now) {
            reason = .overuse
            prober.noteDrop(from: before, to: rates.estimate, at: now)
        } else if let shown, detectors.value.usage != .over {
            if let rate = prober.noteResult(shown, situation, at: now), rate > current {
                learn(min(rate, maximum), at: now)
                reason = .probe
            }
        }
        raiseToDelivered(input)
        detectors.value.judgeLoss(
            delayBased: rates.estimate,
            floor: Self.minimum,
            isApplicationLimited: load.isLimited
        )
        settle(reason, at: now)
    }

    /// Takes a rate that the path carries, in bits a second: the limit that loss sets may be far
    /// below the delay-based rate, and is raised all the same.
    private mutating func learn(_ rate: Double, at now: Int64) {
        if rate > rates.estimate { rates.learn(rate, at: now) }
        detectors.value.learn(rate)
    }

    /// Raises the rate to the traffic that is delivered without queuing.
    ///
    /// The path carries that much whatever the estimate was. The estimate may be too low because a
    /// host was busy when the subscriber joined, or because audio is sent regardless of it.
    private mutating func raiseToDelivered(_ input: RateControl.Input) {
        guard input.usage == .normal, input.waiting < Self.shortWait,
            let acknowledged = input.acknowledged
        else { return }
        rates.raise(to: min(Self.passing * acknowledged, allocated, maximum))
    }

    /// Follows the acknowledged rate during the startup phase.
    ///
    /// A new subscriber is sent full layers at once. Their acknowledged rate is a better estimate
    /// than any initial value, and if they are queued, they show the bottleneck rate.
    ///
    /// - Returns: Whether the message needs no further processing.
    private mutating func followAcknowledgedRate(at now: Int64) -> Bool {
        endStartup(at: now)
        let since: Int64
        switch start {
        case .silent: since = now
        case .open(since: let begin), .bounded(since: let begin): since = begin
        case .over: return false
        }
        if let rate = detectors.value.first.rate {
            start = .bounded(since: since)
            rates.learn(min(max(rate, Self.minimum), maximum), at: now)
            settle(.probe, at: now)
            return true
        }
        let isOver =
            detectors.value.usage == .over
            || detectors.value.losses.averageLoss > Self.startLoss
        start = isOver ? .over : .open(since: since)
        let acknowledged = detectors.value.acknowledged.bitsPerSecond ?? 0
        if acknowledged > rates.estimate { rates.learn(min(acknowledged, maximum), at: now) }
        return false
    }

    /// Ends the startup phase when its time is up, even without new feedback.
    mutating func endStartup(at now: Int64) {
        switch start {
        case .silent, .over: return
        case .open(since: let since), .bounded(since: let since):
            guard now &- since >= Self.startLength else { return }
        }
        // No probe was sent while packets were queued. A busy host queues them, too.
        if isQueuedAtStart, detectors.value.queue.delay < Self.shortWait { prober.resume() }
        start = .over
        detectors.value.forgetLosses()
    }

    /// Sets the estimate to the lowest of the delay-based, loss-based and configured limits.
    mutating func settle(_ reason: BandwidthExplanation.Cause, at now: Int64) {
        let before = current
        let limit = detectors.value.losses.limit
        current = min(max(min(rates.estimate, limit), Self.minimum), maximum)
        if current < before { detectors.value.trials.noteDrop(at: now) }
        let isLoss = limit < rates.estimate && current <= before
        finish(isLoss ? .loss : reason, from: before, at: now)
    }

    private mutating func finish(
        _ reason: BandwidthExplanation.Cause,
        from before: Double,
        at now: Int64
    ) {
        load.setEstimate(current)
        guard current != before else { return }
        cause = reason
        guard abs(current - told) > told / 20 else { return }
        told = current
        changed = now
    }
}
