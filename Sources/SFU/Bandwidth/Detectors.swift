import WorkerInterface

/// What is learnt from arrivals; made when the first packet leaves.
struct Detectors {
    /// The round trip where none was measured yet, in nanoseconds.
    private static let usualRoundTrip: Int64 = 100_000_000
    /// Nanoseconds of waiting, and a share lost, with which a path is full.
    private static let longWait: Int64 = 100_000_000
    private static let muchLoss = 0.1
    /// Nanoseconds of waiting that are no queue.
    private static let noWait: Int64 = 10_000_000

    var clock = RemoteClock()
    private var groups = ArrivalGroups()
    private(set) var trendline = Trendline()
    private(set) var queue = StandingQueue()
    private var contention = Contention()
    private(set) var acknowledged = AcknowledgedRate()
    private(set) var losses = LossControl()
    private var events = LossEvents()
    var outages = Outages()
    private(set) var first = FirstTrain()
    private var pace = QueuePace()

    /// Nothing known of delays compares with what comes now.
    mutating func startAfresh() {
        groups.reset()
        trendline.reset()
        queue.reset()
        acknowledged.reset()
        pace.reset()
    }

    /// Forgets the packets of the start, whose arrivals another clock has told.
    mutating func forgetStartupTrain() { first = FirstTrain() }

    /// Notes a packet that arrived, at `arrived` on the viewer's clock.
    mutating func noteArrival(_ entry: SentPackets.Entry, _ arrived: Int64) {
        let bytes = Int(entry.bytes)
        acknowledged.add(bytes: bytes, arrived: arrived)
        queue.add(sent: entry.time, arrived: arrived)
        first.add(bytes: bytes, sent: entry.time, arrived: arrived)
        pace.add(bytes: bytes, arrived: arrived, waited: queue.latest)
        if entry.state == .lost {
            losses.takeBack()
        } else {
            losses.note(bytes: bytes, sent: entry.time, isLost: false)
            events.note(bytes: bytes, sent: entry.time, isLost: false, roundTrip: 0)
        }
        if let step = groups.add(sent: entry.time, arrived: arrived) { trendline.add(step) }
    }

    /// What was lost while more was sent than the path was known to carry says nothing.
    mutating func forgetLosses() {
        losses.reset()
        events = LossEvents()
    }

    /// How the path is used: delays that have risen are no queue of ours that grows where what came
    /// last did not have to wait.
    ///
    /// A machine on the way that stops for a moment holds packets, and lets them go all at once.
    var usage: PathUsage {
        trendline.usage == .over && queue.latest < Self.noWait ? .normal : trendline.usage
    }

    /// Whether what is sent now has to wait long, or is lost.
    var isFull: Bool { queue.latest > Self.longWait || losses.averageLoss > Self.muchLoss }

    mutating func noteLoss(_ entry: SentPackets.Entry, roundTrip: Int64?) {
        let bytes = Int(entry.bytes)
        losses.note(bytes: bytes, sent: entry.time, isLost: true)
        events.note(bytes: bytes, sent: entry.time, isLost: true, roundTrip: roundTrip ?? 0)
    }

    /// What the rate goes by after a message.
    mutating func conclude(
        roundTrip: Int64?,
        isApplicationLimited: Bool,
        bounds: ClosedRange<Double>,
        at now: Int64
    ) -> RateControl.Input {
        let roundTrip = roundTrip ?? Self.usualRoundTrip
        return RateControl.Input(
            usage: usage,
            acknowledged: acknowledged.bitsPerSecond,
            pace: pace.rate,
            roundTrip: roundTrip,
            waiting: queue.delay,
            rule: contention.update(queue, at: now),
            fair: events.fairRate(roundTrip: roundTrip),
            floor: events.floor(roundTrip: roundTrip, at: now),
            isApplicationLimited: isApplicationLimited,
            bounds: bounds
        )
    }

    /// A probe has shown more than was known.
    mutating func learn(_ rate: Double) {
        acknowledged.learn(rate)
        losses.learn(rate)
    }

    /// Has loss judged, now that the delays allow `rate`.
    mutating func judgeLoss(delayBased rate: Double, floor: Double, isApplicationLimited: Bool) {
        losses.update(
            delayBased: rate,
            acknowledged: acknowledged.bitsPerSecond,
            isApplicationLimited: isApplicationLimited,
            floor: floor
        )
    }
}
