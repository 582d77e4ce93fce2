import RTP
import TestSupport
import Testing

@testable import Sockets

/// RFC 4571 §2 framing: frames are recovered however the network splits the stream.
struct RFC4571DeframerTests {
    /// Returns all frames in `bytes`, which are delivered in pieces that end at `cuts`.
    static func frames(
        _ bytes: [UInt8],
        cutAt cuts: [Int]
    ) throws -> (frames: [[UInt8]], isRefused: Bool, rest: Int) {
        let pair = try StreamPair()
        var frames = RFC4571Deframer()
        var rest: [UInt8] = []
        var found: [[UInt8]] = []
        var start = 0
        for cut in cuts + [bytes.count] where cut > start {
            pair.write(bytes[start..<cut])
            start = cut
            frames.begin(with: rest)
            let count = frames.read(from: pair.near)
            try #require(count > 0)
            reading: while true {
                switch frames.next() {
                case .frame(let range):
                    let frame = frames[range]
                    found.append(frame.indices.map { frame[$0] })
                case .oversized: return (found, true, 0)
                case .rest: break reading
                }
            }
            frames.leave(in: &rest)
        }
        return (found, false, rest.count)
    }

    struct Case: CustomTestStringConvertible, Sendable {
        var testDescription: String
        /// Lengths of the frames; below, the bytes of an incomplete frame after them.
        var lengths: [Int]
        var tail: [UInt8] = []
        var found: [Int]
        var isRefused = false
        var rest = 0
    }

    static let cases = [
        Case(
            testDescription: "nothing but a length",
            lengths: [],
            tail: [0, 9],
            found: [],
            rest: 2
        ),
        Case(testDescription: "half a length", lengths: [], tail: [5], found: [], rest: 1),
        Case(testDescription: "one byte", lengths: [1], found: [1]),
        Case(testDescription: "the largest", lengths: [1_472], found: [1_472]),
        Case(testDescription: "one byte too many", lengths: [1_473], found: [], isRefused: true),
        Case(
            testDescription: "the length alone refuses it",
            lengths: [4],
            tail: [0xff, 0xff],
            found: [4],
            isRefused: true
        ),
        Case(
            testDescription: "empty ones mean nothing",
            lengths: [0, 3, 0, 0, 4, 0],
            found: [3, 4]
        ),
        Case(
            testDescription: "a frame that is not whole waits",
            lengths: [20],
            tail: [0, 3, 1, 2],
            found: [20],
            rest: 4
        ),
    ]

    @Test(arguments: cases)
    func `cuts a stream into frames`(_ row: Case) throws {
        let bytes =
            row.lengths.flatMap { StreamPair.framed(Array(repeating: 7, count: $0)) } + row.tail
        let result = try Self.frames(bytes, cutAt: [])
        #expect(result.frames.map(\.count) == row.found)
        #expect(result.isRefused == row.isRefused)
        #expect(result.rest == row.rest)
    }

    @Test
    func `A9 frames survive a split after every byte`() throws {
        let datagrams: [[UInt8]] = [[1], [2, 3], Array(repeating: 4, count: 300), [5, 6, 7]]
        let bytes = datagrams.flatMap(StreamPair.framed)
        let result = try Self.frames(bytes, cutAt: Array(1..<bytes.count))
        #expect(result.frames == datagrams)
        #expect(result.rest == 0)
    }

    @Test(arguments: 1...40 as ClosedRange<UInt64>)
    func `frames survive random splits`(seed: UInt64) throws {
        var noise = SeededRandom(seed: seed)
        let datagrams = (0..<60).map { index in
            let length = Int.random(in: 1...RFC4571Deframer.maximumLength, using: &noise)
            return [UInt8](repeating: UInt8(index), count: length)
        }
        let bytes = datagrams.flatMap(StreamPair.framed)
        var cuts: [Int] = []
        var next = 0
        while next < bytes.count {
            // Small frames, and some as large as a read may be.
            let limit = Bool.random(using: &noise) ? 5 : RFC4571Deframer.readLength
            next += Int.random(in: 1...limit, using: &noise)
            cuts.append(min(next, bytes.count))
        }
        let result = try Self.frames(bytes, cutAt: cuts)
        #expect(result.frames == datagrams)
        #expect(result.rest == 0)
    }

    @Test(arguments: 1...200 as ClosedRange<UInt64>)
    func `A9 garbage neither traps nor is buffered`(seed: UInt64) throws {
        var noise = SeededRandom(seed: seed)
        let count = Int.random(in: 1...20_000, using: &noise)
        // Small first bytes make lengths that are accepted.
        let bytes = (0..<count).map { _ in
            UInt8.random(in: 0...(Bool.random(using: &noise) ? 5 : 255), using: &noise)
        }
        let cuts = (0..<10).map { _ in Int.random(in: 0...count, using: &noise) }.sorted()
        let reads = Array(stride(from: 0, to: count, by: RFC4571Deframer.readLength))
        let result = try Self.frames(bytes, cutAt: (cuts + reads).sorted())
        #expect(result.rest < RFC4571Deframer.maximumLength + 2)
        #expect(result.frames.allSatisfy { (1...RFC4571Deframer.maximumLength).contains($0.count) })
    }
}
