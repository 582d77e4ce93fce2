import WorkerInterface

/// Detectors fed by arrival feedback; created when the first packet is sent.
struct Detectors {
    /// Round-trip time assumed until one is measured, in nanoseconds.
    private static let usualRoundTrip: Int64 = 100_000_000
    /// Queuing delay in nanoseconds, and share lost, above which a path counts as saturated.
    private static let longWait: Int64 = 100_000_000
    /// Queuing delay in nanoseconds that is more than a probe leaves.
    private static let standingWait: Int64 = 80_000_000
    private static let muchLoss = 0.1
    /// Share lost from which a queue may be full, share that is notable, and queuing delay in
    /// nanoseconds up to which that is not for lack of capacity.
    private static let someLoss = 0.02
    private static let notableLoss = 0.03
    private static let littleWait = 30_000_000.0
    /// Growth of the delay in milliseconds a millisecond, and queuing delay in nanoseconds, below
    /// which nearly all that is sent is delivered.
    private static let fastGrowth = 0.1
    private static let unbearableWait = 400_000_000.0
    /// Share of an acknowledged rate up to which the lowest layers are kept beside growing queues
    /// of others.
    private static let keptShare = 0.5
    /// Share of the acknowledged rate that a test for such queues would send.
    private static let tested = 0.8
    /// Queuing delay in nanoseconds below which there is no queue.
    private static let noWait: Int64 = 10_000_000
    /// Nanoseconds from a packet that waited for less than `shortWait` in which a path that has
    /// paused may only have stalled.
    private static let stall: Int64 = 900_000_000
    private static let shortWait: Int64 = 30_000_000
    /// Nanoseconds for which the trend is that of a queue that has drained.
    private static let draining: Int64 = 500_000_000
    /// Bytes of a full packet, which every other packet may find on its way.
    private static let fullPacket = 600

    var clock = RemoteClock()
    private var groups = ArrivalGroups()
    private(set) var trendline = Trendline()
    private(set) var queue = StandingQueue()
    private var contention = Contention()
    private var proven = ProvenRate()
    /// Send time of the last lost packet, in nanoseconds.
    private var lastLoss = Int64.min / 2
    private(set) var acknowledged = AcknowledgedRate()
    var losses = LossControl()
    var trials = Trials()
    private var events = LossEvents()
    var outages = Outages()
    private(set) var first = StartupTrain()
    private var bottleneckRate = BottleneckRate()
    /// Send time in nanoseconds of the last packet that hardly waited.
    private var lastShort = Int64.min / 2
    /// Send time in nanoseconds of the last packet in a queue that a pause of the path has left.
    private var lastPaused = Int64.min / 2
    /// Queuing delay of the last packet without its own transmission, in nanoseconds.
    private var wait: Int64 = 0

    /// Resets the delay detectors; past delays do not compare with those to come.
    mutating func resetDelays() {
        groups.reset()
        trendline.reset()
        queue.reset()
        acknowledged.reset()
        bottleneckRate.reset()
        lastShort = .min / 2
        lastPaused = .min / 2
    }

    /// Discards the startup measurement after the subscriber's clock has changed.
    mutating func forgetStartupTrain() { first = StartupTrain() }

    /// Notes a packet that arrived, at `arrived` on the subscriber's clock.
    mutating func noteArrival(_ entry: SentPackets.Entry, _ arrived: Int64) {
        let bytes = Int(entry.bytes)
        acknowledged.add(bytes: bytes, arrived: arrived)
        queue.add(sent: entry.time, arrived: arrived)
        first.add(bytes: bytes, sent: entry.time, arrived: arrived)
        wait = queue.latest &- transmission(of: bytes)
        bottleneckRate.add(bytes: bytes, sent: entry.time, arrived: arrived, waited: wait)
        if queue.latest < Self.shortWait { lastShort = max(lastShort, entry.time) }
        if bottleneckRate.hasPaused { lastPaused = max(lastPaused, entry.time) }
        if entry.state == .lost {
            losses.takeBack()
        } else {
            losses.note(bytes: bytes, sent: entry.time, isLost: false)
            events.note(bytes: bytes, sent: entry.time, isLost: false, roundTrip: 0)
        }
        if let step = groups.add(sent: entry.time, arrived: arrived) { trendline.add(step) }
    }

