import Foundation
import RTP
import Testing
import WorkerInterface

@testable import SFU

struct ProbingTests {
    private static func situation(
        estimate: Double = 300e3,
        wanted: Double = 2e6
    ) -> Prober.Situation {
        Prober.Situation(
            estimate: estimate,
            wanted: wanted,
            maximum: 5e6,
            isCongested: false,
            isRecovering: false,
            isApplicationLimited: true,
            waiting: 0
        )
    }

    private static func send(_ probe: Probe?, _ prober: inout Prober) {
        guard let probe else { return }
        prober.noteSent(probe.id, bytes: probe.bytes)
    }

    @Test func `the first two ask for three and six times the rate, one after the other`() {
        var prober = Prober()
        let now: Int64 = 1_000_000_000
        let idle = prober.take(Self.situation(wanted: 0), at: now)
        #expect(idle == nil, "nothing is wanted")
        let first = prober.take(Self.situation(), at: now)
        #expect(first?.bitsPerSecond == 900_000)
        #expect(first?.bytes == 2_250)
        let early = prober.take(Self.situation(), at: now)
        #expect(early == nil, "the first has not left")
        Self.send(first, &prober)
        let second = prober.take(Self.situation(), at: now)
        #expect(second?.bitsPerSecond == 1_800_000)
        #expect(second?.id != first?.id)
    }

    @Test func `a probe is no faster than the next layer needs, and as long as the path bears`() {
        var prober = Prober()
        while let probe = prober.take(Self.situation(estimate: 1e6), at: 0) {
            Self.send(probe, &prober)
        }
        // A layer that needs little more, and one that needs a lot.
        var near = Self.situation(estimate: 1e6)
        near.next = 1.1e6
        let first = prober.take(near, at: 4_000_000_000)
        #expect(first?.bitsPerSecond == 1_210_000)
        // An excess of 21 % for 95 ms is a queue of 20 ms.
        #expect(abs((first?.bytes ?? 0) - 14_404) <= 1)
        Self.send(first, &prober)
        var far = near
        far.next = 1.9e6
        let second = prober.take(far, at: 8_000_000_000)
        #expect(second?.bitsPerSecond == 1_500_000)
        #expect(second?.bytes == 7_500)
        #expect(second?.minimumPackets == 8)
    }

    /// Wait of packets in milliseconds, whether the queue empties all the same, and probes in 30 s.
    static let waits: [(wait: Double, empties: Bool, probes: Int)] = [
        (5, true, 10), (20, true, 3), (20, false, 0),
    ]

    @Test(arguments: waits)
    func `a sender that uses what it has is probed for while packets hardly wait`(
        wait: Double,
        empties: Bool,
        probes: Int
    ) {
        var prober = Prober()
        while let probe = prober.take(Self.situation(estimate: 1e6), at: 0) {
            Self.send(probe, &prober)
        }
        var situation = Self.situation(estimate: 1e6)
        situation.isApplicationLimited = false
        situation.isStepped = true
        situation.waiting = wait * 1e6
        situation.empties = empties
        var count = 0
        for now in stride(from: 20_000_000_000 as Int64, to: 50_000_000_000, by: 100_000_000) {
            guard let probe = prober.take(situation, at: now) else { continue }
            Self.send(probe, &prober)
            count += 1
        }
        #expect(count == probes)
    }

    @Test func `a result that is uncertain has to be confirmed, and the lower one counts`() {
        var prober = Prober()
        let situation = Self.situation()
        func result(_ id: UInt8, _ rate: Double, doubt: Double) -> ProbeResult {
            ProbeResult(id: ProbeID(rawValue: id), rate: rate, doubt: doubt)
        }
        func take(_ result: ProbeResult, at now: Int64) -> Double? {
            prober.noteResult(result, situation, at: now)
        }
        #expect(take(result(1, 900e3, doubt: 0.01), at: 0) == 900e3)
        #expect(take(result(2, 900e3, doubt: 0.05), at: 1_000_000_000) == nil)
        #expect(take(result(2, 950e3, doubt: 0.05), at: 1_100_000_000) == nil, "the same probe")
        #expect(take(result(3, 700e3, doubt: 0.05), at: 1_500_000_000) == 700e3)
        #expect(take(result(4, 800e3, doubt: 0.05), at: 2_000_000_000) == nil)
        #expect(take(result(5, 990e3, doubt: 0.05), at: 5_000_000_000) == nil, "too late")
        #expect(take(result(6, 200e3, doubt: 0.05), at: 6_000_000_000) == 200e3, "raises nothing")
    }

