import RTP
import Testing

@testable import Nodes

/// Leases, placement, and answers that are kept.
@Suite struct MemberTests {
    struct Placement: CustomTestStringConvertible {
        var testDescription: String
        /// Name, load, state and region; the first is the node that is asked.
        var nodes: [(String, Double, NodeState, String?)]
        var chosen: String?
    }

    static let placements = [
        Placement(testDescription: "alone", nodes: [("a", 0.9, .up, nil)], chosen: "a"),
        Placement(
            testDescription: "about equal: the one that is asked",
            nodes: [("a", 0.3, .up, nil), ("b", 0.2, .up, nil)],
            chosen: "a"
        ),
        Placement(
            testDescription: "the least load",
            nodes: [("a", 0.5, .up, nil), ("b", 0.3, .up, nil), ("c", 0.2, .up, nil)],
            chosen: "c"
        ),
        Placement(
            testDescription: "of equals the first by name",
            nodes: [("z", 0.5, .up, nil), ("c", 0.2, .up, nil), ("b", 0.2, .up, nil)],
            chosen: "b"
        ),
        Placement(
            testDescription: "not one that drains",
            nodes: [("a", 0, .draining, nil), ("b", 0, .draining, nil), ("c", 0.9, .up, nil)],
            chosen: "c"
        ),
        Placement(testDescription: "none", nodes: [("a", 0, .draining, nil)], chosen: nil),
        Placement(
            testDescription: "the region before the load",
            nodes: [("a", 0.7, .up, "x"), ("b", 0.1, .up, "y"), ("c", 0.5, .up, "x")],
            chosen: "c"
        ),
        Placement(
            testDescription: "another region when one's own is busy",
            nodes: [("a", 0.8, .up, "x"), ("b", 0.1, .up, "y")],
            chosen: "b"
        ),
    ]

    @Test(arguments: placements)
    func `a new room goes to`(_ row: Placement) {
        var members = Members(own: NodeWorld.name(row.nodes[0].0))
        let now = Instant(nanoseconds: 0)
        for (name, load, state, region) in row.nodes {
            var record = MemberRecord(boot: "1", link: "", fingerprint: name, region: region)
            record.load = load
            record.state = state
            _ = members.note(record, of: NodeWorld.name(name), revision: 1, at: now)
        }
        #expect(members.placement()?.rawValue == row.chosen)
    }

    @Test func `a lease is over when record and link are silent, to the millisecond`() {
        var members = Members(own: NodeWorld.name("a"))
        let record = MemberRecord(boot: "1", link: "", fingerprint: "")
        let (a, b) = (NodeWorld.name("a"), NodeWorld.name("b"))
        var now = Instant(nanoseconds: 0)
        var lost: [Int64] = []
        _ = members.note(record, of: b, revision: 1, at: now)
        for step in 0...5_000 as ClosedRange<Int64> {
            now = Instant(nanoseconds: step * 1_000_000)
            if step % 1_000 == 0 {
                _ = members.note(record, of: a, revision: UInt64(step) + 2, at: now)
            }
            if step == 500 { members.hear(b, at: now) }
            if !members.expire(at: now).isEmpty { lost.append(step) }
        }
        #expect(lost == [3_500])
        #expect(members[b]?.isLost == true)
        _ = members.note(record, of: b, revision: 9, at: now)
        #expect(members[b]?.isLost == false)
    }

    @Test func `there are at most 64 nodes`() {
        var members = Members(own: NodeWorld.name("a"))
        let record = MemberRecord(boot: "1", link: "", fingerprint: "")
        let now = Instant(nanoseconds: 0)
        for number in 0..<64 {
            let name = NodeWorld.name("n\(number)")
            #expect(members.note(record, of: name, revision: 1, at: now) == false)
        }
        #expect(members.note(record, of: NodeWorld.name("x"), revision: 1, at: now) == nil)
        #expect(members.note(record, of: NodeWorld.name("n1"), revision: 2, at: now) == false)
    }

    @Test func `an answer is kept for a minute, and none that the caller has`() {
        var calls = IncomingCalls()
        var now = Instant(nanoseconds: 0)
        #expect(calls.receive(1, answered: 1, of: "x") == .execute)
        #expect(calls.receive(1, answered: 1, of: "x") == .ignore)
        calls.answer(1, [7], of: "x")
        calls.expire(at: now)
        #expect(calls.receive(1, answered: 1, of: "x") == .repeatAnswer([7]))
        now = now.advanced(milliseconds: 59_999)
        calls.expire(at: now)
        #expect(calls.receive(1, answered: 1, of: "x") == .repeatAnswer([7]))
        calls.expire(at: now.advanced(milliseconds: 1))
        #expect(calls.receive(1, answered: 1, of: "x") == .forgotten)

        #expect(calls.receive(2, answered: 2, of: "x") == .execute)
        calls.sendAway(2)
        #expect(calls.receive(2, answered: 2, of: "x") == .sendAway)
        #expect(calls.receive(3, answered: 3, of: "x") == .execute)
        #expect(calls.count == 1)
        // Another life begins its numbers again.
        #expect(calls.receive(1, answered: 1, of: "y") == .execute)
        calls.answer(3, [8], of: "x")
        #expect(calls.count == 1)
    }
}
