import Testing

@testable import SFU
@testable import WorkerInterface

/// A path that becomes longer, told from a queue.
struct LongerPathTests {
    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        /// Queuing delay in milliseconds, by the milliseconds since it began.
        var delay: @Sendable (Int64) -> Int64
        /// Whether one in two hundred packets is lost.
        var losesSome = false
        var losesMuch = false
        /// Whether less can be sent than is delivered.
        var mayTest = true
        var deliversNearlyAll = true
        /// Latest time of the last rule, in the milliseconds since the delay began.
        var latest: Int64?
        var rules: [Contention.Rule]
    }

    static let rows = [
        Row(testDescription: "no queue", delay: { $0 % 30 }, rules: [.delay]),
        Row(
            testDescription: "a leap that stays",
            delay: { 80 + $0 % 3 },
            rules: [.delay, .longerPath, .delay]
        ),
        Row(
            testDescription: "a leap, and frames that queue behind it",
            delay: { 80 + $0 % 60 },
            rules: [.delay, .longerPath, .delay]
        ),
        Row(
            testDescription: "a queue that drains first, then a leap",
            delay: { 80 + max(0, 100 - $0 / 20) },
            latest: 5_000,
            rules: [.delay, .test, .longerPath, .delay]
        ),
        Row(
            testDescription: "a download's queue, full after a while",
            delay: { $0 < 7_000 ? 80 + $0 / 50 % 60 : 220 },
            rules: [.delay, .test, .loss]
        ),
        Row(
            testDescription: "a download's queue, and the lowest layers alone",
            delay: { 80 + $0 / 50 % 60 },
            losesSome: true,
            mayTest: false,
            rules: [.delay, .loss]
        ),
        Row(
            testDescription: "a queue that grows by the lowest layers alone",
            delay: { 80 + $0 / 50 % 60 },
            losesSome: true,
            mayTest: false,
            deliversNearlyAll: false,
            rules: [.delay]
        ),
        Row(
            testDescription: "a queue that loses nothing, and the lowest layers alone",
            delay: { 80 + $0 / 50 % 60 },
            mayTest: false,
            rules: [.delay]
        ),
        Row(
            testDescription: "a leap with losses",
            delay: { 80 + $0 % 3 },
            losesSome: true,
            rules: [.delay, .test, .longerPath, .delay]
        ),
        Row(
            testDescription: "a full queue that loses much",
            delay: { 80 + $0 % 3 },
            losesMuch: true,
            rules: [.delay, .test, .loss]
        ),
        Row(
            testDescription: "a download's queue",
            delay: { 80 + $0 / 50 % 60 },
            rules: [.delay, .test, .loss]
        ),
    ]

    @Test(arguments: rows)
    func `a steady delay without losses is the path's own`(_ row: Row) {
        var queue = StandingQueue()
        var contention = Contention()
        var rules: [Contention.Rule] = []
        var lastLoss = Int64.min / 2
        var changed: Int64 = 0
        for millisecond in stride(from: -5_000 as Int64, to: 15_000, by: 10) {
            let sent = millisecond * 1_000_000
            let waited = millisecond < 0 ? 0 : row.delay(millisecond)
            queue.add(sent: sent, arrived: sent + (20 + waited) * 1_000_000)
            if row.losesSome, millisecond % 2_000 == 0 { lastLoss = sent }
            let rule = contention.update(
                &queue,
                hasLoss: row.losesMuch,
                lastLoss: lastLoss,
                deliversNearlyAll: row.deliversNearlyAll,
                mayTest: row.mayTest,
                at: sent
            )
            if rules.last != rule {
                rules.append(rule)
                changed = millisecond
            }
        }
        #expect(rules == row.rules)
        if let latest = row.latest { #expect(changed <= latest) }
    }

    @Test func `a delay that is the path's own is measured from the last three seconds`() {
        var queue = StandingQueue()
        for millisecond in stride(from: 0 as Int64, to: 8_000, by: 10) {
            let sent = millisecond * 1_000_000
            let delay: Int64 = millisecond < 4_500 ? 20 : 120
            queue.add(sent: sent, arrived: sent + delay * 1_000_000)
        }
        #expect(queue.isHeld)
        queue.rebase()
        #expect(!queue.isHeld)
        queue.add(sent: 8_000_000_000, arrived: 8_120_000_000)
        #expect(queue.latest == 0)
    }

    @Test func `a test that ends with a longer path gives back what it took`() {
        func input(_ rule: Contention.Rule) -> RateControl.Input {
            RateControl.Input(
                usage: .normal,
                acknowledged: 500_000,
                bottleneckRate: nil,
                isBottleneckSure: false,
                roundTrip: 200_000_000,
                waiting: 0,
                rule: rule,
                isRateOfProbe: false,
                isQueueOfProbe: false,
                fair: 1_000_000,
                floor: 0,
                least: 0,
                isApplicationLimited: true,
                bounds: 10_000...700_000
            )
        }
        var control = RateControl(600_000)
        var estimates: [Double] = []
        let rules: [Contention.Rule] = [
            .delay, .test, .test, .longerPath, .delay, .test, .delay, .longerPath,
        ]
        for (second, rule) in rules.enumerated() {
            _ = control.update(input(rule), at: Int64(second) * 1_000_000_000)
            estimates.append(control.estimate)
        }
        // The second test ended with a queue that drained, so its rate stays.
        #expect(
            estimates == [600e3, 400e3, 400e3, 600e3, 600e3, 400e3, 400e3, 400e3]
        )
    }
}
