import Testing

@testable import SFU

/// Selection and order of the video that an overloaded worker drops.
struct LoadSheddingPlanTests {
    private static func claim(
        _ slot: Int,
        priority: Int = 0,
        hasLargeAudience: Bool = false,
        isFeatured: Bool = false,
        fallback: SheddingPlan.Fallback = .allowed,
        lowest: Int = 100
    ) -> SheddingPlan.Claim {
        SheddingPlan.Claim(
            slot: SlotIndex(slot),
            priority: priority,
            hasLargeAudience: hasLargeAudience,
            isFeatured: isFeatured,
            fallback: fallback,
            whole: 1_000,
            lowest: lowest,
            cut: .none
        )
    }

    /// Four viewers: of an active speaker, with a priority, with neither, and with unstoppable
    /// video.
    private static let four = [
        claim(0, isFeatured: true), claim(1, priority: 5), claim(2),
        claim(3, fallback: .forbiddenBySubscriber),
    ]

    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var kept: Double
        /// Expected cuts of the four.
        var cuts: [VideoReduction]
    }

    static let rows = [
        Row(testDescription: "all is kept", kept: 1, cuts: [.none, .none, .none, .none]),
        Row(testDescription: "the least first", kept: 0.8, cuts: [.none, .none, .lowest, .none]),
        Row(testDescription: "its equal", kept: 0.6, cuts: [.none, .none, .lowest, .lowest]),
        Row(testDescription: "talkers", kept: 0.4, cuts: [.lowest, .none, .lowest, .lowest]),
        Row(
            testDescription: "priority last",
            kept: 0.1,
            cuts: [.lowest, .lowest, .lowest, .lowest]
        ),
        Row(
            testDescription: "then no video",
            kept: 0.075,
            cuts: [.lowest, .lowest, .off, .lowest]
        ),
        Row(testDescription: "who may do without", kept: 0.03, cuts: [.off, .off, .off, .lowest]),
        Row(testDescription: "nobody", kept: 0, cuts: [.off, .off, .off, .off]),
    ]

    @Test(arguments: rows)
    func `sheds video in the declared order`(_ row: Row) {
        var plan = SheddingPlan()
        plan.claims = Self.four
        plan.share(kept: row.kept)
        #expect(plan.claims.map(\.cut) == row.cuts)
    }

    @Test func `O-9 video that its publisher lets nobody switch off goes last of all`() {
        var plan = SheddingPlan()
        plan.claims = [
            Self.claim(0, hasLargeAudience: true, fallback: .forbiddenByPublisher),
            Self.claim(1, priority: 1_000, isFeatured: true, fallback: .forbiddenBySubscriber),
            Self.claim(2, priority: 1_000, isFeatured: true),
        ]
        plan.share(kept: 0.07)
        #expect(plan.claims.map(\.cut) == [.lowest, .lowest, .off])
        plan.share(kept: 0.034)
        #expect(plan.claims.map(\.cut) == [.lowest, .off, .off])
        plan.share(kept: 0)
        #expect(plan.claims.map(\.cut) == [.off, .off, .off])
    }

    @Test func `O-9 a small rest of the excess is not taken from them instead`() {
        var plan = SheddingPlan()
        plan.claims = [
            Self.claim(0, lowest: 900),
            Self.claim(1, fallback: .forbiddenByPublisher, lowest: 50),
        ]
        // Without higher layers 200 are left to save: too few for the large one.
        plan.share(kept: 0.375)
        #expect(plan.claims.map(\.cut) == [.lowest, .lowest])
    }

    @Test func `a room for a crowd gives up before the small ones beside it`() {
        var plan = SheddingPlan()
        plan.claims = [Self.claim(0, priority: 1), Self.claim(1), Self.claim(2, priority: 1)]
        plan.claims += (3..<43).map {
            Self.claim($0, priority: 1, hasLargeAudience: true, isFeatured: true)
        }
        for kept in [0.9, 0.5, 0.15] {
            plan.share(kept: kept)
            #expect(plan.claims[1].cut == .lowest, "an order that is asked for goes first")
            #expect(plan.claims[0].cut == .none && plan.claims[2].cut == .none, "\(kept)")
            #expect(plan.claims[3...].contains { $0.cut == .lowest })
        }
    }

    @Test func `single-layer video is dropped for as many viewers as necessary`() {
        var plan = SheddingPlan()
        plan.claims = (0..<100).map { Self.claim($0, lowest: 1_000) }
        plan.share(kept: 0.65)
        #expect(plan.claims.filter { $0.cut == .off }.count == 35)
        #expect(plan.claims.filter { $0.cut == .lowest }.isEmpty)
    }

    @Test func `the shed viewers stay the same while rates fluctuate`() {
        var plan = SheddingPlan()
        plan.claims = (0..<40).map { Self.claim($0) }
        plan.share(kept: 0.5)
        let before = plan.claims.map(\.cut)
        var swings = 0
        for round in 0..<50 {
            for index in plan.claims.indices {
                plan.claims[index].whole = 1_000 + (index * 37 + round * 61) % 40 - 20
            }
            plan.share(kept: 0.5)
            swings += zip(before, plan.claims.map(\.cut)).count { $0 != $1 }
        }
        #expect(swings <= 50, "at most the one on the edge")
        plan.share(kept: 1)
        #expect(plan.claims.allSatisfy { $0.cut == .none })
    }
}
