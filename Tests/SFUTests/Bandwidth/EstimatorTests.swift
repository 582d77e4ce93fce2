import RTP
import TestSupport
import Testing
import WorkerInterface

@testable import SFU

struct BandwidthEstimatorTests {
    private static func estimator(start: Int = 1_000_000) -> BandwidthEstimator {
        var made = BandwidthEstimator(
            at: Instant(nanoseconds: 0),
            startBitrate: start,
            maximum: 5_000_000
        )
        made.setWanted(1_000_000, allocated: 960_000)
        return made
    }

    @Test func `it is small until something is sent, and bounded after`() {
        // Plus 32 bytes, an allocator's smallest block, for the table of the first packet.
        #expect(MemoryLayout<BandwidthEstimator>.size + 32 <= 1_024)
        var sent = SentPackets()
        for number in 0..<100_000 {
            sent.append(UInt16(truncatingIfNeeded: number), bytes: 1_200, at: 0, probe: 0)
        }
        let unanswered = sent.count
        #expect(unanswered == SentPackets.unansweredMaximum)
        sent.settle(sent.oldest, as: .arrived)
        for number in 100_000..<200_000 {
            sent.append(UInt16(truncatingIfNeeded: number), bytes: 1_200, at: 0, probe: 0)
        }
        let count = sent.count
        let inFlight = sent.inFlight
        #expect(count == SentPackets.maximum)
        #expect(inFlight == SentPackets.maximum * 1_200)
    }

    @Test(arguments: [0, 1, 32_767, 32_768, 65_000, 65_535] as [UInt16])
    func `numbers wrap without a trace`(first: UInt16) {
        var estimator = Self.estimator()
        var sender = SteadySender(from: first)
        sender.run(milliseconds: 20_000, &estimator)
        let told = estimator.explanation
        let left = estimator.packets.count
        #expect(told.source == .transportFeedback)
        #expect(told.lossPermille == 0)
        #expect(abs((told.acknowledged ?? 0) - 960_000) < 100_000)
        #expect(told.estimate >= 960_000)
        #expect(left <= 20)
    }

    @Test func `a loss is reported, and revoked when the packet arrives`() {
        var estimator = Self.estimator()
        var sender = SteadySender()
        sender.run(milliseconds: 5_000, &estimator) { $0 % 20 == 7 }
        #expect((40...60).contains(estimator.explanation.lossPermille))
        #expect(estimator.explanation.inherentLossPermille <= 60)

        var late = Self.estimator()
        let start = Instant(nanoseconds: 1_000_000_000)
        for round in 0..<40 {
            let base = UInt16(round * 10)
            let now = start.advanced(milliseconds: Int64(round) * 100)
            for index in 0..<10 {
                late.sent(base + UInt16(index), bytes: 1_200, at: now, probe: nil)
            }
            let times = (0..<10).map { now.nanoseconds + 20_000_000 + Int64($0) * 1_000_000 }
            // One packet in ten is missing at first, and reported a little later.
            let holed = times.enumerated().map { $0 == 4 ? -1 : $1 }
            let heard = now.advanced(milliseconds: 50)
            ViewerFeedback.give(holed, from: base, to: &late, at: heard)
            ViewerFeedback.give([times[4]], from: base + 4, to: &late, at: heard)
        }
        #expect(late.explanation.lossPermille <= 30, "not the 100 that each first message says")
    }

    @Test func `H2 bursts that lose all do not make a path look narrow`() {
        for seed in 1...100 as ClosedRange<UInt64> {
            var random = SeededRandom(seed: seed)
            var estimator = Self.estimator()
            var sender = SteadySender()
            sender.run(milliseconds: 3_000, &estimator)
            // From here on the application has less to send than the path is known to carry.
            estimator.setWanted(1_000_000, allocated: 160_000)
            sender.interval = 15
            var least = Int.max
            for burst in 0..<12 {
                let calm = burst == 0 ? 3_000 : 1_000 + Int(2_000 * random.unit())
                let length = 50 + Int(450 * random.unit())
                let hasKeyframe = random.unit() < 0.3
                for time in stride(from: 0, to: calm + length, by: 60) {
                    let isLost = time > calm
                    sender.bytes = isLost && hasKeyframe ? 900 : 150 + Int(300 * random.unit())
                    sender.run(milliseconds: 60, &estimator) { _ in isLost }
                    least = min(least, estimator.explanation.estimate)
                }
            }
            #expect(least > 300_000, "seed \(seed): \(least)")
        }
    }