    @Test func `arrivals that scatter make a result low and doubtful`() throws {
        let probe = Probe(
            id: ProbeID(rawValue: 3),
            bitsPerSecond: 1_600_000,
            bytes: 4_000,
            minimumPackets: 5
        )
        var even = ProbeCluster(probe)
        var held = ProbeCluster(probe)
        for index in 0..<20 as Range<Int64> {
            // A path of 800 kbit/s; something on it holds packets for up to 8 ms.
            let arrived = 7_000_000_000 + 2_000_000 * index
            even.add(bytes: 200, sent: index * 1_000_000, arrived: arrived)
            let stop = (arrived + 7_999_999) / 8_000_000 * 8_000_000
            held.add(bytes: 200, sent: index * 1_000_000, arrived: stop)
        }
        let sure = try #require(even.result)
        let doubtful = try #require(held.result)
        #expect(sure.doubt < 0.001)
        #expect(doubtful.doubt > 0.02)
        #expect(doubtful.rate < sure.rate)
    }

    @Test func `no probe is beyond twice what is wanted, or the maximum`() {
        var prober = Prober()
        let first = prober.take(Self.situation(wanted: 350e3), at: 0)
        #expect(first?.bitsPerSecond == 700_000)
        var bounded = Prober()
        var situation = Self.situation()
        situation.maximum = 400e3
        let second = bounded.take(situation, at: 0)
        #expect(second?.bitsPerSecond == 400_000)
    }

    @Test func `a large rise of demand is probed at once, as at the start`() {
        var prober = Prober()
        prober.noteDemand(200e3)
        while let probe = prober.take(Self.situation(wanted: 200e3), at: 0) {
            Self.send(probe, &prober)
        }
        // A slight increase is no new demand.
        prober.noteDemand(390e3)
        let early = prober.take(Self.situation(wanted: 390e3), at: 1_100_000_000)
        #expect(early == nil)
        prober.noteDemand(2e6)
        let first = prober.take(Self.situation(), at: 1_200_000_000)
        #expect(first?.bitsPerSecond == 900_000)
        Self.send(first, &prober)
        let second = prober.take(Self.situation(), at: 1_200_000_000)
        #expect(second?.bitsPerSecond == 1_800_000)
        Self.send(second, &prober)
        let third = prober.take(Self.situation(), at: 2_300_000_000)
        #expect(third == nil, "it has been asked about")
    }

    @Test func `a path whose limit was met is asked step by step`() {
        var prober = Prober()
        prober.noteDemand(200e3)
        while let probe = prober.take(Self.situation(wanted: 200e3), at: 0) {
            Self.send(probe, &prober)
        }
        prober.noteDrop(from: 900e3, to: 300e3, at: 1_000_000_000)
        prober.noteDemand(2e6)
        let first = prober.take(Self.situation(), at: 9_000_000_000)
        #expect(first?.bitsPerSecond == 900_000)
        Self.send(first, &prober)
        let early = prober.take(Self.situation(), at: 9_000_000_000)
        #expect(early == nil, "the result is not there")
        let result = ProbeResult(id: first?.id ?? ProbeID(rawValue: 0), rate: 880e3, doubt: 0)
        _ = prober.noteResult(result, Self.situation(), at: 9_100_000_000)
        let second = prober.take(Self.situation(estimate: 880e3), at: 9_100_000_000)
        #expect(second?.bitsPerSecond == 1_760_000)
    }

    /// Lengthens probes by a doubtful result; returns the time that the next one takes, in
    /// milliseconds.
    private static func length(next: Double) -> Int {
        var prober = Prober()
        while let probe = prober.take(situation(estimate: 1e6), at: 0) { send(probe, &prober) }
        let doubtful = ProbeResult(id: ProbeID(rawValue: 2), rate: 1e6, doubt: 0.1)
        _ = prober.noteResult(doubtful, situation(estimate: 1e6), at: 0)
        var wanted = situation(estimate: 1e6, wanted: 4e6)
        wanted.next = next
        wanted.isStarved = true
        guard let probe = prober.take(wanted, at: 4_000_000_000) else { return 0 }
        return probe.bytes * 8_000 / probe.bitsPerSecond
    }

    @Test func `doubt lengthens only probes that are little above the estimate`() {
        #expect((85...100).contains(Self.length(next: 1.3e6)))
        #expect(Self.length(next: 3e6) == 20)
    }

