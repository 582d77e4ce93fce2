import CKernel
import Glibc
import RTP
import Testing
import WorkerInterface

@testable import SFU
@testable import Sockets

/// Sending of datagrams over a TCP connection that blocks.
struct TCPSenderTests {
    /// A sender, its connection and the test's controls.
    struct Bench: ~Copyable {
        let pair: StreamPair
        var sender: TCPSender
        var output = FramedOutput()
        var staging = Batch(capacity: 1)
        var now = Instant(nanoseconds: 0)

        init(sendBuffer: Int32 = 4_096, datagrams: Int = 64) throws {
            pair = try StreamPair(sendBuffer: sendBuffer)
            sender = TCPSender(limits: SendQueueLimits(datagrams: datagrams))
        }

        /// Sends datagrams in the notation of `SendQueueTests`, as one batch.
        mutating func send(_ words: [String], length: Int = 1_000) {
            var batch = Batch(capacity: words.count)
            for word in words {
                let (content, ssrc, timestamp, _) = SendQueueTests.meaning(of: word)
                let bytes = SendQueueTests.packet(ssrc: ssrc, timestamp: timestamp, length: length)
                var place = batch.next
                for index in bytes.indices { place[index] = bytes[index] }
                batch.commit(length: length, to: SendQueueTests.path(0), as: content)
            }
            sender.send(batch, 0..<words.count, on: pair.near, through: &output, at: now)
        }

        mutating func drain() {
            sender.drain(through: &staging, on: pair.near, through: &output, at: now)
        }

        /// Sends all queued datagrams, and returns everything received, as words without the
        /// content.
        mutating func finish() -> (words: [String], left: Int) {
            var bytes: [UInt8] = []
            for _ in 0..<1_000 {
                bytes += pair.take()
                guard sender.isWaiting else { break }
                drain()
            }
            bytes += pair.take()
            let (frames, left) = StreamPair.frames(in: bytes)
            return (frames.map(TCPSenderTests.word), left)
        }
    }

    static func word(_ datagram: [UInt8]) -> String {
        guard datagram.count >= 12 else { return "short" }
        return "\(datagram[11]).\(datagram[7])"
    }

    @Test
    func `datagrams leave at once with a length prefix`() throws {
        var bench = try Bench(sendBuffer: 1 << 20)
        bench.send((0..<40).map { "v1.\($0)" })
        let isWaiting = bench.sender.isWaiting
        #expect(!isWaiting)
        let (words, left) = bench.finish()
        #expect(words == (0..<40).map { "1.\($0)" })
        #expect(left == 0)
    }

    @Test(arguments: [1_000, 1_400, 20] as [Int])
    func `a partly sent frame is completed first, and nothing is sent twice`(
        length: Int
    ) throws {
        var bench = try Bench(datagrams: 4_096)
        var sent: [String] = []
        for round in 0..<60 {
            let words = (0..<4).map { "v1.\((round * 4 + $0) % 256)" }
            sent += words.map { String($0.dropFirst()) }
            bench.send(words, length: length)
        }
        let isBlocked = bench.sender.isBlocked
        #expect(isBlocked)
        let (words, left) = bench.finish()
        #expect(words == sent)
        #expect(left == 0)
    }

    @Test
    func `A9 a peer that stops reading loses video first, then audio, and memory is bounded`()
        throws
    {
        var bench = try Bench(datagrams: 32)
        // Fills the kernel's buffer.
        while !bench.sender.isBlocked { bench.send(["v9.1"]) }
        bench.send((0..<20).map { "a2.\($0)" } + ["o", "o"])
        for frame in 0..<100 { bench.send(["v1.\(frame)", "v1.\(frame)"]) }
        let waiting = bench.sender.count
        #expect(waiting <= 32)
        var drops = bench.sender.drops
        #expect(drops[.full, .video] >= 190)
        #expect(drops[.full, .audio] == 0)
        // Audio is dropped only when nothing but audio and signalling is queued.
        bench.send((20..<60).map { "a2.\($0)" })
        drops = bench.sender.drops
        #expect(drops[.full, .audio] == 30)
        #expect(drops.sum(.full) > 220)
        let words = bench.finish().words.filter { !$0.hasPrefix("9.") }
        // Signalling first, then the latest audio, in order.
        #expect(words == ["0.0", "0.0"] + (30..<60).map { "2.\($0)" })
    }