    @Test func `messages that overtake one another do no harm`() {
        var estimator = Self.estimator()
        let start = Instant(nanoseconds: 1_000_000_000)
        for round in 0..<100 {
            let now = start.advanced(milliseconds: Int64(round) * 200)
            for index in 0..<20 {
                let number = UInt16(truncatingIfNeeded: round * 20 + index)
                let then = now.advanced(milliseconds: Int64(index) * 10)
                estimator.sent(number, bytes: 1_200, at: then, probe: nil)
            }
            let times = (0..<20).map { now.nanoseconds + 20_000_000 + Int64($0) * 10_000_000 }
            let heard = now.advanced(milliseconds: 240)
            let base = UInt16(truncatingIfNeeded: round * 20)
            ViewerFeedback.give(Array(times[10...]), from: base &+ 10, to: &estimator, at: heard)
            ViewerFeedback.give(Array(times[..<10]), from: base, to: &estimator, at: heard)
            // The first report is repeated.
            ViewerFeedback.give(Array(times[10...]), from: base &+ 10, to: &estimator, at: heard)
            estimator.expire(at: heard)
        }
        #expect(estimator.estimate >= 900_000)
        #expect(estimator.explanation.lossPermille == 0)
    }

    @Test(arguments: [3_600_000_000_000, -3_600_000_000_000, 9_000_000_000, -4_000_000_000])
    func `a viewer's clock may be set`(step: Int) {
        var estimator = Self.estimator()
        var sender = SteadySender()
        sender.clockOffset = 10_000_000_000_000
        sender.run(milliseconds: 10_000, &estimator)
        let before = estimator.estimate
        sender.clockOffset += Int64(step)
        sender.run(milliseconds: 10_000, &estimator)
        #expect(estimator.estimate >= before * 9 / 10)
        #expect(abs((estimator.explanation.acknowledged ?? 0) - 960_000) < 100_000)
    }

    @Test func `the reference time wraps after twelve days`() {
        var clock = RemoteClock()
        let tick: Int64 = 64_000_000
        var now: Int64 = 0
        _ = clock.advance(to: 0x7f_ffff, at: now)
        let before = clock.time(of: 0x7f_ffff * tick)
        now += tick
        let hasLeapt = clock.advance(to: -0x80_0000, at: now)
        #expect(!hasLeapt)
        #expect(clock.time(of: -0x80_0000 * tick) - before == tick)
        let leaps = clock.advance(to: 0, at: now + tick)
        #expect(leaps)
    }

    @Test func `silence lowers the rate step by step, and it comes back`() {
        var estimator = Self.estimator()
        var sender = SteadySender()
        sender.run(milliseconds: 5_000, &estimator)
        let before = estimator.estimate
        sender.isHeard = false
        sender.run(milliseconds: 1_000, &estimator)
        #expect(estimator.estimate == before, "a second is no silence")
        sender.run(milliseconds: 4_000, &estimator)
        let after = estimator.estimate
        let cause = estimator.explanation.cause
        let kept = estimator.packets.count
        #expect(after < before / 2 && after >= 10_000)
        #expect(cause == .silence)
        #expect(kept <= 400, "what is unheard of for three seconds is forgotten")
        sender.isHeard = true
        sender.run(milliseconds: 15_000, &estimator)
        #expect(estimator.estimate > after)
    }

    @Test func `throughput without queuing is a lower bound of the capacity`() {
        var estimator = Self.estimator()
        var sender = SteadySender()
        sender.run(milliseconds: 5_000, &estimator)
        // To the estimator, a busy machine at a join looks like a narrow path.
        estimator.rates.limit(to: 60_000)
        estimator.setWanted(0, allocated: 960_000)
        sender.run(milliseconds: 300, &estimator)
        let estimate = estimator.estimate
        #expect(estimate > 850_000, "not 8 % more each second")

        // Throughput above the present allocation does not raise the estimate.
        estimator.rates.limit(to: 60_000)
        estimator.setWanted(0, allocated: 30_000)
        sender.run(milliseconds: 300, &estimator)
        #expect(estimator.estimate < 70_000)
    }