    /// Returns the nanoseconds that a packet's bits take at the acknowledged rate; on a narrow path
    /// they are many.
    private func transmission(of bytes: Int) -> Int64 {
        guard let rate = acknowledged.bitsPerSecond, rate > BandwidthEstimator.minimum else {
            return 0
        }
        return Int64(saturating: Double(bytes) * 8e9 / rate)
    }

    /// Resets loss detection: loss of the startup phase, when more was sent than the path was known
    /// to carry, does not count.
    mutating func forgetLosses() {
        losses.reset()
        events = LossEvents()
    }

    /// Returns the usage for the rate control.
    ///
    /// Soon after a pause of the path overuse counts as underuse: a queue that has just come up may
    /// be that of a stall, and drain at once; unless the path is known to have become narrow. Where
    /// delays vary, the trend lasts longer than the queue.
    private func judgedUsage(at now: Int64) -> PathUsage {
        let hasPaused = bottleneckRate.hasPaused || now &- lastPaused < Self.draining
        let mayBeStall = now &- lastShort < Self.stall && hasPaused && !isNarrow
        return usage == .over && mayBeStall ? .under : usage
    }

    /// Whether the path surely carries clearly less than was acknowledged.
    private var isNarrow: Bool {
        guard bottleneckRate.isSure, let rate = bottleneckRate.rate else { return false }
        return rate < RateControl.narrowing * (acknowledged.bitsPerSecond ?? 0)
    }

    /// Usage of the path; an overuse without queuing delay of the latest packet counts as normal.
    ///
    /// A host on the path that stalls for a moment holds packets and then releases them all at
    /// once, which raises delays without a growing queue.
    var usage: PathUsage {
        let isShort = queue.latest < Self.noWait || wait < transmission(of: Self.fullPacket)
        return trendline.usage == .over && isShort ? .normal : trendline.usage
    }

    /// Whether packets sent now are queued for long, or lost.
    var isFull: Bool { queue.latest > Self.longWait || losses.averageLoss > Self.muchLoss }

    /// Returns the rate of the lowest layers, or half of what was lately delivered if that is less.
    ///
    /// A download that begins on the path fills its queue in a moment, and goes on filling it
    /// however little is sent here: to take the last layer off for it would free nothing. On a path
    /// that has not carried far more, the lowest layers themselves may be too much.
    private mutating func kept(_ least: Double, at now: Int64) -> Double {
        if let rate = acknowledged.bitsPerSecond { proven.note(rate, at: now) }
        return min(least, Self.keptShare * proven.rate)
    }

    /// Whether the path delivers nearly all that is sent, though others may fill its queue.
    ///
    /// A path that carries less than is sent loses the rest, or its queue grows by it.
    var deliversNearlyAll: Bool {
        trendline.lastSlope < Self.fastGrowth && losses.averageLoss < Self.muchLoss
            && queue.delay < Self.unbearableWait
    }

    /// Whether packets are lost while there is no queue.
    var losesWithoutQueue: Bool {
        losses.averageLoss > Self.notableLoss && queue.delay < Self.littleWait
    }

    mutating func noteLoss(_ entry: SentPackets.Entry, roundTrip: Int64?) {
        let bytes = Int(entry.bytes)
        lastLoss = max(lastLoss, entry.time)
        losses.note(bytes: bytes, sent: entry.time, isLost: true)
        events.note(bytes: bytes, sent: entry.time, isLost: true, roundTrip: roundTrip ?? 0)
    }