    @Test
    func `audio overtakes video that waits`() throws {
        var bench = try Bench()
        while !bench.sender.isBlocked { bench.send(["v9.1"]) }
        bench.send(["v1.1", "v1.1", "a2.1", "v1.2", "a2.2", "o"])
        let words = bench.finish().words.filter { !$0.hasPrefix("9.") }
        #expect(words == ["0.0", "2.1", "2.2", "1.1", "1.1", "1.2"])
    }

    @Test
    func `stale datagrams are dropped, and their memory is freed`() throws {
        var bench = try Bench()
        while !bench.sender.isBlocked { bench.send(["v9.1"]) }
        let before = bench.sender.drops
        bench.send(["v1.1", "a2.1"])
        bench.now = bench.now.advanced(milliseconds: 199)
        bench.sender.expire(at: bench.now)
        let kept = bench.sender.count
        #expect(kept >= 2)
        bench.now = bench.now.advanced(milliseconds: 1)
        bench.sender.expire(at: bench.now)
        let sound = bench.sender.count
        #expect(sound == 1)
        bench.now = bench.now.advanced(milliseconds: 300)
        bench.sender.expire(at: bench.now)
        let left = bench.sender.count
        #expect(left == 0)
        let drops = bench.sender.drops
        #expect(drops[.stale, .video] >= before[.stale, .video] + 1)
        #expect(drops[.stale, .audio] == 1)
        // The rest of a dropped frame is not sent either.
        bench.sender.expire(at: bench.now)
        bench.send(["v1.2"])
        bench.now = bench.now.advanced(milliseconds: 200)
        bench.sender.expire(at: bench.now)
        let later = bench.sender.drops
        bench.send(["v1.2"])
        let after = bench.sender.drops
        #expect(after[.full, .video] == later[.full, .video] + 1)
        bench.now = bench.now.advanced(milliseconds: 1_000)
        bench.sender.release(at: bench.now)
        let released = bench.sender.drops
        #expect(released == after)
        let deadline = bench.sender.deadline
        #expect(deadline == nil)
        // The frame in progress was completed all the same.
        let left2 = bench.finish().left
        #expect(left2 == 0)
    }

    @Test
    func `queued datagrams of a lost right are withdrawn`() throws {
        var bench = try Bench()
        while !bench.sender.isBlocked { bench.send(["v9.1"]) }
        bench.send(["v1.1", "a2.1", "v3.1", "o"])
        bench.sender.withdraw([SSRC(rawValue: 1), SSRC(rawValue: 2)])
        let words = bench.finish().words.filter { !$0.hasPrefix("9.") }
        #expect(words == ["0.0", "3.1"])
        let drops = bench.sender.drops
        #expect(drops[.withdrawn, .video] == 1 && drops[.withdrawn, .audio] == 1)
    }

    @Test
    func `a peer that has gone is a failure, and no signal`() throws {
        var ends: [Int32] = [-1, -1]
        let bench = try Bench()
        ends = [bench.pair.near, bench.pair.far]
        _ = shutdown(ends[1], Int32(SHUT_RDWR))
        var sender = TCPSender(limits: SendQueueLimits())
        var output = FramedOutput()
        var batch = Batch(capacity: 1)
        batch.append(to: SendQueueTests.path(0)) { $0.append(1) }
        sender.send(batch, 0..<1, on: ends[0], through: &output, at: bench.now)
        let failure = sender.failure
        #expect(failure == EPIPE)
    }
}