    @Test func `a viewer that rests is left alone`() {
        var estimator = Self.estimator()
        #expect(estimator.deadline == nil, "nothing was sent")
        var sender = SteadySender()
        sender.run(milliseconds: 3_000, &estimator)
        #expect(estimator.deadline != nil)
        let before = estimator.estimate
        estimator.setWanted(0, allocated: 0)
        var now = sender.now
        for _ in 0..<100 {
            guard let deadline = estimator.deadline else { break }
            now = max(now, deadline)
            estimator.expire(at: now)
        }
        #expect(estimator.deadline == nil)
        #expect(estimator.estimate == before)
        #expect(now.nanoseconds(since: sender.now) < 10_000_000_000)
    }

    @Test func `video that was taken off is probed for though nothing else is on the way`() {
        var estimator = Self.estimator(start: 300_000)
        var sender = SteadySender()
        sender.run(milliseconds: 3_000, &estimator)
        // A queue that grows by a fifth of the time, and then nothing more.
        for step in 0..<100 {
            sender.wait = Int64(2 * step)
            sender.run(milliseconds: 10, &estimator)
        }
        estimator.setWanted(1_000_000, allocated: 0, next: 500_000, isStarved: true)
        var now = sender.now
        var probes: [Instant] = []
        while now.nanoseconds(since: sender.now) < 12_000_000_000 {
            now = now.advanced(milliseconds: 10)
            estimator.expire(at: now)
            guard let probe = estimator.takeProbe(at: now) else { continue }
            probes.append(now)
            // Its packets are lost.
            for _ in 0..<probe.minimumPackets {
                estimator.sent(estimator.next, bytes: 1_200, at: now, probe: probe.id)
            }
        }
        #expect((2...5).contains(probes.count), "\(probes.count)")
        // Something else that is not answered is a dead path.
        estimator.sent(estimator.next, bytes: 100, at: now, probe: nil)
        let blind = estimator.takeProbe(at: now.advanced(milliseconds: 1_500))
        #expect(blind == nil)
    }

    @Test func `a subscriber without arrival times is not looked at for probes`() {
        var estimator = Self.estimator(start: 300_000)
        var now = Instant(nanoseconds: 0)
        estimator.sent(estimator.next, bytes: 1_200, at: now, probe: nil)
        let first = estimator.takeProbe(at: now)
        #expect(first != nil)
        estimator.receiveLoss(fraction: 30, roundTripMilliseconds: 50, at: now)
        estimator.receiveREMB(400_000, at: now)
        for _ in 0..<100 {
            now = now.advanced(milliseconds: 20)
            estimator.sent(estimator.next, bytes: 1_200, at: now, probe: nil)
            estimator.expire(at: now)
            _ = estimator.takeProbe(at: now)
            let isDue = estimator.deadline.map { $0 <= now } ?? false
            #expect(!isDue)
        }
        // When nothing is on the way any longer, nothing is left to be done.
        for _ in 0..<100 {
            now = now.advanced(milliseconds: 100)
            estimator.expire(at: now)
        }
        let deadline = estimator.deadline
        #expect(deadline == nil)
    }

    @Test func `a leap of the subscriber's clock is told with its message`() {
        var estimator = Self.estimator()
        var sender = SteadySender()
        sender.run(milliseconds: 3_000, &estimator)
        let before = estimator.hasNewClock
        sender.clockOffset += 10_000_000_000
        sender.run(milliseconds: 100, &estimator)
        let leapt = estimator.hasNewClock
        sender.run(milliseconds: 100, &estimator)
        let after = estimator.hasNewClock
        #expect((before, leapt, after) == (false, true, false))
    }

    @Test func `messages that are lost do not let the estimate lead`() {
        var estimator = Self.estimator(start: 300_000)
        var sender = SteadySender()
        // 480 kbit/s, and two of five messages are lost.
        sender.bytes = 600
        for message in 0..<200 {
            sender.isHeard = message % 5 > 1
            sender.run(milliseconds: 100, &estimator)
        }
        #expect(estimator.estimate < 560_000)
    }

