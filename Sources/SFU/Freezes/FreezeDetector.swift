import RTP
import WorkerInterface

/// Detector of the freezes of one slot's video, and of the hop that each is due to.
///
/// A picture freezes if no new frame reaches the viewer for longer than WebRTC's limit: three mean
/// frame intervals, and at least one and 150 ms. The detector costs the packet path nothing: it is
/// shown the slot's state when the next frame would be overdue, and what the viewer reports when it
/// reports it. It looks for the first part of the way at which the picture stands, from the
/// publisher on, and attributes the time to that one.
struct FreezeDetector: ~Copyable {
    /// Freezes that are kept for `subscription.explain`.
    static let maximumRecent = 16
    /// Nanoseconds between two checks: during a freeze, the least otherwise, without video to
    /// watch, and the most.
    private static let ongoingStep: Int64 = 40_000_000
    private static let shortestStep: Int64 = 50_000_000
    private static let idleStep: Int64 = 1_000_000_000
    /// Nanoseconds beyond a round trip and a half within which feedback is due.
    private static let feedbackDelay: Int64 = 300_000_000
    /// Nanoseconds for which a viewer's request shows that it still lacks packets.
    private static let askedMemory: Int64 = 2_500_000_000
    /// Nanoseconds that a publisher may take to answer a keyframe request.
    static let keyframePatience: Int64 = 500_000_000

    private(set) var totals = FreezeTotals()
    private var recent = UncountedArray<Freeze>(capacity: 1)
    private var stretch: FreezeEvidence.Stretch?
    private var startedAt = Instant(nanoseconds: 0)
    /// Whether a frame has left in this stretch.
    private var isShowing = false
    private var ongoing: OngoingFreeze?
    /// End of the last freeze.
    private var lastEnd = Instant(nanoseconds: .min)
    private var lastStall = Instant(nanoseconds: .min)
    private var mayRest = false
    private var interval: Int64 = 33_000_000
    private var roundTrip: Int64 = 100_000_000
    private var acknowledgements = FrameAcknowledgements()
    private var repairs = RepairWatch()
    private var requests = PictureRequests()
    /// Time of the viewer's last NACK, whether or not sfud had the packet.
    private var askedAt = Instant(nanoseconds: .min / 2)

    /// Returns the mean interval of frames in nanoseconds: as they arrive at the viewer, or if that
    /// is unknown as they are received.
    ///
    /// It stays the same during a freeze.
    func interval(received: Int64) -> Int64 {
        if ongoing != nil { return interval }
        return acknowledgements.interval > 0 ? acknowledgements.interval : received
    }

    /// Nanoseconds without a new frame from which a picture counts as frozen.
    var patience: Int64 { max(3 &* interval, interval &+ 150_000_000) }

    /// Freezes so far, one that is going on included in the list.
    func account(at now: Instant) -> FreezeAccount {
        var account = FreezeAccount()
        account.totals = totals
        account.recent = (0..<recent.count).map { recent[$0] }
        if let ongoing, ongoing.verdict != .noFrame || !mayRest {
            account.recent.append(ongoing.report(until: now, hasEnded: false))
            account.recent = account.recent.suffix(Self.maximumRecent)
        }
        return account
    }

    /// Clears the account for another subscription.
    mutating func forget() { self = Self() }

    /// Notes the arrival of a frame that was sent at `sent`; `arrived` is on the viewer's clock, in
    /// nanoseconds.
    ///
    /// Returns a freeze that had ended before any check could see it.
    mutating func noteArrival(sent: Instant, arrived: Int64) -> Freeze? {
        let before = acknowledgements.lastSent
        let isAwaited = acknowledgements.waitingSince.map { $0 < sent } ?? false
        guard let gap = acknowledgements.note(sent: sent, arrived: arrived), isShowing else {
            return nil
        }
        if ongoing == nil { acknowledgements.learn(min(gap, patience)) }
        guard gap > patience else { return nil }
        guard ongoing == nil else {
            ongoing?.note(gap: gap)
            return nil
        }
        guard let before, before >= lastEnd, before >= startedAt else { return nil }
        // No rest of what was sent is this long: the checks would have seen it. Without an older
        // frame that was awaited, the packets in between had no ends of frames.
        let rest = sent.nanoseconds(since: before)
        let isLate = gap &- rest > patience / 2
        guard isLate || isAwaited && gap > patience &+ 2 &* Self.shortestStep else { return nil }
        let reason: FreezeReason = isLate ? .arrivedLate : .unacknowledged
        return record(Freeze(began: before, nanoseconds: gap, reason: reason))
    }

