import TestSupport
import Testing

@testable import SFU

@Suite struct AllocationTests {
    /// A slot's demand in a table: its layers in kbit/s and its previous allocation.
    struct Demand {
        var ladder: [Int]
        var held = -1
        var priority = 0
        var mayPause = true
        var mayRise = true
    }

    static let simulcast = [150, 500, 1_500]

    struct Row: CustomTestStringConvertible {
        var name: String
        var budget: Int?
        var sound = 0
        var wishes: [Demand]
        var isDip = false
        var given: [Int]
        var testDescription: String { name }
    }

    static let rows = [
        Row(
            name: "nothing binds",
            budget: nil,
            wishes: [Demand(ladder: simulcast), Demand(ladder: simulcast)],
            given: [2, 2]
        ),
        Row(name: "plenty", budget: 3_000, wishes: [Demand(ladder: simulcast)], given: [2]),
        Row(name: "the middle one", budget: 600, wishes: [Demand(ladder: simulcast)], given: [1]),
        Row(
            name: "O-13 lowest for all before more for one",
            budget: 700,
            wishes: [Demand(ladder: simulcast), Demand(ladder: simulcast)],
            given: [1, 0]
        ),
        Row(
            name: "equals share alike",
            budget: 1_100,
            wishes: [Demand(ladder: simulcast), Demand(ladder: simulcast)],
            given: [1, 1]
        ),
        Row(
            name: "the important climb first",
            budget: 1_800,
            wishes: [Demand(ladder: simulcast), Demand(ladder: simulcast, priority: 1)],
            given: [0, 2]
        ),
        Row(
            name: "too little for anything",
            budget: 100,
            wishes: [Demand(ladder: simulcast)],
            given: [-1]
        ),
        Row(
            name: "O-9 who may not fall back keeps the lowest",
            budget: 100,
            wishes: [Demand(ladder: simulcast, mayPause: false)],
            given: [0]
        ),
        Row(
            name: "O-9 and others make room for it",
            budget: 170,
            wishes: [
                Demand(ladder: simulcast, held: 0), Demand(ladder: simulcast, mayPause: false),
            ],
            given: [-1, 0]
        ),
        Row(
            name: "what is held stays on the edge",
            budget: 1_400,
            wishes: [Demand(ladder: simulcast, held: 2)],
            given: [2]
        ),
        Row(
            name: "a dip is waited out",
            budget: 1_200,
            wishes: [Demand(ladder: simulcast, held: 2)],
            isDip: true,
            given: [2]
        ),
        Row(
            name: "but a deep one is not",
            budget: 1_000,
            wishes: [Demand(ladder: simulcast, held: 2)],
            isDip: true,
            given: [1]
        ),
        Row(
            name: "little video beside sound waits as long, though it is most of its budget",
            budget: 35,
            sound: 53,
            wishes: [Demand(ladder: [53], held: 0)],
            isDip: true,
            given: [0]
        ),
        Row(
            name: "and goes off when it was no dip",
            budget: 35,
            sound: 53,
            wishes: [Demand(ladder: [53], held: 0)],
            given: [-1]
        ),
        Row(
            name: "where sound alone is too much there is no video",
            budget: -30,
            sound: 60,
            wishes: [Demand(ladder: [10], held: 0)],
            isDip: true,
            given: [-1]
        ),
        Row(
            name: "on the edge nobody climbs",
            budget: 1_550,
            wishes: [Demand(ladder: simulcast, held: 1)],
            given: [1]
        ),
        Row(
            name: "who failed of late does not climb",
            budget: 5_000,
            wishes: [Demand(ladder: simulcast, held: 1, mayRise: false)],
            given: [1]
        ),
        Row(
            name: "a newcomer's lowest comes before what another holds",
            budget: 1_500,
            wishes: [Demand(ladder: simulcast, held: 2), Demand(ladder: simulcast)],
            given: [2, 0]
        ),
        Row(
            name: "the less important falls first",
            budget: 1_700,
            wishes: [
                Demand(ladder: simulcast, held: 2), Demand(ladder: simulcast, held: 2, priority: 1),
            ],
            given: [0, 2]
        ),
        Row(
            name: "video comes back with room to spare only",
            budget: 170,
            wishes: [Demand(ladder: simulcast)],
            given: [-1]
        ),
        Row(name: "and then does", budget: 200, wishes: [Demand(ladder: simulcast)], given: [0]),
        Row(name: "nothing offered", budget: 500, wishes: [Demand(ladder: [])], given: [-1]),
        Row(
            name: "a rung that costs less than the one below",
            budget: 520,
            wishes: [Demand(ladder: [150, 480, 470])],
            given: [2]
        ),
    ]