    /// Returns the rate control's input after a feedback message.
    mutating func conclude(
        roundTrip: Int64?,
        isApplicationLimited: Bool,
        sinceProbe: Int64,
        least: Double,
        bounds: ClosedRange<Double>,
        at now: Int64
    ) -> RateControl.Input {
        let roundTrip = roundTrip ?? Self.usualRoundTrip
        let least = kept(least, at: now)
        return RateControl.Input(
            usage: judgedUsage(at: now),
            acknowledged: acknowledged.bitsPerSecond,
            bottleneckRate: bottleneckRate.rate,
            isBottleneckSure: bottleneckRate.isSure,
            roundTrip: roundTrip,
            waiting: queue.delay,
            rule: contention.update(
                &queue,
                hasLoss: losses.averageLoss > Self.someLoss,
                lastLoss: lastLoss,
                deliversNearlyAll: deliversNearlyAll,
                mayTest: least <= Self.tested * (acknowledged.bitsPerSecond ?? 0),
                at: now
            ),
            isRateOfProbe: sinceProbe < RateControl.counting &+ roundTrip,
            isQueueOfProbe: sinceProbe < RateControl.settling &+ roundTrip
                && wait < Self.standingWait,
            fair: events.fairRate(roundTrip: roundTrip),
            floor: events.floor(roundTrip: roundTrip, at: now),
            least: deliversNearlyAll ? least : 0,
            isApplicationLimited: isApplicationLimited,
            bounds: bounds
        )
    }

    /// Takes a higher rate that a probe has measured, in bits a second.
    mutating func learn(_ rate: Double) {
        acknowledged.learn(rate)
        losses.learn(rate)
    }

    /// Updates the loss-based limit with the present delay-based rate.
    mutating func judgeLoss(delayBased rate: Double, floor: Double, isApplicationLimited: Bool) {
        losses.update(
            delayBased: rate,
            acknowledged: acknowledged.bitsPerSecond,
            isApplicationLimited: isApplicationLimited,
            floor: floor
        )
    }
}

/// Highest rate that was acknowledged in the last five to ten seconds, in bits a second.
private struct ProvenRate {
    private static let stretch: Int64 = 5_000_000_000

    private var before = 0.0
    private var present = 0.0
    private var began = Int64.min / 2

    var rate: Double { max(before, present) }

    mutating func note(_ rate: Double, at now: Int64) {
        if now &- began >= Self.stretch {
            before = now &- began < 2 &* Self.stretch ? present : 0
            present = 0
            began = now
        }
        present = max(present, rate)
    }
}

/// Classifier that tells outages of a path from loss by congestion.
///
/// A congested path drops the excess and always delivers some packets. During an outage of an
/// address, a radio link or a route, all packets are lost at any rate. After it the capacity is
/// unknown, and may well be the same as before. Policers that refill a token bucket at long
/// intervals look the same, but recur, so outages have a time budget.
struct Outages {
    /// Shortest complete loss in nanoseconds that may be an outage, and its least number of
    /// packets.
    private static let shortest: Int64 = 200_000_000
    private static let fewest = 5
    /// Nanoseconds of complete loss from which it is always an outage: policers deliver something
    /// once a second.
    private static let certain: Int64 = 1_000_000_000
    /// Share of the time that shorter outages may take, and the most unused budget in nanoseconds.
    private static let share = 0.15
    private static let most = 1_000_000_000.0

    private var saved = most
    private var judged: Int64 = 0

    /// Decides whether a complete loss is an outage, which says nothing of the path's capacity.
    ///
    /// - Parameters:
    ///   - start: The send time of the first lost packet, in nanoseconds.
    ///   - end: The send time of the next packet that arrived.
    ///   - packets: The number of lost packets, all those sent in between.
    /// - Returns: Whether it is an outage.
    mutating func isOutage(from start: Int64, to end: Int64, packets: Int) -> Bool {
        saved = min(saved + Self.share * Double(max(0, end &- judged)), Self.most)
        judged = max(judged, end)
        let length = end &- start
        guard length >= Self.shortest, packets >= Self.fewest else { return false }
        guard length < Self.certain else { return true }
        guard Double(length) <= saved else { return false }
        saved -= Double(length)
        return true
    }
}