    /// Forgets the arrivals of frames, as the viewer's clock has leapt.
    mutating func forgetArrivals() { acknowledgements.forgetArrivals() }

    /// Send time of the newest frame that the viewer's feedback reports as arrived, if any.
    var acknowledged: Instant? { acknowledgements.lastSent }

    /// Notes a NACK at `now`.
    mutating func noteAsked(at now: Instant) { askedAt = now }

    /// Notes a NACK of a packet that sfud received at `arrival` and has sent.
    mutating func noteLost(_ arrival: Instant, at now: Instant) {
        repairs.note(arrival, at: now, roundTrip: roundTrip, patience: patience)
    }

    /// Notes a PLI or FIR; the encoding's last keyframe arrived at `keyframeAt`.
    mutating func noteRequest(at now: Instant, keyframeAt: Instant?) {
        guard isShowing else { return }
        askedAt = now
        let acknowledged = acknowledgements.lastSent
        requests.advance(to: now, keyframeAt: keyframeAt, acknowledged: acknowledged)
        var loss = ongoing.flatMap { $0.last }
        if loss?.hop == .viewerDecoder { loss = nil }
        if loss == nil, repairs.stuckSince(at: now) != nil { loss = .repairing }
        requests.note(at: now, loss: loss)
    }

    /// Judges the slot's state; returns the time of the next check, and a freeze that has ended.
    mutating func check(_ evidence: FreezeEvidence) -> (next: Instant, ended: Freeze?) {
        let now = evidence.now
        guard let stretch = evidence.stretch else {
            let ended = finish(at: now)
            self.stretch = nil
            return (now.advanced(nanoseconds: Self.idleStep), ended)
        }
        var ended: Freeze?
        if stretch != self.stretch {
            ended = finish(at: now)
            begin(stretch, at: now)
        }
        guard isShowing || evidence.leftAt > startedAt else {
            // The longer nothing has come, the more rarely: a viewer of a silent room costs little.
            let step = max(2 &* Self.shortestStep, now.nanoseconds(since: startedAt))
            return (now.advanced(nanoseconds: min(step, Self.idleStep)), ended)
        }
        isShowing = true
        mayRest = evidence.mayRest
        interval = evidence.interval
        roundTrip = evidence.roundTrip
        if let frame = evidence.frameLeftAt { acknowledgements.noteLeft(at: frame) }
        requests.advance(
            to: now,
            keyframeAt: evidence.keyframeAt,
            acknowledged: acknowledgements.lastSent
        )
        ended = judge(evidence) ?? ended
        let step = ongoing == nil ? Self.shortestStep : Self.ongoingStep
        let overdue = evidence.leftAt.advanced(nanoseconds: patience &+ 1_000_000)
        let least = now.advanced(nanoseconds: step)
        return (ongoing == nil ? max(least, overdue) : least, ended)
    }

    private mutating func judge(_ evidence: FreezeEvidence) -> Freeze? {
        let now = evidence.now
        if let stall = evidence.stall, stall.to > lastStall {
            lastStall = stall.to
            return note(stall)
        }
        ongoing?.settle(evidence.silence)
        guard let stand = firstStand(evidence) else { return close(at: now) }
        guard ongoing != nil || now.nanoseconds(since: stand.since) > patience else { return nil }
        if ongoing == nil {
            ongoing = OngoingFreeze(began: max(stand.since, startedAt, lastEnd))
        }
        ongoing?.note(missing: evidence.missing, requests: requests.count)
        switch stand.cause {
        case .silence(let isHeard): ongoing?.addSilence(isHeard: isHeard, until: now)
        // The viewer may be content: its next request would tell.
        case .known(.undecoded) where requests.arrivedAt != nil: break
        case .known(let reason): ongoing?.add(reason, until: now)
        }
        return nil
    }

