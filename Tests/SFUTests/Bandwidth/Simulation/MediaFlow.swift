import RTP
import TestSupport

@testable import SFU

/// A flow to a viewer: estimator, pacer, an encoder and a receiver.
///
/// The encoder follows the estimate; the receiver reports arrival times in real feedback messages.
final class MediaFlow: SimulatedFlow {
    struct Settings {
        var startBitrate = 300_000
        var maximum = 8_000_000
        /// Highest and lowest rate of the encoder.
        var encoderMaximum = 8_000_000.0
        var encoderMinimum = 30_000.0
        var startSecond = 0.0
        var stopSecond = Double.infinity
        /// Periods without media, in seconds.
        var pauses: [ClosedRange<Double>] = []
        /// One-way delay in addition to the bottleneck's own.
        var extraDelayMilliseconds = 0.0
        var backDelayMilliseconds = 50.0
        var feedbackMilliseconds = 100.0
        /// Share of feedback messages that are lost.
        var feedbackLoss = 0.0
        /// Relative spread of frame sizes.
        var noise = 0.15
        /// Rates of layers, the lowest first; the highest that fits is sent.
        ///
        /// Empty for an encoder that follows the estimate.
        var layers: [Double] = []
    }

    private struct Flight {
        var arrival: Int64
        var sequence: Int
        var bytes: Int
        var isMedia: Bool
    }

    let settings: Settings
    let forward: Bottleneck
    /// Link of the feedback; `nil` for a path that nothing else uses.
    let backward: Bottleneck?
    var estimator: BandwidthEstimator
    private var pacer: Pacer
    private var random: SeededRandom
    private var sequence = 0
    private var nextFrame: Int64
    private var nextFeedback: Int64 = 0
    private var feedbackCount: UInt8 = 0
    private var flights: [Flight] = []
    private var firstFlight = 0
    private var arrivals: [Int64] = []
    private var base = 0
    private var messages: [(at: Int64, bytes: [UInt8])] = []
    private var sizes: [Int] = []
    private var lastRate: Double

    private(set) var receivedMedia = 0
    private(set) var receivedAll = 0
    private(set) var lost = 0

    init(
        _ settings: Settings,
        forward: Bottleneck,
        backward: Bottleneck? = nil,
        seed: UInt64
    ) {
        self.settings = settings
        self.forward = forward
        self.backward = backward
        let start = Instant(nanoseconds: Int64(settings.startSecond * 1e9))
        estimator = BandwidthEstimator(
            at: start,
            startBitrate: settings.startBitrate,
            maximum: settings.maximum
        )
        pacer = Pacer(at: start, bitsPerSecond: estimator.pacingRate)
        random = SeededRandom(seed: seed)
        nextFrame = start.nanoseconds + Int64(random.unit() * 33e6)
        lastRate = Double(settings.startBitrate)
        // Close to a wrap, so that every scenario has one.
        sequence = 65_000
        base = sequence
    }

    var estimate: Double { Double(estimator.estimate) }
    var received: Int { receivedMedia }

    private func isSending(at time: Int64) -> Bool {
        let second = Double(time) / 1e9
        return second >= settings.startSecond && second < settings.stopSecond
            && !settings.pauses.contains { $0.contains(second) }
    }

    func step(at time: Int64) {
        let now = Instant(nanoseconds: time)
        takeFeedback(at: now)
        receive(at: time)
        guard Double(time) >= settings.startSecond * 1e9 else { return }
        estimator.expire(at: now)
        encode(at: now)
        pacer.setRate(estimator.pacingRate, at: now)
        if let probe = estimator.takeProbe(at: now) { pacer.start(probe, at: now) }
        while let item = pacer.next(at: now) {
            transmit(Int(item.bytes), item.probe, isMedia: true, at: now)
        }
        while let padding = pacer.padding(at: now) {
            let bytes = pacer.paddingPacket
            pacer.left(bytes: bytes, at: now)
            transmit(bytes, padding.probe, isMedia: false, at: now)
        }
    }

