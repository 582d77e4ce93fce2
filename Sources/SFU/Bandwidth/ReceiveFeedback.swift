import RTP
import WorkerInterface

/// What viewers report.
extension BandwidthEstimator {
    /// Takes transport-wide feedback (draft-holmer-rmcat-transport-wide-cc-extensions-01 §3.1).
    ///
    /// Takes time in proportion to the message's bytes and to what is in flight, whatever the
    /// message claims; numbers that were never sent, or are settled, mean nothing.
    mutating func receive(_ feedback: borrowing TransportFeedback, at now: Instant) {
        guard detectors.isMade else { return }
        let time = now.nanoseconds
        if let last = lastFeedback, time &- last > Self.staleness { detectors.value.startAfresh() }
        if detectors.value.clock.advance(to: feedback.referenceTime, at: time) {
            detectors.value.startAfresh()
            detectors.value.forgetStartupTrain()
            prober.forgetArrivals()
        }

        var walk = copy feedback
        var newest: Int64?
        var shown: Double?
        while let (number, arrival) = walk.nextArrived() {
            guard let place = packets.place(of: number.rawValue) else { continue }
            let entry = packets[place]
            guard entry.state != .unused, entry.state != .arrived else { continue }
            packets.settle(place, as: .arrived)
            newest = max(newest ?? entry.time, entry.time)
            let arrived = detectors.value.clock.time(of: arrival)
            detectors.value.noteArrival(entry, arrived)
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

    /// Takes the viewer's own estimate; it counts only without transport-wide feedback.
    mutating func receiveREMB(_ bitsPerSecond: Int, at now: Instant) {
        let time = now.nanoseconds
        limits.noteEstimate(max(Double(bitsPerSecond), Self.minimum), at: time)
        guard !hasFeedback(at: time) else { return }
        let before = current
        // It may run ahead of what is sent by as much as our own estimate may.
        let lead = max(current, 1.5 * second.rate + 10_000)
        current = min(limits.cap(at: time), lead, maximum)
        rates.learn(current, at: time)
        finish(.receiverEstimate, from: before, at: time)
    }

    /// Takes a receiver report's loss; it counts only without transport-wide feedback.
    ///
    /// - Parameters:
    ///   - fraction: The share lost, in 256ths (RFC 3550 §6.4.1).
    ///   - roundTripMilliseconds: The round trip, if the report told.
    ///   - now: When it came.
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

    /// What the message covers and does not tell the arrival of is missing, until told otherwise;
    /// what comes after it says what that means.
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

    /// What is missing from `first` on up to `end`, which came, was lost, unless all of it is: then
    /// the path may have been away.
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
            // Nobody's rate made it, so nobody's rate goes down for it.
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

    /// Draws the conclusions of one message.
    private mutating func adjust(shown: Double?, at now: Int64) {
        if learnAtStart(at: now) { return }
        let before = rates.estimate
        let input = detectors.value.conclude(
            roundTrip: roundTrip,
            isApplicationLimited: load.isLimited,
            bounds: Self.minimum...maximum,
            at: now
        )
        var reason = BandwidthExplanation.Cause.growth
        if rates.update(input, at: now) {
            reason = .overuse
            prober.noteDrop(from: before, to: rates.estimate, at: now)
        } else if let shown, input.usage != .over {
            if shown > rates.estimate {
                rates.learn(min(shown, maximum), at: now)
                detectors.value.learn(min(shown, maximum))
                reason = .probe
            }
            prober.noteResult(shown, situation, at: now)
        }
        keepWhatPasses(input)
        detectors.value.judgeLoss(
            delayBased: rates.estimate,
            floor: Self.minimum,
            isApplicationLimited: load.isLimited
        )
        settle(reason, at: now)
    }

    /// What comes through without waiting is no more than the path carries, whatever was thought of
    /// it: a machine that was busy when somebody joined, or sound, which is sent in any case.
    private mutating func keepWhatPasses(_ input: RateControl.Input) {
        guard input.usage == .normal, input.waiting < Self.shortWait,
            let acknowledged = input.acknowledged
        else { return }
        rates.raise(to: min(Self.passing * acknowledged, allocated, maximum))
    }

    /// Takes what comes through for what the path carries, in the first second of reports.
    ///
    /// A viewer is sent all at first: what of that comes through is known better than any first
    /// rate, and where it has to queue, the path is known.
    ///
    /// - Returns: Whether that is all that the message tells.
    private mutating func learnAtStart(at now: Int64) -> Bool {
        leaveStart(at: now)
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

    /// Ends the start when it has lasted, whether anything more was heard or not.
    mutating func leaveStart(at now: Int64) {
        switch start {
        case .silent, .over: return
        case .open(since: let since), .bounded(since: let since):
            guard now &- since >= Self.startLength else { return }
        }
        // While packets had to queue nothing was asked; a busy machine makes them queue, too.
        if isQueuedAtStart, detectors.value.queue.delay < Self.shortWait { prober.resume() }
        start = .over
        detectors.value.forgetLosses()
    }

    /// Takes the least of what delay, loss and the caller allow.
    mutating func settle(_ reason: BandwidthExplanation.Cause, at now: Int64) {
        let before = current
        let limit = detectors.value.losses.limit
        current = min(max(min(rates.estimate, limit), Self.minimum), maximum)
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