    @Test func `REMB and loss count where nothing else is reported`() {
        var estimator = Self.estimator(start: 300_000)
        var now = Instant(nanoseconds: 0)
        func pass(_ milliseconds: Int64) {
            for _ in 0..<milliseconds / 10 {
                now = now.advanced(milliseconds: 10)
                estimator.sent(estimator.next, bytes: 1_200, at: now, probe: nil)
                estimator.expire(at: now)
            }
        }
        pass(2_000)
        estimator.receiveREMB(800_000, at: now)
        #expect(estimator.estimate == 800_000)
        #expect(estimator.explanation.source == .receiverEstimate)
        let noProbe = estimator.takeProbe(at: now)
        #expect(noProbe == nil, "without arrival times a probe tells nothing")
        estimator.receiveREMB(50_000_000, at: now)
        #expect(estimator.estimate < 1_600_000, "no more than a lead over what is sent")
        estimator.receiveREMB(700_000, at: now)
        estimator.receiveLoss(fraction: 51, roundTripMilliseconds: 100, at: now)
        #expect((625_000...635_000).contains(estimator.estimate), "20 % lost take 10 %")
        estimator.receiveLoss(fraction: 51, roundTripMilliseconds: 100, at: now)
        #expect((625_000...635_000).contains(estimator.estimate), "not twice at once")
        for _ in 0..<10 {
            pass(1_100)
            estimator.receiveREMB(700_000, at: now)
            estimator.receiveLoss(fraction: 0, roundTripMilliseconds: nil, at: now)
        }
        #expect(estimator.estimate == 700_000, "it grows to what the viewer allows")
    }

    @Test func `estimates of streams are added up, and of the same one the last counts`() {
        func stream(_ ssrc: UInt32) -> EstimatedSources { EstimatedSources(SSRC(rawValue: ssrc)) }
        var limits = ReceiverLimits()
        let second: Int64 = 1_000_000_000
        limits.noteEstimate(500_000, of: stream(7), at: 0)
        limits.noteEstimate(30_000, of: stream(9), at: second)
        #expect(limits.cap(at: second) == 530_000)
        limits.noteEstimate(40_000, of: stream(9), at: 2 * second)
        #expect(limits.cap(at: 2 * second) == 540_000)
        #expect(limits.cap(at: 11 * second) == 40_000, "the first is too old")
        limits.noteEstimate(300_000, of: .all, at: 3 * second)
        #expect(limits.cap(at: 3 * second) == 300_000, "one for the whole transport")
        limits.noteEstimate(100_000, of: stream(8), at: 4 * second)
        #expect(limits.cap(at: 4 * second) == 100_000, "a stream's after that of all")
        for ssrc in 1...8 as ClosedRange<UInt32> {
            limits.noteEstimate(1_000, of: stream(ssrc), at: 4 * second)
        }
        #expect(limits.cap(at: 4 * second) == 3_000, "no more than three are kept")
    }

    @Test func `receiver reports alone raise and lower it`() {
        var estimator = Self.estimator(start: 300_000)
        var now = Instant(nanoseconds: 0)
        for second in 0..<30 {
            for _ in 0..<100 {
                now = now.advanced(milliseconds: 10)
                estimator.sent(estimator.next, bytes: 1_200, at: now, probe: nil)
            }
            estimator.receiveLoss(
                fraction: second < 20 ? 2 : 100,
                roundTripMilliseconds: 50,
                at: now
            )
            if second == 19 { #expect(estimator.estimate > 900_000) }
        }
        #expect(estimator.estimate < 400_000)
        #expect(estimator.explanation.source == .receiverReports)
    }

    @Test func `logarithms are right`() {
        // Natural logarithms from tables.
        let known = [
            (1.0, 0.0), (2, 0.693147180559945), (10, 2.302585092994046),
            (1e-6, -13.815510557964274), (0.9, -0.105360515657826), (3_001, 8.006700845440367),
        ]
        for (value, expected) in known {
            #expect(abs(naturalLogarithm(value) - expected) < 1e-7)
        }
    }
}

extension BandwidthEstimator {
    /// The next sequence number, for tests that send without `SteadySender`.
    var next: UInt16 { UInt16(truncatingIfNeeded: packets.end) }
}
