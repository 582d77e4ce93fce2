import TestSupport
import Testing

@testable import Rooms

@Suite struct TalkerRankingTests {
    /// One event of a story; pins are changed by name.
    enum Step: Sendable {
        case start(String), stop(String), remove(String), pin(String), unpin(String)
    }

    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var steps: [Step]
        var limit = 3
        var receiver: String?
        /// Expected list: current speakers in capitals, pinned participants with a star.
        var expected: String
    }

    static let rows = [
        Row(testDescription: "nobody", steps: [], expected: ""),
        Row(
            testDescription: "the newest start is first",
            steps: [.start("a"), .start("b")],
            expected: "B A"
        ),
        Row(
            testDescription: "who talks already stays",
            steps: [.start("a"), .start("b"), .start("a")],
            expected: "B A"
        ),
        Row(
            testDescription: "who falls silent keeps place and order",
            steps: [.start("a"), .start("b"), .stop("b")],
            expected: "b A"
        ),
        Row(
            testDescription: "the silent give way, the longest ago first",
            steps: [
                .start("a"), .start("b"), .start("c"), .stop("b"), .stop("c"), .start("d"),
            ],
            expected: "D c A"
        ),
        Row(
            testDescription: "a silent one gives way to an older start who talks",
            steps: [.start("a"), .start("b"), .stop("b")],
            limit: 1,
            expected: "A"
        ),
        Row(
            testDescription: "muted is gone at once, another comes",
            steps: [.start("a"), .start("b"), .start("c"), .start("d"), .remove("d")],
            expected: "C B A"
        ),
        Row(
            testDescription: "pinned and silent come last, in the order of the pins",
            steps: [.pin("x"), .pin("a"), .start("a"), .stop("a"), .start("b")],
            expected: "B x* a*"
        ),
        Row(
            testDescription: "pinned who talk are among the talkers",
            steps: [.pin("x"), .pin("a"), .start("a"), .start("b")],
            expected: "B A* x*"
        ),
        Row(
            testDescription: "a pin is not lost by talking less than others",
            steps: [.pin("x"), .start("a"), .start("b"), .start("c")],
            expected: "C B x*"
        ),
        Row(
            testDescription: "oneself is left out before the cut",
            steps: [.pin("x"), .start("a"), .start("b"), .start("c")],
            receiver: "c",
            expected: "B A x*"
        ),
        Row(
            testDescription: "one's own pin leaves its place to another",
            steps: [.pin("x"), .start("a"), .start("b"), .start("c")],
            receiver: "x",
            expected: "C B A"
        ),
        Row(
            testDescription: "more pins than places",
            steps: [.pin("x"), .pin("y"), .pin("z"), .start("a")],
            limit: 2,
            expected: "x* y*"
        ),
        Row(testDescription: "no places", steps: [.start("a"), .pin("a")], limit: 0, expected: ""),
    ]

    @Test(arguments: rows)
    func `E-33 the list, by example`(_ row: Row) {
        var ranking = ActiveSpeakerRanking()
        var pins: [String] = []
        for step in row.steps {
            switch step {
            case .start(let name): ranking.started(name)
            case .stop(let name): ranking.stopped(name)
            case .remove(let name): ranking.remove(name)
            case .pin(let name): pins.append(name)
            case .unpin(let name): pins.removeAll { $0 == name }
            }
        }
        let list = ranking.list(limit: row.limit, pins: pins, excluding: row.receiver)
        #expect(Self.text(list) == row.expected)
    }

    private static func text(_ list: [ActiveSpeakerRanking.Entry]) -> String {
        list.map { entry in
            let name = entry.isTalking ? entry.participant.uppercased() : entry.participant
            return entry.isPinned ? name + "*" : name
        }.joined(separator: " ")
    }

    @Test(arguments: [1, 2, 3, 4] as [UInt64])
    func `E-33 100,000 random steps agree with a naive reading`(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var ranking = ActiveSpeakerRanking()
        var oracle = TalkerListReference()
        var pins: [String] = []
        let names = (0..<12).map { "p\($0)" }
        var limit = 4
        for step in 0..<25_000 {
            let name = names[Int.random(in: 0..<names.count, using: &random)]
            switch Int.random(in: 0..<20, using: &random) {
            case 0..<8:
                ranking.started(name)
                oracle.started(name)
            case 8..<14:
                ranking.stopped(name)
                oracle.stopped(name)
            case 14..<15:
                ranking.remove(name)
                oracle.remove(name)
            case 15..<17:
                if !pins.contains(name), pins.count < 6 { pins.append(name) }
            case 17..<19:
                pins.removeAll { $0 == name }
            default:
                limit = Int.random(in: 1...8, using: &random)
            }
            let receiver = Bool.random(using: &random) ? names.randomElement(using: &random) : nil
            let list = ranking.list(limit: limit, pins: pins, excluding: receiver)
            let wanted = oracle.list(limit: limit, pins: pins, excluding: receiver)
            guard list != wanted else { continue }
            Issue.record("step \(step): \(Self.text(list)), not \(Self.text(wanted))")
            return
        }
    }

    @Test func `E-33 a receiver who is not on the common list gets the common list`() {
        var random = SeededRandom(seed: 5)
        var ranking = ActiveSpeakerRanking()
        let names = (0..<30).map { "p\($0)" }
        let pins = ["p3", "p20"]
        for _ in 0..<500 {
            let name = names[Int.random(in: 0..<names.count, using: &random)]
            if Bool.random(using: &random) { ranking.started(name) } else { ranking.stopped(name) }
            let list = ranking.list(limit: 6, pins: pins, excluding: nil)
            let listed = Set(list.map(\.participant))
            for receiver in names where !listed.contains(receiver) {
                #expect(ranking.list(limit: 6, pins: pins, excluding: receiver) == list)
            }
        }
    }

    @Test func `E-35 a pinned person who starts and stops talking changes no member`() {
        var ranking = ActiveSpeakerRanking()
        for name in ["a", "b", "c"] { ranking.started(name) }
        let members = {
            Set(ranking.list(limit: 3, pins: ["x"], excluding: nil).map(\.participant))
        }
        let before = members()
        ranking.started("x")
        #expect(members() == before)
        ranking.stopped("x")
        #expect(members() == before)
    }
}