    /// Attributes a time in which the worker did nothing.
    private mutating func note(_ stall: FreezeEvidence.Stall) -> Freeze? {
        let length = stall.to.nanoseconds(since: stall.from)
        guard ongoing == nil else {
            ongoing?.add(.stalled, until: stall.to)
            return nil
        }
        guard length > patience, stall.from >= startedAt, stall.from >= lastEnd else { return nil }
        return record(Freeze(began: stall.from, nanoseconds: length, reason: .stalled))
    }

    /// First part of the way, from the publisher on, at which the picture stands.
    private func firstStand(
        _ evidence: FreezeEvidence
    ) -> (since: Instant, cause: FreezeEvidence.Standstill)? {
        let now = evidence.now
        if let cause = evidence.standstill { return (evidence.leftAt, cause) }
        if let since = evidence.missingSince, lacks(since, at: now) {
            return (since, .known(evidence.isKeyframeOverdue ? .noKeyframe : .packetsMissing))
        }
        if let since = evidence.pacedSince, now.nanoseconds(since: since) > patience {
            return (since, .known(.paced))
        }
        if let stand = requestStand(evidence) { return stand }
        if let since = repairs.stuckSince(at: now) { return (since, .known(.repairing)) }
        let delay = roundTrip &+ roundTrip / 2 &+ Self.feedbackDelay
        if let waiting = acknowledgements.waitingSince, let since = acknowledgements.lastSent,
            now.nanoseconds(since: waiting) > delay
        {
            return (since, .known(.unacknowledged))
        }
        return nil
    }

    /// Whether the viewer lacks packets that are missing at sfud since then.
    private func lacks(_ since: Instant, at now: Instant) -> Bool {
        if askedAt >= since { return now.nanoseconds(since: askedAt) < Self.askedMemory }
        // Its request is on the way.
        return ongoing != nil && now.nanoseconds(since: since) < roundTrip &+ Self.feedbackDelay
    }

    /// Returns since when the viewer waits for a keyframe, and why.
    private func requestStand(
        _ evidence: FreezeEvidence
    ) -> (since: Instant, cause: FreezeEvidence.Standstill)? {
        guard let first = requests.first else { return nil }
        if requests.isUndecoded { return (first, .known(.undecoded)) }
        guard let loss = requests.loss else { return nil }
        let waited = evidence.now.nanoseconds(since: first)
        let isUnanswered = requests.awaitsPublisher(evidence.keyframeAt)
        let reason: FreezeReason =
            isUnanswered && waited > Self.keyframePatience ? .noKeyframe : loss
        return (first, .known(reason))
    }

    /// Ends a freeze that is going on, as the viewer is to have no video any more.
    mutating func finish(at now: Instant) -> Freeze? {
        guard isShowing, let freeze = ongoing else { return nil }
        ongoing = nil
        lastEnd = now
        let report = freeze.report(until: now, hasEnded: true)
        return report.nanoseconds > patience && isFreeze(report) ? record(report) : nil
    }

    private mutating func close(at now: Instant) -> Freeze? {
        guard let freeze = ongoing else { return nil }
        ongoing = nil
        // The picture went on at some time since the last check.
        let isExact = freeze.last == .undecoded
        let since = isExact ? 0 : now.nanoseconds(since: freeze.accounted)
        var report = freeze.report(
            until: freeze.accounted.advanced(nanoseconds: since / 2),
            hasEnded: true
        )
        if freeze.isUnconfirmed { report.nanoseconds = freeze.gap }
        lastEnd = now
        guard report.nanoseconds > patience, isFreeze(report) else { return nil }
        return record(report)
    }

    /// Whether a rest of the publisher counts as a freeze.
    private func isFreeze(_ freeze: Freeze) -> Bool { !mayRest || freeze.reason != .noFrame }

    private mutating func begin(_ stretch: FreezeEvidence.Stretch, at now: Instant) {
        self.stretch = stretch
        startedAt = now
        isShowing = false
        acknowledgements = FrameAcknowledgements()
        repairs = RepairWatch()
        requests = PictureRequests()
        lastStall = now
    }

    private mutating func record(_ freeze: Freeze) -> Freeze {
        totals.add(freeze)
        lastEnd = max(lastEnd, freeze.began.advanced(nanoseconds: freeze.nanoseconds))
        guard recent.count == Self.maximumRecent else {
            recent.append(freeze)
            return freeze
        }
        for index in 1..<recent.count { recent[index - 1] = recent[index] }
        recent[recent.count - 1] = freeze
        return freeze
    }
}
