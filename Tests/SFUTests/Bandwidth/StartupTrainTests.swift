import RTP
import Testing

@testable import SFU

/// Estimates of a path from the first packets.
struct StartupTrainTests {
    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        /// Spacing of packets of 1,200 bytes as they leave and as they arrive, in milliseconds.
        var sent: Double
        var arrived: Double
        var count = 20
        /// Expected estimate, in bits a second.
        var rate: Double?
    }

    static let rows: [Row] = [
        Row(testDescription: "nothing waits", sent: 10, arrived: 10),
        Row(testDescription: "a keyframe all at once", sent: 0, arrived: 16, rate: 0.95 * 600e3),
        Row(testDescription: "twice what fits", sent: 8, arrived: 16, rate: 0.95 * 600e3),
        Row(testDescription: "a burst that comes as a burst", sent: 0, arrived: 0.5),
        Row(testDescription: "too few to tell", sent: 0, arrived: 16, count: 4),
    ]

    @Test(arguments: rows)
    func `queued packets arrive at the bottleneck rate`(_ row: Row) {
        var train = StartupTrain()
        for index in 0..<row.count {
            train.add(
                bytes: 1_200,
                sent: Int64(Double(index) * row.sent * 1e6),
                arrived: 777_000_000_000 + Int64(Double(index) * row.arrived * 1e6)
            )
        }
        let rate = train.rate
        #expect((rate == nil) == (row.rate == nil))
        if let rate, let expected = row.rate { #expect(abs(rate / expected - 1) < 0.01) }
    }

    @Test func `a machine that stops for a moment is no narrow path`() {
        var train = StartupTrain()
        for index in 0..<30 as Range<Int64> {
            let sent = index * 20_000_000
            // From 200 to 350 ms nothing is delivered, then everything at once.
            let isHeld = (200_000_000..<350_000_000).contains(sent)
            let left = isHeld ? 350_000_000 + index * 100_000 : sent
            train.add(bytes: 130, sent: sent, arrived: 777_000_000_000 + left)
        }
        let rate = train.rate
        #expect(rate == nil)
    }

    @Test func `nobody is bounded while all comes through, nor for ever by silence`() {
        var estimator = BandwidthEstimator(
            at: Instant(nanoseconds: 0),
            startBitrate: 300_000,
            maximum: 5_000_000
        )
        var sender = SteadySender()
        let isOpenAtFirst = estimator.isOpen
        sender.run(milliseconds: 600, &estimator)
        let isStillOpen = estimator.isOpen
        #expect(isOpenAtFirst && isStillOpen)
        sender.isHeard = false
        sender.run(milliseconds: 1_000, &estimator)
        let isOpen = estimator.isOpen
        let estimate = estimator.estimate
        #expect(!isOpen)
        #expect(estimate > 600_000, "what came through is known")
    }

    @Test func `a path that looked narrow is asked about as soon as the start is over`() {
        var estimator = BandwidthEstimator(
            at: Instant(nanoseconds: 0),
            startBitrate: 300_000,
            maximum: 5_000_000
        )
        estimator.setWanted(1_000_000, allocated: 60_000)
        var sender = SteadySender()
        sender.bytes = 150
        let begin = sender.now
        // The viewer's machine is busy with the call: media sent at 120 kbit/s arrives at 67.
        for _ in 0..<30 {
            sender.wait += 8
            sender.run(milliseconds: 10, &estimator)
            _ = estimator.takeProbe(at: sender.now)
        }
        let narrow = estimator.estimate
        #expect(narrow < 120_000)
        sender.wait = 0
        var asked: Instant?
        while asked == nil, sender.now.milliseconds(since: begin) < 5_000 {
            sender.run(milliseconds: 50, &estimator)
            if estimator.takeProbe(at: sender.now) != nil { asked = sender.now }
        }
        let passed = asked?.milliseconds(since: begin) ?? .max
        #expect(passed < 1_500, "not after the 3 s between two questions")
    }

    @Test func `a keyframe that would not fit yet is asked for later`() {
        var requests = KeyframeRequests()
        let now = Instant(nanoseconds: 5_000_000_000)
        let later = now.advanced(milliseconds: 240)
        _ = requests.want(at: now, bitrate: 400_000, notBefore: later)
        #expect(requests.deadline == later)
        var isDue = requests.isDue(at: now)
        #expect(!isDue)
        isDue = requests.isDue(at: later)
        #expect(isDue)
    }
}
