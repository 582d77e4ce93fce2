import RTP
import Testing

@testable import SFU
@testable import WorkerInterface

/// Verdicts of the detector on one slot, shown every frame and every 20 ms.
struct FreezeDetectorTests {
    /// Events of the second after the first, in which all is well.
    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var hop: FreezeHop?
        var isScreen = false
        /// Whether frames leave; whether they arrive; and in how many milliseconds more.
        var leaves = true
        var arrives = true
        var delay: Int64 = 0
        var standstill: FreezeReason?
        /// Whether nothing arrives from the publisher, and the reason that the end shows.
        var silence: FreezeReason?
        var isMissing = false
        var isOverdue = false
        /// Whether the viewer asks for old packets, or for keyframes that it gets.
        var nacks = false
        var asks = false
        /// Whether it asks for one keyframe only.
        var asksOnce = false
        var isMeant = true
        /// Whether the publisher marks the ends of its frames.
        var marks = true
        /// Whether the viewer's clock leaps at the beginning of that second.
        var leaps = false
    }

    static let rows: [Row] = [
        Row(testDescription: "nothing happens", hop: nil),
        Row(
            testDescription: "packets of the publisher are lost",
            hop: .publisherUplink,
            leaves: false,
            silence: .packetsMissing
        ),
        Row(
            testDescription: "packets of the publisher come late",
            hop: .publisherUplink,
            leaves: false,
            silence: .packetsLate
        ),
        Row(
            testDescription: "a packet of the publisher stays missing",
            hop: .publisherUplink,
            isMissing: true,
            nacks: true
        ),
        Row(
            testDescription: "the camera rests",
            hop: .publisherEncoder,
            leaves: false,
            silence: .noFrame
        ),
        Row(
            testDescription: "the screen rests",
            hop: nil,
            isScreen: true,
            leaves: false,
            silence: .noFrame
        ),
        Row(
            testDescription: "no keyframe comes",
            hop: .publisherEncoder,
            isMissing: true,
            isOverdue: true,
            nacks: true
        ),
        Row(
            testDescription: "sfud drops packets",
            hop: .sfu,
            leaves: false,
            standstill: .discarded
        ),
        Row(
            testDescription: "an overloaded worker stops the video",
            hop: .sfu,
            leaves: false,
            standstill: .shed
        ),
        Row(
            testDescription: "the path is too narrow",
            hop: .viewerDownlink,
            leaves: false,
            standstill: .tooNarrow
        ),
        Row(testDescription: "the path is dead", hop: .viewerDownlink, arrives: false),
        Row(testDescription: "frames are late", hop: .viewerDownlink, delay: 400),
        Row(testDescription: "repairs fail", hop: .viewerDownlink, nacks: true),
        Row(testDescription: "the decoder fails", hop: .viewerDecoder, asks: true),
        Row(testDescription: "a recorder asks for a keyframe", hop: nil, asksOnce: true),
        Row(testDescription: "frames have no ends", hop: nil, arrives: false, marks: false),
        Row(testDescription: "the viewer's clock leaps", hop: nil, leaps: true),
        Row(testDescription: "the publisher is muted", hop: nil, leaves: false, isMeant: false),
    ]

    private static let interval: Int64 = 33
    private static let second: ClosedRange<Int64> = 1_000...2_000

    private func instant(_ milliseconds: Int64) -> Instant {
        Instant(nanoseconds: milliseconds * 1_000_000)
    }

    /// Plays three seconds; returns the detector's account.
    private func play(_ row: Row) -> FreezeAccount {
        var detector = FreezeDetector()
        var arrivals: [(at: Int64, sent: Int64)] = []
        var (leftAt, frameAt, keyframeAt): (Int64, Int64, Int64) = (0, 0, 0)
        for now in stride(from: Int64(1), through: 3_000, by: 1) {
            let isFaulty = Self.second.contains(now)
            if now % Self.interval == 0, !isFaulty || row.leaves {
                leftAt = now
                if !isFaulty || row.marks { frameAt = now }
                let delay = 50 + (isFaulty ? row.delay : 0)
                if !isFaulty || row.arrives { arrivals.append((now + delay, now)) }
            }
            while let first = arrivals.first, first.at <= now {
                arrivals.removeFirst()
                if row.leaps, first.sent == 1_023 { detector.forgetArrivals() }
                let leap: Int64 = row.leaps && first.sent > 1_000 ? 5_000 : 0
                let arrived = (first.at + leap) * 1_000_000
                _ = detector.noteArrival(sent: instant(first.sent), arrived: arrived)
            }
            if isFaulty, row.nacks, now % 100 == 0 {
                detector.noteAsked(at: instant(now))
                if !row.isMissing { detector.noteLost(instant(1_000), at: instant(now)) }
            }
            if isFaulty && row.asks && now % 200 == 0 || row.asksOnce && now == 1_500 {
                detector.noteRequest(at: instant(now), keyframeAt: instant(keyframeAt))
                keyframeAt = now + 30
            }
            guard now % 20 == 0 else { continue }
            var evidence = FreezeEvidence(now: instant(now))
            let isMuted = isFaulty && !row.isMeant
            let openedAt = instant(row.isMeant || now <= 2_000 ? 0 : 2_000)
            evidence.stretch = isMuted ? nil : .init(bindings: 1, openedAt: openedAt)
            evidence.leftAt = instant(leftAt)
            if let last = detector.acknowledged, instant(frameAt) > last {
                evidence.frameLeftAt = instant(frameAt)
            }
            evidence.interval = detector.interval(received: Self.interval * 1_000_000)
            evidence.mayRest = row.isScreen
            evidence.keyframeAt = instant(keyframeAt)
            if now - leftAt > 100 {
                evidence.standstill =
                    row.standstill.map { .known($0) } ?? .silence(isHeard: true)
            }
            if isFaulty, row.isMissing {
                evidence.missingSince = instant(1_000)
                evidence.missing = 3
                evidence.isKeyframeOverdue = row.isOverdue && now > 1_300
            }
            if now > 2_000, let reason = row.silence {
                evidence.silence = .init(from: instant(990), to: instant(2_013), reason: reason)
            }
            _ = detector.check(evidence)
        }
        return detector.account(at: instant(3_000))
    }

    @Test(arguments: rows)
    func `a freeze has one hop`(_ row: Row) throws {
        let account = play(row)
        guard let hop = row.hop else {
            #expect(account.recent.isEmpty && account.totals.all.count == 0)
            return
        }
        #expect(account.recent.count == 1, "\(account.recent)")
        #expect(account.totals.all.count == 1 && account.totals[hop].count == 1)
        let freeze = try #require(account.recent.first)
        #expect(freeze.reason.hop == hop && freeze.hasEnded)
        #expect((900...1_100).contains(freeze.began.nanoseconds / 1_000_000), "\(freeze)")
        #expect((300...1_400).contains(freeze.nanoseconds / 1_000_000), "\(freeze)")
    }

    @Test func `feedback that is late is no freeze`() {
        var detector = FreezeDetector()
        for now in stride(from: Int64(10), through: 3_000, by: 10) {
            let isLate = (1_000...1_800).contains(now)
            if !isLate, now % 30 == 0 {
                // The packets held back come at once.
                let first = now == 1_830 ? 990 : now
                for sent in stride(from: first, through: now, by: 30) {
                    let arrived = (sent + 50) * 1_000_000
                    #expect(detector.noteArrival(sent: instant(sent), arrived: arrived) == nil)
                }
            }
            var evidence = FreezeEvidence(now: instant(now))
            evidence.stretch = .init(bindings: 1, openedAt: instant(0))
            evidence.leftAt = instant(now)
            evidence.interval = detector.interval(received: 30_000_000)
            _ = detector.check(evidence)
        }
        #expect(detector.account(at: instant(3_000)).recent.isEmpty)
    }

    @Test func `a slot that nothing comes for is looked at ever more rarely`() {
        var detector = FreezeDetector()
        var now = instant(0)
        var looks: [Int64] = []
        while now < instant(10_000) {
            var evidence = FreezeEvidence(now: now)
            evidence.stretch = .init(bindings: 1, openedAt: instant(0))
            let next = detector.check(evidence).next
            looks.append(next.milliseconds(since: now))
            now = next
        }
        #expect(looks.prefix(6) == [100, 100, 200, 400, 800, 1_000])
        #expect(looks.dropFirst(5).allSatisfy { $0 == 1_000 })
        // From the first frame on it is watched closely.
        var evidence = FreezeEvidence(now: now)
        evidence.stretch = .init(bindings: 1, openedAt: instant(0))
        evidence.leftAt = now
        #expect(detector.check(evidence).next.milliseconds(since: now) < 300)
    }

    /// The worker stood still during a freeze that is in the account already.
    @Test func `a time is counted once`() {
        var detector = FreezeDetector()
        for now in stride(from: Int64(20), through: 3_000, by: 20) {
            var evidence = FreezeEvidence(now: instant(now))
            evidence.stretch = .init(bindings: 1, openedAt: instant(0))
            let isStanding = (1_000...1_600).contains(now)
            evidence.leftAt = instant(isStanding ? 1_000 : now)
            if isStanding { evidence.standstill = .known(.discarded) }
            if now > 1_700 { evidence.stall = .init(from: instant(1_100), to: instant(1_580)) }
            _ = detector.check(evidence)
        }
        #expect(detector.account(at: instant(3_000)).recent.map(\.reason) == [.discarded])
    }

    @Test func `the list of freezes is bounded, and the sums are not`() {
        var detector = FreezeDetector()
        var now: Int64 = 0
        for _ in 0..<50 {
            for isStanding in [false, true] {
                for _ in 0..<50 {
                    now += 20
                    var evidence = FreezeEvidence(now: instant(now))
                    evidence.stretch = .init(bindings: 1, openedAt: instant(0))
                    evidence.leftAt = instant(isStanding ? now / 2_000 * 2_000 + 1_000 : now)
                    if isStanding { evidence.standstill = .known(.discarded) }
                    _ = detector.check(evidence)
                }
            }
        }
        let account = detector.account(at: instant(now))
        #expect(account.recent.count == FreezeDetector.maximumRecent)
        #expect(account.totals[.sfu].count >= 49)
    }
}
