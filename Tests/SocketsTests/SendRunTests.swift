import Testing

@testable import SFU
@testable import Sockets
@testable import WorkerInterface

struct SendRunTests {
    struct Case: CustomTestStringConvertible, Sendable {
        var testDescription: String
        /// Length and destination of each datagram.
        var datagrams: [(length: Int, to: UInt16)]
        var counts: [Int]
        var limit = SendRun.maximumCount
    }

    static let cases = [
        Case(testDescription: "one", datagrams: [(100, 1)], counts: [1]),
        Case(testDescription: "equal", datagrams: [(100, 1), (100, 1), (100, 1)], counts: [3]),
        Case(
            testDescription: "the last is shorter",
            datagrams: [(100, 1), (100, 1), (7, 1)],
            counts: [3]
        ),
        Case(
            testDescription: "a shorter one ends it",
            datagrams: [(100, 1), (7, 1), (7, 1), (100, 1)],
            counts: [2, 1, 1]
        ),
        Case(
            testDescription: "a longer one begins another",
            datagrams: [(100, 1), (101, 1), (101, 1)],
            counts: [1, 2]
        ),
        Case(
            testDescription: "another destination",
            datagrams: [(100, 1), (100, 1), (100, 2), (100, 1)],
            counts: [2, 1, 1]
        ),
        Case(
            testDescription: "ten segments",
            datagrams: Array(repeating: (10, 1), count: 22),
            counts: [10, 10, 2]
        ),
        Case(
            testDescription: "65,000 bytes",
            datagrams: Array(repeating: (1_472, 1), count: 50),
            counts: [44, 6],
            limit: 64
        ),
        Case(
            testDescription: "not to be segmented",
            datagrams: [(100, 1), (100, 1)],
            counts: [1, 1],
            limit: 1
        ),
    ]

    @Test(arguments: cases)
    func `groups datagrams that can be sent in one call`(_ entry: Case) {
        var batch = Batch(capacity: 130)
        for datagram in entry.datagrams {
            let remote = Address(ipv4: 0x7f00_0001, port: datagram.to)
            batch.commit(length: datagram.length, to: Path(remote: remote, local: 0))
        }
        var counts: [Int] = []
        var index = 0
        while index < batch.count {
            let run = batch.run(from: index, limit: entry.limit)
            let lengths = (index..<run.end).map { batch.length(at: $0) }
            #expect(lengths.dropLast().allSatisfy { $0 == run.length })
            #expect(lengths.last == run.lastLength)
            #expect(lengths.reduce(0, +) <= SendRun.maximumBytes)
            counts.append(run.count)
            index = run.end
        }
        #expect(counts == entry.counts)
    }
}
