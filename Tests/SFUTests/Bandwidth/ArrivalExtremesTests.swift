import RTP
import Testing
import WorkerInterface

@testable import SFU

/// Arrival times that the viewer chooses: arithmetic on them wraps, and nothing traps.
@Suite struct ArrivalExtremesTests {
    static let times: [Int64] = [0, .max, .min, .max / 2, .min / 2, -1, 5_000_000_000]

    /// Tries packets that were sent in a row and arrived at arbitrary times.
    private func forAll(_ take: (_ sent: Int64, _ arrived: Int64) -> Void) {
        for round in 0..<Int64(30) {
            for (index, arrived) in Self.times.enumerated() {
                let sent = (round * 7 + Int64(index)) * 6_000_000
                take(sent, arrived)
                take(sent + 1, arrived)
                take(sent + 2, arrived &+ Int64(index) * 40_000_000)
            }
        }
    }

    @Test func `groups of packets that arrived centuries apart are told apart`() {
        var groups = ArrivalGroups()
        var trendline = Trendline()
        forAll { if let step = groups.add(sent: $0, arrived: $1) { trendline.add(step) } }
        for time in Self.times {
            trendline.add(ArrivalGroups.Step(sent: 0, arrived: time, completed: time))
        }
        #expect([.normal, .over, .under].contains(trendline.usage))
    }

    @Test func `a queue of centuries is a number`() {
        var queue = StandingQueue()
        forAll {
            queue.add(sent: $0, arrived: $1)
            #expect(queue.delay.isFinite)
            _ = queue.isHeld
        }
    }

    @Test func `rates from packets that arrived centuries apart are numbers`() {
        var first = StartupTrain()
        var pace = BottleneckRate()
        var acknowledged = AcknowledgedRate()
        let probe = Probe(
            id: ProbeID(rawValue: 1),
            bitsPerSecond: 1_000_000,
            bytes: 100,
            minimumPackets: 5
        )
        var cluster = ProbeCluster(probe)
        forAll {
            first.add(bytes: 1_200, sent: $0, arrived: $1)
            pace.add(bytes: 1_200, sent: $0, arrived: $1, waited: 40_000_000)
            acknowledged.add(bytes: 1_200, arrived: $1)
            cluster.add(bytes: 1_200, sent: $0, arrived: $1)
            let rates = [first.rate, pace.rate, acknowledged.bitsPerSecond, cluster.result?.rate]
            #expect(rates.allSatisfy { $0?.isFinite ?? true })
        }
    }

    @Test func `a rate that is no integer becomes the nearest one`() {
        #expect(Int(saturating: 1.9) == 1)
        #expect(Int(saturating: -1.9) == -1)
        #expect(Int(saturating: 9.3e18) == .max)
        #expect(Int(saturating: -.infinity) == .min)
        #expect(Int(saturating: .nan) == 0)
        #expect(UInt8(saturating: 256) == 255)
        #expect(UInt8(saturating: -1) == 0)
    }

    @Test func `an NTP clock that leaps by half its range is another clock`() {
        var clock = SenderClock()
        let now = Instant(nanoseconds: 1)
        for raw: UInt64 in [1, .max, 1 << 63, 1 << 63 - 1, 1] {
            clock.receive(NTPTime(rawValue: raw), at: now)
            #expect(clock.instant(of: NTPTime(rawValue: raw)) == now)
        }
    }
}