    private func encode(at now: Instant) {
        guard isSending(at: now.nanoseconds) else {
            nextFrame = max(nextFrame, now.nanoseconds)
            estimator.setWanted(0, allocated: 0)
            return
        }
        guard now.nanoseconds >= nextFrame else { return }
        nextFrame += 33_333_333
        // An encoder follows within a few frames, and imprecisely.
        let wish = min(max(estimate, settings.encoderMinimum), settings.encoderMaximum)
        if let lowest = settings.layers.first, let highest = settings.layers.last {
            lastRate = settings.layers.last { $0 <= estimate } ?? lowest
            estimator.setWanted(Int(highest), allocated: Int(lastRate))
        } else {
            lastRate += (wish - lastRate) * (wish < lastRate ? 0.5 : 0.2)
            estimator.setWanted(Int(settings.encoderMaximum), allocated: Int(lastRate))
        }
        let factor = max(0.3, 1 + settings.noise * random.normal())
        let frame = Int(lastRate * factor / 8 / 30)
        let count = max(1, (frame + 1_171) / 1_172)
        for _ in 0..<count {
            _ = pacer.enqueue(0, bytes: max(60, frame / count), class: .video, at: now)
        }
    }

    private func transmit(_ bytes: Int, _ probe: ProbeID?, isMedia: Bool, at now: Instant) {
        estimator.sent(
            UInt16(truncatingIfNeeded: sequence),
            bytes: bytes,
            at: now,
            probe: probe
        )
        let extra = Int64(settings.extraDelayMilliseconds * 1e6)
        if let arrival = forward.send(bytes: bytes, at: now.nanoseconds, extra: extra) {
            let flight = Flight(
                arrival: arrival,
                sequence: sequence,
                bytes: bytes,
                isMedia: isMedia
            )
            flights.append(flight)
        } else {
            lost += 1
        }
        sequence += 1
    }

    private func receive(at time: Int64) {
        while firstFlight < flights.count, flights[firstFlight].arrival <= time {
            let flight = flights[firstFlight]
            firstFlight += 1
            receivedAll += flight.bytes
            if flight.isMedia { receivedMedia += flight.bytes }
            while arrivals.count <= flight.sequence - base { arrivals.append(-1) }
            // The receiver's clock has another origin.
            arrivals[flight.sequence - base] = flight.arrival + 777_000_000_000
        }
        if firstFlight > 4_096 {
            flights.removeFirst(firstFlight)
            firstFlight = 0
        }
        guard time >= nextFeedback else { return }
        nextFeedback = time + Int64(settings.feedbackMilliseconds * 1e6)
        while !arrivals.isEmpty, report(at: time) {}
    }

    /// Sends one message; returns `false` when there was nothing to report.
    private func report(at time: Int64) -> Bool {
        var reported = 0
        let waiting = arrivals
        let count = feedbackCount
        let first = SequenceNumber(rawValue: UInt16(truncatingIfNeeded: base))
        let bytes = [UInt8](capacity: 1_200) { output in
            reported = TransportFeedbackBuilder.encode(
                sender: SSRC(rawValue: 1),
                media: SSRC(rawValue: 2),
                feedbackCount: count,
                base: first,
                arrivals: waiting.span,
                into: &output
            )
        }
        guard reported > 0 else { return false }
        feedbackCount &+= 1
        base += reported
        arrivals.removeFirst(reported)
        guard random.unit() >= settings.feedbackLoss else { return true }
        let back = Int64(settings.backDelayMilliseconds * 1e6)
        if let backward {
            // Feedback shares this link with other media.
            if let arrival = backward.send(bytes: bytes.count + 28, at: time) {
                messages.append((arrival, bytes))
            }
        } else {
            messages.append((time + back, bytes))
        }
        return true
    }

    private func takeFeedback(at now: Instant) {
        while let first = messages.first, first.at <= now.nanoseconds {
            messages.removeFirst()
            var blocks = RTCPBlocks(first.bytes.span)
            guard let block = blocks.next(), let feedback = try? TransportFeedback(block) else {
                continue
            }
            estimator.receive(feedback, at: now)
        }
    }
}