    @Test(arguments: rows)
    func `slots share a path`(_ row: Row) {
        var allocation = Allocation()
        Self.fill(&allocation, row.wishes)
        allocation.share(
            row.budget.map { ($0 + row.sound) * 1_000 },
            beside: row.sound * 1_000,
            isDip: row.isDip
        )
        var given: [Int] = []
        for index in 0..<allocation.claims.count { given.append(allocation.claims[index].given) }
        #expect(given == row.given)
    }

    @Test(arguments: [100, 300, 700, 1_000])
    func `what another rung needs is enough for it, and hardly less`(budget: Int) {
        var allocation = Allocation()
        Self.fill(&allocation, [Demand(ladder: Self.simulcast), Demand(ladder: Self.simulcast)])
        allocation.share(budget * 1_000)
        let before = allocation.given
        let needed = allocation.needed ?? 0
        allocation.share(needed * 99 / 100)
        let short = allocation.given
        // A bit may be lost to rounding.
        allocation.share(needed + 2)
        let after = allocation.given
        #expect(short == before)
        #expect(after > before)
    }

    static func fill(_ allocation: inout Allocation, _ wishes: [Demand]) {
        allocation.removeAll()
        for wish in wishes {
            let first = allocation.rungCount
            for rung in wish.ladder { allocation.append(rung: rung * 1_000) }
            allocation.append(
                Allocation.Claim(
                    first: first,
                    count: wish.ladder.count,
                    held: wish.held,
                    priority: wish.priority,
                    mayPause: wish.mayPause,
                    ceiling: wish.mayRise ? wish.ladder.count - 1 : -1
                )
            )
        }
    }

    /// Requests no more of a path than may soon be needed: not all still pictures start to move.
    @Test func `the demand counts one still picture as moving, the largest`() {
        var allocation = Allocation()
        for (bitrate, motionBitrate) in [
            (250_000, 1_800_000), (100_000, 400_000), (600_000, 500_000),
        ] {
            let first = allocation.rungCount
            allocation.append(rung: bitrate)
            allocation.append(
                Allocation.Claim(
                    first: first,
                    count: 1,
                    held: 0,
                    priority: 0,
                    mayPause: true,
                    ceiling: 0,
                    motionBitrate: motionBitrate
                )
            )
        }
        #expect(allocation.wanted == 250_000 + 100_000 + 600_000 + 1_550_000)
    }

    /// Checks random demands.
    ///
    /// The sum never exceeds the estimate (except for unstoppable video), no slot gets more than
    /// its highest layer, and allocating again from the result changes nothing.
    @Test(arguments: 1...2_000 as ClosedRange<UInt64>)
    func `a share is within the budget and stable`(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var wishes: [Demand] = []
        for _ in 0..<Int.random(in: 1...12, using: &random) {
            var ladder: [Int] = []
            var rung = Int.random(in: 20...200, using: &random)
            for _ in 0..<Int.random(in: 0...5, using: &random) {
                ladder.append(rung)
                rung += Int.random(in: 0...900, using: &random)
            }
            wishes.append(
                Demand(
                    ladder: ladder,
                    held: Int.random(in: -1..<max(ladder.count, 1), using: &random),
                    priority: Int.random(in: 0...2, using: &random),
                    mayPause: Int.random(in: 0..<4, using: &random) > 0
                )
            )
        }
        let budget = Int.random(in: 0...6_000, using: &random)
        var allocation = Allocation()
        Self.fill(&allocation, wishes)
        allocation.share(budget * 1_000)
        var must = 0
        for index in wishes.indices {
            let given = allocation.claims[index].given
            #expect(given < wishes[index].ladder.count)
            if !wishes[index].mayPause { must += wishes[index].ladder.first ?? 0 }
            wishes[index].held = given
        }
        let sum = allocation.given
        #expect(sum <= max(budget * 1_100, must * 1_000))
        Self.fill(&allocation, wishes)
        allocation.share(budget * 1_000)
        for index in wishes.indices {
            let again = allocation.claims[index].given
            #expect(again >= wishes[index].held || sum > budget * 1_000)
        }
    }
}