    @Test func `a probe that is due and forbidden is looked for every 20 ms`() throws {
        var prober = Prober()
        while let probe = prober.take(Self.situation(), at: 0) { Self.send(probe, &prober) }
        var full = Self.situation()
        full.isCongested = true
        var now: Int64 = 4_000_000_000
        for _ in 0..<10 {
            let probe = prober.take(full, at: now)
            #expect(probe == nil)
            let next = try #require(prober.deadline(full, now: now))
            #expect(next - now == 20_000_000)
            now = next
        }
        let probe = prober.take(Self.situation(), at: now)
        #expect(probe != nil)
    }

    @Test func `nothing is probed into a queue`() {
        var prober = Prober()
        var situation = Self.situation()
        situation.isCongested = true
        let probe = prober.take(situation, at: 0)
        #expect(probe == nil)
    }

    @Test func `an unmet demand is probed every three seconds`() {
        var prober = Prober()
        var times: [Int64] = []
        for milliseconds: Int64 in stride(from: 0, to: 20_000, by: 10) {
            guard let probe = prober.take(Self.situation(), at: milliseconds * 1_000_000) else {
                continue
            }
            Self.send(probe, &prober)
            times.append(milliseconds)
        }
        #expect(times.count == 8)
        for (one, next) in zip(times.dropFirst(2), times.dropFirst(3)) {
            #expect(next - one >= 3_000)
        }
        let satisfied = prober.take(Self.situation(estimate: 2.1e6), at: 60_000_000_000)
        #expect(satisfied == nil)
    }

    /// Sends a probe's packets a millisecond apart and has them arrive `gap` apart.
    private static func result(gap: Int64, losing: Int = 0) -> Double? {
        let probe = Probe(
            id: ProbeID(rawValue: 3),
            bitsPerSecond: 1_600_000,
            bytes: 4_000,
            minimumPackets: 5
        )
        var cluster = ProbeCluster(probe)
        for index in 0..<20 - losing {
            let sent = Int64(index) * 1_000_000
            cluster.add(bytes: 200, sent: sent, arrived: 7_000_000_000 + Int64(index) * gap)
        }
        return cluster.result?.rate
    }

    @Test func `a probe shows what arrived of it, and how fast`() throws {
        let whole = try #require(Self.result(gap: 1_000_000))
        #expect(abs(whole - 1_600_000) < 1)
        let half = try #require(Self.result(gap: 2_000_000))
        #expect(abs(half - 0.95 * 800_000) < 1, "the path's own rate, and a little less")
        let faster = try #require(Self.result(gap: 700_000))
        #expect(abs(faster - 1_600_000) < 1, "no more than was sent")
        #expect(Self.result(gap: 400_000) == nil, "a burst of something on the way")
        #expect(Self.result(gap: 0) == nil)
        #expect(Self.result(gap: 1_000_000, losing: 5) == nil, "too little arrived")
    }

    @Test(arguments: Scenarios.seeds)
    func `a viewer of layers finds the highest that fits, soon and for good`(seed: UInt64) {
        let network = Scenarios.layers(seed: seed)
        let estimates = network.samples.map { ($0.second, $0.estimates[0]) }
        func share(_ seconds: ClosedRange<Double>, _ test: (Double) -> Bool) -> Double {
            let part = estimates.filter { seconds.contains($0.0) }
            return Double(part.count { test($0.1) }) / Double(part.count)
        }
        if ProcessInfo.processInfo.environment["SFUD_FIGURES"] != nil {
            // Delay of the right estimate after each change, and time spent outside it later.
            let bounds = [
                (0.0, 20.0, 1.8e6...9e9), (20, 50, 400e3...1.8e6), (80, 110, 1.8e6...9e9),
            ]
            for (start, end, fit) in bounds {
                let came = estimates.first { $0.0 > start && fit.contains($0.1) }?.0 ?? end
                let off = estimates.count { $0.0 > came && $0.0 <= end && !fit.contains($0.1) }
                print("FIGURE layers", start, "came after", came - start, "off", off)
            }
        }
        #expect(share(5...20) { $0 >= 1.8e6 } == 1, "the top within 5 s of joining")
        #expect(share(24...50) { (400e3..<1.8e6).contains($0) } >= 0.95, "the middle within 4 s")
        #expect(share(54...80) { $0 < 400e3 } >= 0.95, "the lowest within 4 s")
        #expect(share(88...110) { $0 >= 1.8e6 } >= 0.97, "the top again within 8 s")
        #expect(network.queueP95(5...20) <= 60)
        #expect(network.queueP95(24...50) <= 100)
    }
}
